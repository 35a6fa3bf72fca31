"""One process that gives sandboxes to whoever asks over HTTP: any substrate, behind several doors.

What it decides lives once, in `cloud` and beside it; a door translates a protocol into the cloud's verbs and
the cloud's errors back into the protocol's own, and holds nothing.
"""
