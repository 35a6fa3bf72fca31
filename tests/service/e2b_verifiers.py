"""What verifiers does with its E2B runtime, in an environment that has both: prints what came of it as JSON."""

from __future__ import annotations

import asyncio
import json
import sys

from verifiers.v1.runtimes import provision_runtime
from verifiers.v1.runtimes.e2b import E2BConfig


async def main() -> dict[str, object]:
    config = E2BConfig(image="host", workdir="/work/app", creates_per_sec=None)
    async with provision_runtime(config) as runtime:
        ran = await runtime.run(
            ["sh", "-c", "pwd; id -un; echo $A; echo hi >&2; exit 3"], {"A": "1"}
        )
        await runtime.write("/work/app/f", bytes(range(256)))
        same = await runtime.read("/work/app/f") == bytes(range(256))
        program = await runtime.run_program(["sh", "-c", "echo done; exit 4"], {})
        process = await runtime.open_process(["head", "-c", "4"], {})
        await process.write(b"\x00\xff\x80\n")
        heard = b"".join([part async for part in process.stdout])
        return {
            "ran": [ran.exit_code, ran.stdout, ran.stderr],
            "same": same,
            "program": [program.exit_code, program.stdout],
            "process": [heard.hex(), await process.wait()],
        }


json.dump(asyncio.run(main()), sys.stdout)
