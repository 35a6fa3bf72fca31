import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.measure import trailer
from excise.types import Action, Observation

NONCE = "a1b2c3"


def bash(action: Action, cwd: Path | None = None) -> tuple[int, bytes, bytes]:
    done = subprocess.run(
        action.argv, input=action.stdin, capture_output=True, check=False, cwd=cwd
    )
    return done.returncode, done.stdout, done.stderr


SCRIPTS = [
    "echo hello",
    "printf 'no newline at the end'",
    "printf 'nul \\0 and high \\377 bytes'",
    "exit 7",
    "set -e; false; echo not reached",
    "exec true",
    "exec sh -c 'echo replaced; exit 3'",
    "exec >/dev/null; echo lost",
    "true\n\nno_such_program",
    "cat <<'EOF'\nit's a \"here\" document $HOME \\n\nEOF",
    "echo out; echo err >&2",
    "trap 'echo leaving' EXIT; exit 4",
    "kill -9 $BASHPID",
    "kill -TERM $BASHPID",
    "cd /; pwd; # a comment at the end",
    "f() { return 5; }; f",
    "cat",
    "echo 'EXCISE a1b2c3 0 1.0 2.0'",
    "",
]


@pytest.mark.parametrize("script", SCRIPTS)
@pytest.mark.parametrize("merge", [True, False])
def test_a_wrapped_script_gives_what_the_script_alone_gives(script, merge):
    plain = Action.shell(script, merge=merge, stdin=b"fed\n")
    code, out, err = bash(plain)
    wrapped_code, wrapped_out, wrapped_err = bash(trailer.wrap_action(plain, NONCE))
    stripped, found = trailer.parse(wrapped_out, NONCE)
    assert found is not None
    shell_code = 128 - code if code < 0 else code
    assert (wrapped_code, found.exit_code) == (shell_code, shell_code)
    assert (stripped, wrapped_err) == (out, err)
    assert 0 <= found.inside_ns < 60e9


def test_a_syntax_error_is_the_scripts_and_still_timed():
    code, out, err = bash(trailer.wrap_action(Action.shell("if ("), NONCE))
    stripped, found = trailer.parse(out, NONCE)
    assert code != 0
    assert found is not None
    assert stripped == b""
    assert b"syntax error" in err


def test_a_shell_that_is_killed_leaves_its_output_and_no_time():
    _, out, _ = bash(trailer.wrap_action(Action.shell("echo before; kill -9 $$; sleep 1"), NONCE))
    assert trailer.parse(out, NONCE) == (b"before\n", None)
    seen = Observation(137, stdout=out)
    assert trailer.strip(seen, NONCE) is seen


def test_a_persistent_shell_keeps_directory_and_variables():
    first = trailer.wrap_told("cd /; x=1; false", NONCE)
    second = trailer.wrap_told('echo "$x in $PWD"', "second")
    done = subprocess.run(
        ["bash"], input=(first + second).encode(), capture_output=True, check=True
    )
    rest, told = trailer.parse(done.stdout, NONCE)
    assert told is not None
    assert told.exit_code == 1
    assert trailer.parse(rest, "second")[0] == b"1 in /\n"


@given(st.binary(max_size=200), st.binary(max_size=50), st.integers(0, 255), st.integers(0, 10**9))
def test_whatever_the_output_is_the_trailer_comes_off(before, after, code, micros):
    line = b"\nEXCISE n0nce %d 1700000000.000001 %d.%06d\n" % (code, 1700000001, micros % 10**6)
    stripped, found = trailer.parse(before + line + after, "n0nce")
    assert stripped == before + after
    assert found is not None
    assert found.exit_code == code


@given(st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=80))
def test_the_script_reaches_the_shell_unchanged(text):
    quoted = trailer._quoted(text)
    assert "\n" not in quoted
    done = subprocess.run(["bash", "-c", f"printf %s {quoted}"], capture_output=True, check=True)
    assert done.stdout == text.encode()


@given(st.binary(max_size=300))
def test_output_without_a_trailer_is_left_alone(output):
    assert trailer.parse(output, "n0nce") == (output, None)


def test_a_comma_as_decimal_point_is_understood():
    assert trailer.parse(b"\nEXCISE n 0 1,500000 2,000000\n", "n")[1] == trailer.Trailer(
        0, 500_000_000
    )


def test_stripping_counts_the_bytes_of_the_script_alone():
    line = b"\nEXCISE n 0 1.000000 2.000000\n"
    seen = trailer.strip(Observation(0, stdout=b"ab" + line, stdout_bytes=2 + len(line)), "n")
    assert (seen.stdout, seen.stdout_bytes, seen.inside_ns) == (b"ab", 2, 1_000_000_000)


@pytest.mark.parametrize("nonce", ["", "a b", "$(x)", "é"])
def test_a_nonce_that_a_shell_could_read_is_refused(nonce):
    with pytest.raises(ValueError, match="nonce"):
        trailer.wrap("true", nonce)
