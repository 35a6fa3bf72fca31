"""What the unmodified Daytona SDK is used for, method by method, in an environment of its own.

`python tests/service/daytona_exercises [blocking|async]`, with the SDK's variables set, prints what works as JSON.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import sys
import traceback
from collections.abc import AsyncIterator, Iterator
from importlib import import_module
from importlib.metadata import version
from typing import Any

import daytona
from calling import EXERCISES, NOT_OFFERED, SERVICES, Absent, Called, Notes

for part in ("sandboxes", "processes", "files", "snapshots", "absent"):
    import_module(part)


@contextlib.asynccontextmanager
async def client_of(notes: Notes, config: Any = None, *, blocking: bool) -> AsyncIterator[Called]:
    """A client of either kind."""
    if blocking:
        yield Called(await asyncio.to_thread(daytona.Daytona, config), notes)
        return
    async with daytona.AsyncDaytona(config) as inner:
        yield Called(inner, notes)


async def run(group: str, notes: Notes, config: Any = None, *, blocking: bool) -> dict[str, str]:
    """What failed of one group, by exercise: `absent` where this version of the SDK has no such thing."""
    failed: dict[str, str] = {}
    async with client_of(notes, config, blocking=blocking) as client:
        box = await client.create()
        try:
            for each in EXERCISES[group]:
                try:
                    await asyncio.wait_for(each(client, box), 50)
                except (Absent, ImportError) as error:
                    failed[each.__name__] = f"absent: {error}"
                except AttributeError as error:
                    absent = "daytona" in str(error)
                    failed[each.__name__] = f"absent: {error}" if absent else traceback.format_exc()
                except Exception:  # noqa: BLE001  # told
                    failed[each.__name__] = traceback.format_exc()
        finally:
            await box.delete()
    return failed


async def main(*, blocking: bool) -> dict[str, object]:
    notes = Notes()
    failed: dict[str, dict[str, str]] = {}
    for group in EXERCISES:
        failed[group] = await run(group, notes, blocking=blocking)
    return {
        "version": version("daytona"),
        "works": sorted(notes.works),
        "refused": notes.refused,
        "offers": sorted(offers()),
        "failed": failed,
    }


def offers() -> set[str]:
    """Every public method of this version, except those that it calls deprecated itself."""
    found = set()
    for name in sorted(SERVICES):
        kind = next((k for k in _kinds(name) if k.__name__ == name), None)
        for member, value in vars(kind).items() if kind is not None else ():
            deprecated = "deprecated" in (getattr(value, "__doc__", "") or "")[:40].lower()
            if member.startswith("_") or not callable(value) or deprecated or member in NOT_OFFERED:
                continue
            found.add(f"{name}.{member}")
    return found


def _kinds(name: str) -> Iterator[type]:
    for module in list(sys.modules.values()):
        if getattr(module, "__name__", "").startswith("daytona."):
            found = getattr(module, name, None)
            if isinstance(found, type):
                yield found


if __name__ == "__main__":
    json.dump(asyncio.run(main(blocking="async" not in sys.argv[1:])), sys.stdout, indent=1)
