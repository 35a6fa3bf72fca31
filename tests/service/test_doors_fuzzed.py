"""Made-up requests for every route of the doors that speak others' protocols: none is a failure of the service, none hangs.

The native door has its own, made up from its description, in `test_schema`.
"""

from __future__ import annotations

import asyncio
import http.client
import json
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from excise.service.all_doors import all_doors
from excise.service.daytona.tables import CONTROL, OPEN, TOOLBOX
from excise.service.sandbox import State, Wanted

EXAMPLES = 400
MOST = 8
"""Sandboxes at a time."""
NO_FAILURES = {501, 502, 504}
"""Not there; a sandbox that is gone; a time limit of the request's own."""

WORDS = (
    *("templateID", "timeout", "metadata", "envVars", "process", "cmd", "args", "envs", "cwd", "tag", "pid", "signal"),
    *("pty", "size", "rows", "cols", "stdin", "input", "path", "depth", "source", "destination", "recursive"),
    *("watcherId", "name", "tags", "target", "steps", "type", "fromImage", "fromTemplate", "count", "duration"),
    *("memory", "network", "denyOut", "lifecycle", "autoPause", "cpuCount", "memoryMB", "snapshot", "env", "labels"),
    *("cpu", "disk", "autoStopInterval", "command", "sessionId", "runAsync", "files", "url", "branch", "message"),
    *("buildInfo", "dockerfileContent", "paths", "newValue", "pattern", "language", "code", "id", "data", "user"),
)  # fmt: skip
VALUES = st.one_of(
    st.none(), st.booleans(), st.integers(-1, 3), st.just(2**70), st.floats(allow_nan=False),
    st.sampled_from(["", "x", "/", "~", "base", "root", "..", "\0", "SIGNAL_SIGKILL", "-1", "a=b", "\ud800", "é" * 50]),
)  # fmt: skip
BODIES = st.recursive(
    VALUES,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(WORDS), inner, max_size=5)
    ),
    max_leaves=8,
)
KINDS = (
    "application/json",
    "application/connect+json",
    "application/octet-stream",
    "multipart/form-data; boundary=b",
    "",
)
OURS = ("{sandbox}", "{box}", "{id}", "{}")
PARTS = ("x", "1", "..", "%00", "a b", "é", "main", "base", "default", "w1")
QUERIES = (
    "",
    "path=f",
    "path=%00",
    "path=/etc/passwd&x=1",
    "limit=-1",
    "limit=x&nextToken=y",
    "timeout=0",
    "a=%ff",
)


def framed(body: bytes, flags: int, off: int) -> bytes:
    """As a stream's only message, more or less."""
    return bytes([flags]) + max(0, len(body) + off).to_bytes(4, "big") + body


def requests(door, desk):
    """Of any route of the door: method, path, query, kind of body and body."""
    ways = sorted({(each.method, each.path) for each in door.routes(desk)})
    if door.name == "daytona":  # has tables of its own behind these
        control = [(each.method, f"/api/{each.path}") for each in (*OPEN, *CONTROL)]
        ways = control + [(each.method, f"/toolbox/{{box}}/{each.path}") for each in TOOLBOX]
    plain = st.builds(lambda each: json.dumps(each).encode(), BODIES)
    stream = st.builds(
        framed, plain, st.sampled_from([0, 0, 0, 1, 2]), st.sampled_from([0, 0, 0, 1, -1])
    )
    return st.tuples(
        st.sampled_from(ways), st.lists(st.sampled_from(PARTS), min_size=6, max_size=6),
        st.booleans(), st.sampled_from(QUERIES), st.sampled_from(KINDS), st.one_of(plain, stream, st.binary(max_size=30)),
    )  # fmt: skip


def path_of(pattern: str, parts: list[str], box: str) -> str:
    """The pattern with something in its places; a sandbox's is our own."""
    found = []
    for number, piece in enumerate(pattern.split("/")):
        if piece.startswith("{"):
            ours = piece in OURS and parts[0] != "x"
            piece = box if ours else quote(parts[number % 6], safe="%")  # noqa: PLW2901
        found.append(piece)
    return "/".join(found)


def attack(door, served, box_of) -> list[str]:
    host, _, port = served.url.removeprefix("http://").partition(":")
    failures: list[str] = []

    @settings(
        max_examples=EXAMPLES, deadline=None, database=None, derandomize=True,
        phases=[Phase.generate], suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(requests(door, served.desk))
    def ask(request):
        (method, pattern), parts, by_key, query, kind, body = request
        box = box_of()
        path = path_of(pattern, parts, box.id) + (f"?{query}" if query else "")
        headers = {"Content-Type": kind, "E2b-Sandbox-Id": box.id, "Connect-Timeout-Ms": "300"}
        headers |= {"X-API-Key": served.token} if by_key else {"X-Access-Token": box.token}
        if door.name == "daytona":
            headers = {"Content-Type": kind, "Authorization": f"Bearer {served.token}"}
        connection = http.client.HTTPConnection(host, int(port), timeout=45)
        try:
            connection.request(method, path, body, headers)
            answer = connection.getresponse()
            told = answer.read(10_000)
        except Exception as error:  # noqa: BLE001  # told
            failures.append(f"{method} {path} {body!r}: {error!r}")
            return
        finally:
            connection.close()
        if answer.status >= 500 and answer.status not in NO_FAILURES:
            failures.append(f"{method} {path} {kind} {body!r}: {answer.status} {told[:300]!r}")

    ask()
    return failures


@pytest.mark.timeout(300)
@pytest.mark.parametrize("name", ["e2b", "daytona"])
def test_no_made_up_request_is_a_failure_of_the_service(serve, name):
    async def work():
        async with serve("jail+pool") as served:
            cloud, loop, boxes = served.cloud, asyncio.get_running_loop(), []

            async def another():
                """A sandbox; those that were made by requests make room, because the pool is finite."""
                for each in cloud.census.living():
                    await cloud.destroy(each)
                boxes.append(await cloud.create("alice", Wanted(lifetime_s=3600, person="user")))

            def box_of():
                if not boxes or boxes[-1].state is not State.RUNNING or len(cloud.census) > MOST:
                    asyncio.run_coroutine_threadsafe(another(), loop).result(30)
                return boxes[-1]

            door = next(each for each in all_doors() if each.name == name)
            return await asyncio.to_thread(attack, door, served, box_of)

    failures = asyncio.run(work())
    assert not failures, "\n\n".join(failures[:8])
