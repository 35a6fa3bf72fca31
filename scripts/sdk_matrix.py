"""Every version of the SDKs that the doors promise to serve, each in an environment of its own, against a real service.

`make sdk-matrix`, or `python scripts/sdk_matrix.py [e2b] [e2b-js] [daytona]`: prints what works, records it beside the
tests, and writes the documentation's tables anew. Environments are kept in the cache; `latest` is looked up every time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "service"
LONGEST_S = 570.0
LATEST = "latest"
Found = dict[str, Any]


def _module(path: Path) -> ModuleType:
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


installed, tables = _module(TESTS / "installed.py"), _module(TESTS / "sdk_tables.py")


@dataclass(frozen=True)
class Part:
    """One SDK: its versions, the words that run its exercises in one of them, and how it is told where the service is."""

    versions: tuple[str, ...]
    words: Callable[[str], Sequence[str]]
    kinds: tuple[str, ...]
    environment: Callable[[str, str], dict[str, str]]
    merged: Callable[[list[Found]], Found]


def _python(package: str, program: str) -> Callable[[str], Sequence[str]]:
    def words(version: str) -> Sequence[str]:
        wanted = package if version == LATEST else f"{package}=={version}"
        name = f"{package}-{version}"
        programs = installed.python_environment(name, wanted, anew=version == LATEST)
        return (str(programs / "python"), "-W", "ignore", str(TESTS / program))

    return words


def _node(version: str) -> Sequence[str]:
    folder = installed.node_folder(f"e2b-js-{version}", f"e2b@{version}", anew=version == LATEST)
    return ("node", str(TESTS / "e2b_exercises.mjs"), str(folder))


def _daytona(url: str, token: str) -> dict[str, str]:
    return {"DAYTONA_API_URL": f"{url}/api", "DAYTONA_API_KEY": token}


def _e2b(url: str, token: str) -> dict[str, str]:
    return {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": token}


def _of_daytona(found: list[Found]) -> Found:
    """A method works if it does in every kind that has it."""
    first, failed = found[0], {}
    for each in found:
        for failures in each["failed"].values():
            failed |= {k: why for k, why in failures.items() if not why.startswith("absent")}
    return {key: first[key] for key in ("version", "works", "refused", "offers")} | {"said": failed}


def _of_e2b(found: list[Found]) -> Found:
    said = {
        name: why
        for each in found
        for name, why in each["found"].items()
        if tables.outcome(why) == "failed"
    }
    outcomes = tables.together([each["found"] for each in found])
    return {"version": found[0]["version"], "found": outcomes, "said": said}


PARTS = {
    "e2b": Part(
        ("2.10.2", "2.15.3", "2.20.3", "2.25.1", "2.30.0", "2.42.0", "2.50.0", "2.57.0", LATEST),
        _python("e2b", "e2b_exercises"),
        ("blocking", "async"),
        _e2b,
        _of_e2b,
    ),
    "e2b-js": Part(("2.10.4", "2.20.1", "2.30.5", "2.39.0", LATEST), _node, ("",), _e2b, _of_e2b),
    "daytona": Part(
        ("0.155.0", "0.170.0", "0.190.1", "0.210.0", LATEST),
        _python("daytona", "daytona_exercises"),
        ("blocking", "async"),
        _daytona,
        _of_daytona,
    ),
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    asked = parser.parse_args()
    failed = 0
    for name in asked.parts or list(PARTS):
        part, results = PARTS[name], []
        for version in part.versions:
            found = part.merged(asyncio.run(tried(part, version)))
            failed += told(name, found.pop("said"), found)
            results.append(found)
        tables.record(name, results)
    print(tables.matrix({name: tables.recorded(name) for name in ("e2b", "e2b-js")}))
    for page, text in tables.pages().items():
        path = ROOT / "docs" / page
        path.write_text(tables.written(path.read_text(encoding="utf-8"), text), "utf-8")
    return 1 if failed else 0


def told(name: str, said: dict[str, str], found: Found) -> int:
    """Print one version's outcome; how many exercises failed."""
    for exercise, why in said.items():
        print(f"  {exercise}: {why[-2000:]}")
    outcomes = list(found.get("found", {}).values())
    works = outcomes.count("works") if outcomes else len(found["works"])
    absent = f", {outcomes.count('absent')} not in that SDK" if outcomes else ""
    print(f"{name} {found['version']}: {works} work{absent}, {len(said)} failed", flush=True)
    return len(said)


async def tried(part: Part, version: str) -> list[Found]:
    """What every kind of one version found."""
    words = part.words(version)
    found: list[Found] = []
    for kind in part.kinds:
        async with service() as (url, token):
            process = await asyncio.create_subprocess_exec(
                *words, kind, env=os.environ | part.environment(url, token),
                stdout=asyncio.subprocess.PIPE,
            )  # fmt: skip
            out, _ = await asyncio.wait_for(process.communicate(), LONGEST_S)
            found.append(json.loads(out))
    return found


@asynccontextmanager
async def service() -> AsyncIterator[tuple[str, str]]:
    """A service before pools of jails, on a free port, with one owner's key."""
    from excise.jail.substrate import Jail
    from excise.pools.rules import Rules
    from excise.pools.size import Budget
    from excise.pools.through import pooled
    from excise.service.all_doors import all_doors
    from excise.service.cloud import Cloud
    from excise.service.keys import Ring, new_key
    from excise.service.serve import serving

    with tempfile.TemporaryDirectory() as scratch:
        jail = Jail(leases=Path(scratch, "leases"))
        pool = pooled(jail, Rules(budget=Budget(sandboxes=16)))
        cloud = Cloud(pool, Path(scratch, "state"))
        key, token = new_key("matrix", time.time())
        async with serving(cloud, all_doors(), Ring([key])) as desk:
            yield desk.url, token


if __name__ == "__main__":
    sys.exit(main())
