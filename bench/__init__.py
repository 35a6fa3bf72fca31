"""Every performance promise is a benchmark: `python -m bench NAME` prints ratios taken in one run."""
