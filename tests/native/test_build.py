"""What `native/build` makes, and what it says when it cannot."""

from __future__ import annotations

import os
import struct
import subprocess
from pathlib import Path

import excise
from excise.agent.binary import agent_binary

ROOT = Path(__file__).parents[2]
INTERPRETER, DYNAMIC_OBJECT = 3, 3


def identity(path: Path) -> tuple[int, int]:
    return path.stat().st_ino, path.stat().st_mtime_ns


def test_without_a_compiler_one_line_says_what_to_install_and_nothing_changes() -> None:
    before = identity(agent_binary())
    done = subprocess.run(
        [ROOT / "native/build"], env={**os.environ, "CC": "no-such-compiler"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert done.returncode == 1
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "apt install gcc" in done.stderr
    assert identity(agent_binary()) == before
    assert not list(agent_binary().parent.glob(".build.*"))


def test_the_program_says_the_packages_version(built: Path) -> None:
    for program in (agent_binary(), built / "excise-agent-asan"):
        said = subprocess.run([program, "--version"], capture_output=True, text=True, check=True)
        assert said.stdout == f"excise-agent {excise.__version__}\n"


def test_the_program_needs_nothing_of_the_image_it_runs_in_and_lies_anywhere() -> None:
    elf = agent_binary().read_bytes()
    kind = struct.unpack_from("<H", elf, 16)[0]
    at = struct.unpack_from("<Q", elf, 32)[0]
    size, count = struct.unpack_from("<HH", elf, 54)
    parts = {struct.unpack_from("<I", elf, at + size * n)[0] for n in range(count)}
    assert INTERPRETER not in parts, "it is static"
    assert kind == DYNAMIC_OBJECT, "it is position independent"
