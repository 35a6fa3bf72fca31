"""Every version of the SDKs that the doors promise to serve, each in an environment of its own, against a real service.

`make sdk-matrix`, or `python scripts/sdk_matrix.py daytona [--write]`. With `--write` the tables of the documentation
are written anew. Environments are kept in the cache folder; `latest` is looked up every time.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from importlib import util
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parents[1]
TESTS = ROOT / "tests" / "service"
UV = str(ROOT / ".tools" / "bin" / "uv")
LONGEST_S = 570.0
Found = dict[str, Any]


@dataclass(frozen=True)
class Part:
    """One SDK: its package, its versions, what is run with each, and how it is told where the service is."""

    package: str
    versions: tuple[str, ...]
    program: Path
    kinds: tuple[str, ...]
    environment: Callable[[str, str], dict[str, str]]
    page: Path


def daytona_environment(url: str, token: str) -> dict[str, str]:
    return {"DAYTONA_API_URL": f"{url}/api", "DAYTONA_API_KEY": token}


PARTS = {
    "daytona": Part(
        "daytona",
        ("0.155.0", "0.170.0", "0.190.1", "0.210.0", "latest"),
        TESTS / "daytona_exercises",
        ("blocking", "async"),
        daytona_environment,
        ROOT / "docs" / "daytona.md",
    )
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("parts", nargs="*", choices=[*PARTS, []], default=list(PARTS))
    parser.add_argument("--write", action="store_true", help="write the documentation's tables")
    asked = parser.parse_args()
    failed = 0
    for name in asked.parts or list(PARTS):
        part = PARTS[name]
        results = [asyncio.run(tried(part, version)) for version in part.versions]
        failed += sum(told(found) for found in results)
        if asked.write and not failed:
            write(part, results)
    return 1 if failed else 0


def told(found: Found) -> int:
    """Print one version's outcome; how many exercises failed."""
    failed = 0
    for exercises in found["failed"].values():
        for name, why in exercises.items():
            absent = why.startswith("absent")
            failed += not absent
            print(f"  {name}: {why if absent else why[-2000:]}")
    print(f"{found['version']}: {len(found['works'])} methods work, {failed} exercises failed")
    return failed


async def tried(part: Part, version: str) -> Found:
    """What every kind of one version found, put together: a method works if it does in every kind that has it."""
    python = installed(part.package, version)
    found: list[Found] = []
    for kind in part.kinds:
        async with service() as (url, token):
            env = os.environ | part.environment(url, token)
            words = (python, "-W", "ignore", str(part.program), kind)
            process = await asyncio.create_subprocess_exec(
                *words, env=env, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await asyncio.wait_for(process.communicate(), LONGEST_S)
            found.append(json.loads(out))
    first = found[0]
    for other in found[1:]:
        for group, failures in other["failed"].items():
            for name, why in failures.items():
                if not why.startswith("absent"):
                    first["failed"][group][name] = why
    return first


def installed(package: str, version: str) -> str:
    """The interpreter of an environment that has that version."""
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "excise" / "sdk" / f"{package}-{version}"
    python = str(folder / "bin" / "python")
    if not (folder / "complete").exists() or version == "latest":
        wanted = package if version == "latest" else f"{package}=={version}"
        make = [UV, "venv", "--quiet", "--clear", "--python", sys.executable, str(folder)]
        subprocess.run(make, check=True)
        add = [UV, "pip", "install", "--quiet", "--python", python, wanted]
        subprocess.run(add, check=True, env=os.environ | {"UV_LINK_MODE": "copy"})
        (folder / "complete").touch()
    return python


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


def write(part: Part, results: list[Found]) -> None:
    """The tables of the part's page."""
    tables = _module(part.program / "tables.py")
    text = "\n\n".join(
        (tables.versions(results), tables.works(results[-1]), tables.refused(results[-1]))
    )
    part.page.write_text(tables.written(part.page.read_text(encoding="utf-8"), text), "utf-8")


def _module(path: Path) -> ModuleType:
    spec = util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


if __name__ == "__main__":
    sys.exit(main())
