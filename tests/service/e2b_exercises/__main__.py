"""What the unmodified E2B SDK is used for, exercise by exercise, in whatever version this environment has.

`python tests/service/e2b_exercises [blocking|async]`, with the SDK's variables set, prints what works as JSON.
"""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from importlib import import_module
from importlib.metadata import version

from calling import EXERCISES, Absent, Sdk

for part in ("sandboxes", "commands", "files"):
    import_module(part)

LONGEST_S = 50


async def main(*, blocking: bool) -> dict[str, object]:
    sdk = Sdk(blocking)
    found = {}
    for name, each in EXERCISES.items():
        box = await sdk(sdk.sandbox.create)
        try:
            await asyncio.wait_for(each(sdk, box), LONGEST_S)
        except Absent as absent:
            found[name] = f"absent: {absent}"
        except Exception:  # noqa: BLE001  # told
            found[name] = traceback.format_exc()
        else:
            found[name] = "works"
        finally:
            await sdk(box.kill)
    return {"version": version("e2b"), "found": found}


if __name__ == "__main__":
    json.dump(asyncio.run(main(blocking="async" not in sys.argv[1:])), sys.stdout, indent=1)
