"""Lines of shell for clouds, run here by the shell that a cloud would use."""

from __future__ import annotations

import os
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from excise.errors import InputError
from excise.substrates.hosted.lines import line_of, observation_of
from excise.types import Action, Fault

WORD = st.text(st.characters(exclude_categories=("Cs",), exclude_characters="\0"), max_size=20)


def ran(action, *, one_stream=False, stdin=None, workspace=None):
    with tempfile.TemporaryDirectory() as folder:
        line = line_of(
            action, action.argv, workspace=workspace or folder, token="7oken", mark="MARK", stdin=stdin,
            one_stream=one_stream,
        )  # fmt: skip
        env = {"PATH": os.environ["PATH"]}
        done = subprocess.run(["bash", "-c", line.text], capture_output=True, env=env, check=False)
    out, err = done.stdout, done.stderr
    if one_stream:
        out, err = out + err, b""
    code = done.returncode
    return observation_of(
        line, code, out.decode("utf-8", "surrogateescape"), err.decode(), action.output_limit_bytes
    )


@settings(max_examples=25)
@given(st.lists(WORD, max_size=4), WORD, st.booleans())
def test_words_and_variables_arrive_as_they_are(words, value, one_stream):
    script = 'printf "%s|" "$V" "$@"'
    action = Action(("bash", "-c", script, "name", *words), env={"V": value})
    found = ran(action, one_stream=one_stream)
    assert found.stdout.decode() == "".join(f"{w}|" for w in (value, *words))
    assert (found.exit_code, found.stderr) == (0, b"")


@pytest.mark.parametrize("one_stream", [False, True])
def test_streams_are_told_apart_though_a_cloud_gives_one(one_stream):
    found = ran(Action.shell("echo out; echo err >&2; exit 3"), one_stream=one_stream)
    assert (found.exit_code, found.stdout, found.stderr) == (3, b"out\n", b"err\n")
    merged = ran(Action.shell("echo 1; echo 2 >&2; echo 3", merge=True), one_stream=one_stream)
    assert (merged.stdout, merged.stderr) == (b"1\n2\n3\n", b"")


@pytest.mark.parametrize("one_stream", [False, True])
@pytest.mark.parametrize(
    ("action", "fault", "code"),
    [
        (Action(("no-such-program",)), Fault.MISSING_PROGRAM, 127),
        (Action(("/no/such/program",)), Fault.MISSING_PROGRAM, 127),
        (Action(("/etc/passwd",)), Fault.NOT_EXECUTABLE, 126),
        (Action(("true",), cwd="/no/such"), Fault.MISSING_CWD, 126),
        (Action(("bash", "-c", "true"), cwd="/etc/passwd"), Fault.MISSING_CWD, 126),
    ],
)
def test_why_a_command_did_not_start_is_told(action, fault, code, one_stream):
    found = ran(action, one_stream=one_stream)
    assert (found.fault, found.exit_code) == (fault, code)


def test_a_script_that_only_ends_like_that_is_no_fault():
    assert ran(Action.shell("exit 127")).fault is None
    assert ran(Action.shell("no-such-program-here")).fault is None


def test_input_is_read_from_its_file_which_is_gone_then(tmp_path: Path):
    place = tmp_path / "input here"
    place.write_text("line\n")
    assert ran(Action(("cat",)), stdin=str(place)).stdout == b"line\n"
    assert not place.exists()
    assert ran(Action(("cat",))).stdout == b""


def test_output_over_the_limit_keeps_head_and_tail():
    found = ran(Action(("printf", "aaaaabbbbb"), output_limit_bytes=4))
    assert (found.stdout, found.truncated, found.stdout_bytes) == (b"aabb", True, 10)


def test_a_variable_that_no_shell_takes_is_refused():
    action = Action(("true",), env={"a b": "1"})
    with pytest.raises(InputError, match="no name"):
        line_of(action, action.argv, workspace="/", token="t", mark="M")
