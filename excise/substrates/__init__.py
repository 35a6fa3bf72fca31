"""Where rollouts run: one file per substrate, one contract (`base`), one runnable check of it (`conformance`)."""
