"""Two streams on one connection, as the SDK takes them apart again; and what old versions send."""

from __future__ import annotations

import base64
import subprocess

from hypothesis import given
from hypothesis import strategies as st

from excise.service.daytona.holding import AGAIN_S, FIRST_S, hold_s
from excise.service.daytona.marks import STDERR, STDOUT, marked, stream_of
from excise.service.daytona.versions import NEWEST, unwrapped, version_of

PIECES = st.lists(
    st.tuples(
        st.sampled_from([1, 2]),
        st.binary(max_size=40).filter(lambda data: not set(data) & {1, 2}),
    ),
    max_size=20,
)


def apart(data: bytes) -> dict[int, bytes]:
    """As the SDK does it."""
    found, now = {1: b"", 2: b""}, 0
    while data:
        places = [(data.find(mark), number) for number, mark in ((1, STDOUT), (2, STDERR))]
        at, number = min(((at, n) for at, n in places if at >= 0), default=(len(data), 0))
        if now:
            found[now] += data[:at]
        data, now = data[at + 3 :], number
    return found


@given(PIECES)
def test_the_sdk_finds_each_stream_again(pieces):
    assert apart(marked(pieces)) == {n: stream_of(pieces, n) for n in (1, 2)}


@given(PIECES)
def test_a_mark_stands_only_where_the_stream_changes(pieces):
    streams = [number for number, data in pieces if data]
    changes = sum(1 for a, b in zip([0, *streams], streams, strict=False) if a != b)
    data = marked(pieces)
    assert data.count(STDOUT) + data.count(STDERR) == changes


def wrapped(command: str, env: dict[str, str]) -> str:
    """As versions before 0.170 send it."""
    encoded = base64.b64encode(command.encode()).decode()
    line = f"echo '{encoded}' | base64 -d | sh"
    if env:
        exports = ";".join(
            f"export {key}=$(echo '{base64.b64encode(value.encode()).decode()}' | base64 -d)"
            for key, value in env.items()
        )
        line = f"{exports}; {line}"
    return f'sh -c "{line}"'


NAMES = st.from_regex(r"[A-Za-z_][A-Za-z0-9_]{0,8}", fullmatch=True)


@given(st.text(max_size=60), st.dictionaries(NAMES, st.text(max_size=30), max_size=4))
def test_what_old_versions_wrap_is_unwrapped(command, env):
    assert unwrapped(wrapped(command, env)) == (command, env)


@given(st.text(max_size=100))
def test_other_commands_are_left_alone(command):
    assert unwrapped(command) is None


def test_the_wrapping_means_what_a_shell_makes_of_it():
    line = wrapped("echo $A-$B", {"A": "1", "B": "two"})
    done = subprocess.run(["sh", "-c", line], capture_output=True, text=True, check=True)
    assert done.stdout == "1-two\n"


@given(st.text(max_size=30))
def test_any_word_about_a_version_is_taken(text):
    assert version_of(text) <= NEWEST


def test_versions_are_ordered():
    assert version_of("0.155.0") < version_of("v0.170.2") < version_of("0.226.1") < version_of(None)


def test_who_asks_again_waits_and_who_asks_once_does_not_for_long():
    assert hold_s(0) == FIRST_S < hold_s(1) == hold_s(7) == AGAIN_S < 30
