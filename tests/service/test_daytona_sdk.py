"""The unmodified Daytona SDK, blocking and asynchronous, against a real service; and what the documentation says of it."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path

import pytest

from . import sdk_tables

HERE = Path(__file__).parent
GROUPS = (
    "sandboxes", "previews", "processes", "terminals", "files", "repositories", "interpreters",
    "snapshots", "absent",
)  # fmt: skip
LONGEST_S = 240

_RAN: dict[str, dict] = {}


async def ran(serve, kind: str) -> dict:
    """What came of all exercises, run once for all tests in a process of their own."""
    if kind not in _RAN:
        async with serve("jail+pool") as served:
            env = {key: value for key, value in os.environ.items() if "DAYTONA" not in key}
            env |= {"DAYTONA_API_URL": f"{served.url}/api", "DAYTONA_API_KEY": served.token}
            words = (sys.executable, "-W", "ignore", str(HERE / "daytona_exercises"), kind)
            pipe = asyncio.subprocess.PIPE
            process = await asyncio.create_subprocess_exec(
                *words, env=env, stdout=pipe, stderr=pipe
            )
            out, err = await asyncio.wait_for(process.communicate(), LONGEST_S)
            assert process.returncode == 0, err.decode()[-4000:]
            assert len(served.cloud.census) == 0, "every sandbox was deleted"
        _RAN[kind] = json.loads(out)
    return _RAN[kind]


@pytest.mark.timeout(LONGEST_S + 30)
@pytest.mark.parametrize("group", GROUPS)
@pytest.mark.parametrize("kind", ["blocking", "async"])
def test_what_the_sdk_does_works_unmodified(serve, kind, group):
    found = asyncio.run(ran(serve, kind))["failed"][group]
    assert not found, "\n".join(f"{name}: {why}" for name, why in found.items())


@pytest.mark.timeout(LONGEST_S + 30)
def test_every_method_of_the_sdk_is_used_or_refused_with_a_reason(serve):
    found = asyncio.run(ran(serve, "blocking"))
    assert set(found["failed"]) == set(GROUPS)
    left = set(found["offers"]) - set(found["works"]) - set(found["refused"])
    assert not left
    assert all(len(why) > 10 for why in found["refused"].values())
    newest = sdk_tables.recorded("daytona")[-1]
    told = [{key: each[key] for key in ("version", "works", "refused")} for each in (newest, found)]
    assert told[0] == told[1], "make sdk-matrix"
