"""The bug fixes that workloads act on: one descriptor file each, rebuilt from released sources at set-up."""
