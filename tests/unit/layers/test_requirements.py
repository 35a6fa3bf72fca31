"""Requirements are exact or refused, and the same ones are the same recipe."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.layers.recipes.relocate import rewritten
from excise.layers.recipes.requirements import are_hashed, names_in, pinned
from excise.layers.runner import last_words

NAME = st.from_regex(r"[A-Za-z][A-Za-z0-9]{0,8}", fullmatch=True)
LINES = st.lists(st.builds("{}=={}.{}".format, NAME, st.integers(0, 9), st.integers(0, 9)))

COMPILED = """\
# made by a tool
attrs==25.3.0 \\
    --hash=sha256:aa \\
    --hash=sha256:bb   # why
six==1.17.0 ; python_version < "4" --hash=sha256:cc
"""


@given(LINES, st.randoms())
def test_order_and_repetition_do_not_matter(lines, random) -> None:
    shuffled = [*lines, *lines]
    random.shuffle(shuffled)
    assert pinned(shuffled) == pinned(lines)


@given(LINES)
def test_what_was_understood_is_understood_again(lines) -> None:
    assert pinned(pinned(lines)) == pinned(lines)


def test_a_compiled_file_with_hashes_is_understood() -> None:
    found = pinned(COMPILED)
    assert [line.split("==")[0] for line in found] == ["attrs", "six"]
    assert found[0] == "attrs==25.3.0 --hash=sha256:aa --hash=sha256:bb"
    assert are_hashed(found)
    assert names_in(found) == {"attrs", "six"}


@pytest.mark.parametrize(
    "line",
    [
        "attrs",
        "attrs>=25",
        "attrs==25.*",
        "attrs==1,==2",
        "-r other.txt",
        "-e .",
        "--index-url=http://x",
        "./folder",
        "attrs @ https://example.org/x.whl",
        "attrs==1 --config-settings=x",
        "attrs==1 -r other",
    ],
)
def test_what_is_not_one_exact_version_is_refused(line) -> None:
    with pytest.raises(InputError, match="one exact version"):
        pinned(line)


def test_hashes_on_some_are_refused() -> None:
    with pytest.raises(InputError, match="'b==1' has no --hash"):
        pinned("a==1 --hash=sha256:aa\nb==1")


@pytest.mark.parametrize("line", ["A_b.C==1", "a-b-c[x,y]==1", 'a.b-c ==1; os_name=="x"'])
def test_a_name_is_read_as_indexes_do(line) -> None:
    assert names_in(pinned(line)) == {"a-b-c"}


def test_a_script_with_a_shell_in_front_gets_its_interpreter_directly() -> None:
    long = b"/very/long" * 20
    text = b"#!/bin/sh\n'''exec' " + long + b"/bin/python \"$0\" \"$@\"\n' '''\nimport sys\n"
    assert rewritten(text, long, b"/opt/env") == b"#!/opt/env/bin/python\nimport sys\n"
    assert rewritten(text, b"/nothing", b"/x") == text


@pytest.mark.parametrize(
    ("said", "told"),
    [
        ("", "no reason given"),
        ("a\n\n  b \n", "b"),
        ("ERROR: one\nERROR: two\nhint", "ERROR: two"),
        ("error: no\n  cause: deep\n\n  more", "error: no; cause: deep"),
        ("E: Unable to locate package x\n", "E: Unable to locate package x"),
    ],
)
def test_of_a_programs_complaints_the_useful_line_is_told(said, told) -> None:
    assert last_words(said, "") == told


def test_a_program_is_not_rewritten() -> None:
    data = b"\x7fELF\0/old/place"
    assert rewritten(data, b"/old/place", b"/new") == data
