"""Long scripts go through a file, and do there what they would have done as an argument."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excise.errors import InputError
from excise.substrates.script import ARGUMENT_LIMIT_BYTES, check, spill

SCRIPTS = [
    'echo "$0|$1|$#"; read line; echo "[$line]"; exit 7',
    "false; echo $?; (exit 3)",
    "cat <<'EOF'\nwith $dollar and \\ and 'quotes'\nEOF",
    "echo ok; if",
    "set -e; false; echo never",
    "trap 'echo bye' EXIT; exit 4",
    "return 5; echo after",
    "exec bash -c 'exit 6'",
    "kill -9 $$",
]


@pytest.mark.parametrize("program", ["bash", "/bin/sh"])
@pytest.mark.parametrize("script", SCRIPTS)
def test_a_spilled_script_behaves_like_the_argument(script, program, tmp_path):
    argv = (program, "-c", script, "name", "one")
    path = tmp_path / "it's a file"
    spilled = spill(argv, str(path), limit_bytes=1)
    path.write_bytes(spilled.data)
    direct, through = (
        subprocess.run(a, input=b"line\n", capture_output=True, check=False)
        for a in (argv, spilled.argv)
    )
    assert (through.returncode, through.stdout) == (direct.returncode, direct.stdout)
    assert bool(through.stderr) == bool(direct.stderr)


@settings(max_examples=20)
@given(st.integers(-3, 3))
def test_only_what_the_kernel_would_refuse_is_spilled(delta):
    argv = ("bash", "-c", "#" * (ARGUMENT_LIMIT_BYTES + delta))
    assert (spill(argv, "/f") is not None) == (delta > 0)


def test_the_limit_counts_bytes_and_not_characters():
    assert spill(("bash", "-ec", "ü" * (ARGUMENT_LIMIT_BYTES // 2 + 1)), "/f") is not None


def test_what_is_no_script_is_left_alone():
    long = "x" * 200_000
    for argv in (("echo", long), ("bash", long), ("bash", "-x", long), ("python3", "-c", long)):
        assert spill(argv, "/f") is None


@pytest.mark.parametrize("argv", [(), ("bash", "-c", "echo \0")])
def test_what_cannot_be_started_at_all_is_bad_input(argv):
    with pytest.raises(InputError):
        check(argv)
