"""The harness: one trial, a study of many, their records, the host's facts, and the harness's own cost."""
