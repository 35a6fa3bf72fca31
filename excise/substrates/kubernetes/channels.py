"""The websocket protocol of exec, `v4.channel.k8s.io`: each message begins with the number of its channel. No I/O.

v4 has no way to say that the input has ended; whoever sends input says how much it will be (see `wrapping`).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from urllib.parse import quote, urlencode

PROTOCOL = "v4.channel.k8s.io"
STDIN, STDOUT, STDERR, STATUS = range(4)
CHUNK_BYTES = 64 * 1024


def path(namespace: str, pod: str, container: str, argv: Sequence[str], *, stdin: bool) -> str:
    """Where to connect; the command is part of it."""
    query = [("container", container), ("stdout", "1"), ("stderr", "1")]
    query += [("stdin", "1")] if stdin else []
    query += [("command", word) for word in argv]
    at = f"/api/v1/namespaces/{quote(namespace)}/pods/{quote(pod)}/exec"
    return f"{at}?{urlencode(query, errors='surrogateescape')}"


def pieces(data: bytes) -> Iterator[bytes]:
    """Input as messages."""
    head = bytes([STDIN])
    for at in range(0, len(data), CHUNK_BYTES):
        yield head + data[at : at + CHUNK_BYTES]


def end_in(status: bytes) -> tuple[int | None, str]:
    """The exit code, or None and why there is none: the command was never started, or nobody knows how it ended."""
    try:
        said = json.loads(status)
    except ValueError:
        return None, status.decode("utf-8", "replace")
    if said.get("status") == "Success":
        return 0, ""
    for cause in (said.get("details") or {}).get("causes") or ():
        if cause.get("reason") == "ExitCode" and str(cause.get("message")).isdigit():
            return int(cause["message"]), ""
    return None, str(said.get("message") or said)
