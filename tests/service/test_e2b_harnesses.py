"""Harnesses that reach sandboxes through the E2B SDK, unmodified: verifiers' runtime, and mini-swe-agent's agent.

Harbor has a file of its own.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
from pathlib import Path

import pytest

from .installed import ROOT, python_environment

HERE = Path(__file__).parent
LONGEST_S = 240
VERIFIERS, MINI = "verifiers[e2b]==0.4.0", "mini-swe-agent==2.4.6"
MINIS_OWN = (
    "e2b==2.63.0",
    "jinja2",
    "pydantic",
    "python-dotenv",
    "platformdirs",
    "rich",
    "typer",
    "pyyaml",
)
"""Without what its models need, which would be half a gigabyte."""


async def said(served, folder, *words):
    """What a program says, with the three variables set that lead it here."""
    url = served.url
    told = {
        "E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": served.token, "HOME": str(folder),
        "MSWEA_SILENT_STARTUP": "1", "MSWEA_GLOBAL_CONFIG_DIR": str(folder), "XDG_CACHE_HOME": str(folder),
    }  # fmt: skip
    clean = {name: value for name, value in os.environ.items() if "E2B" not in name}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(
        *map(str, words), env=clean | told, stdout=pipe, stderr=pipe
    )
    out, err = await asyncio.wait_for(process.communicate(), LONGEST_S)
    assert process.returncode == 0, err.decode()[-4000:]
    assert len(served.cloud.census) == 0, "it ended what it made"
    return json.loads(out.decode().splitlines()[-1])


@pytest.mark.timeout(LONGEST_S + 60)
def test_verifiers_runs_programs_in_its_e2b_runtime(serve, tmp_path):
    programs = python_environment("verifiers-0.4.0", VERIFIERS)

    async def work():
        async with serve("jail+pool") as served:
            found = await said(served, tmp_path, programs / "python", HERE / "e2b_verifiers.py")
        assert found == {
            "ran": [3, "/work/app\nroot\n1\n", "hi\n"],
            "same": True,
            "program": [4, "done\n"],
            "process": ["00ff800a", 0],
        }

    asyncio.run(work())


@pytest.mark.timeout(LONGEST_S + 60)
def test_mini_swe_agent_works_in_the_documented_environment(serve, tmp_path):
    programs = python_environment("mini-swe-agent-2.4.6", *MINIS_OWN, alone=MINI)
    page = (ROOT / "docs" / "e2b.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```python\n((?:(?!```).)*class E2BEnvironment.*?)```", page, re.DOTALL)
    (tmp_path / "documented.py").write_text(shown)

    async def work():
        async with serve("jail+pool") as served:
            words = (programs / "python", HERE / "e2b_mini.py", tmp_path / "documented.py")
            found = await said(served, tmp_path, *words)
        assert found["end"]["exit_status"] == "Submitted"
        assert found["end"]["submission"] == "print(6 * 7)\n"
        assert any("42\ncomplaint" in text and "5" in text for text in found["said"])

    asyncio.run(work())
