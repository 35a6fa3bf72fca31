"""The warm interpreter: what an environment's Python imports is imported once, frozen into a file, and thawed in jails.

`docs/warm-interpreter.md` is its contract: what is served, what falls back to the real interpreter, and what it costs.
"""
