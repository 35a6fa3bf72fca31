"""What is said over exec: the line of shell around a command, run by a real one, and the channels' messages."""

from __future__ import annotations

import subprocess
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.substrates.kubernetes import channels, wrapping
from excise.substrates.shell import Frame
from excise.types import Fault

MARK = "0123456789abcdef" * 2


def run(*argv: str, cwd: str = "/", stdin: bytes | None = None, env: dict | None = None):
    """By the shell of this host: its code, its two framed outputs and the fault."""
    size = None if stdin is None else len(stdin)
    command = wrapping.wrapped(argv, cwd=cwd, env=env or {}, mark=MARK, stdin_bytes=size)
    done = subprocess.run(command, input=stdin or b"", capture_output=True, check=False)
    out, err = (Frame(b"\x1e" + MARK.encode() + b":", 1 << 20) for _ in range(2))
    out.feed(done.stdout)
    err.feed(done.stderr)
    assert out.done
    assert err.done
    code = int(out.value or b"")
    return code, out.output.kept, wrapping.fault_in(code, err.output.kept, MARK)


def test_a_command_has_its_directory_its_variables_and_its_words(tmp_path: Path) -> None:
    env = {"ODD": "a b'\"$x\nü"}
    assert run("pwd", cwd=str(tmp_path))[1] == f"{tmp_path}\n".encode()
    assert run("printenv", "ODD", env=env)[1] == f"{env['ODD']}\n".encode()
    assert run("printf", "%s|", "a b", "", "$HOME", "-n")[1] == b"a b||$HOME|-n|"


def test_input_ends_where_it_was_said_to() -> None:
    assert run("cat", stdin=b"a\0b\xff")[:2] == (0, b"a\0b\xff")
    assert run("true", stdin=bytes(4 << 20))[0] == 0


@pytest.mark.parametrize(
    ("argv", "cwd", "code", "fault"),
    [
        (("no-such-program",), "/", 127, Fault.MISSING_PROGRAM),
        (("/etc/passwd",), "/", 126, Fault.NOT_EXECUTABLE),
        (("true",), "/no/such", 126, Fault.MISSING_CWD),
        (("sh", "-c", "exit 127"), "/", 127, None),
        (("sh", "-c", "no-such-program"), "/", 127, None),
        (("sh", "-c", "kill -9 $$"), "/", 137, None),
    ],
)
def test_codes_and_faults_are_apart(
    argv: tuple[str, ...], cwd: str, code: int, fault: Fault | None
) -> None:
    found = run(*argv, cwd=cwd)
    assert (found[0], found[2]) == (code, fault)


def test_a_name_that_no_shell_can_export_is_refused() -> None:
    with pytest.raises(InputError, match=r"a\.b"):
        wrapping.exports({"a.b": "1"})


@given(
    st.lists(
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20),
        min_size=1,
    )
)
def test_the_command_survives_the_address(words: list[str]) -> None:
    at = channels.path("space", "pod", "box", words, stdin=False)
    query = parse_qsl(urlsplit(at).query, keep_blank_values=True, errors="surrogateescape")
    assert [value for name, value in query if name == "command"] == words


@given(st.binary(max_size=300_000))
def test_input_is_sent_whole_and_in_pieces(data: bytes) -> None:
    sent = list(channels.pieces(data))
    assert all(piece[0] == channels.STDIN for piece in sent)
    assert b"".join(piece[1:] for piece in sent) == data


def test_ends_are_read_from_the_status() -> None:
    failed = (
        b'{"status": "Failure", "details": {"causes": [{"reason": "ExitCode", "message": "7"}]}}'
    )
    assert channels.end_in(b'{"status": "Success"}') == (0, "")
    assert channels.end_in(failed) == (7, "")
    assert channels.end_in(b'{"status": "Failure", "message": "gone"}') == (None, "gone")
    assert channels.end_in(b"not json") == (None, "not json")
