"""Sandboxes of clouds, through their official SDKs, so that whoever pays for one can measure it.

`e2b`, `daytona`: keys come from the environment as the SDK reads them, the SDK itself from the extra of that
name. `e2b:on=loopback` and `daytona:on=loopback` are the same SDKs against `excise serve` on this machine, and are labelled so.

Covered: create, ready, run with time limits, input, both streams and codes, files, egress on or off, sweeping of what
killed owners left. Not covered: output that is no text, because SDKs decode it; repositories and dependencies, which belong
into the image; limits, which belong to the image, too.
"""
