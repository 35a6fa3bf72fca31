"""A demand that is written down is decided by the same code as a pool's own."""

from __future__ import annotations

import msgspec
import pytest

from excise.errors import InputError
from excise.pools.stage import Kind
from excise.pools.written import Asked, There, Waits, Written, decide, parse, path_of

C1 = "image:a=20/dependencies:d1=15/repository:c1=2"
C2 = "image:a=20/dependencies:d1=15/repository:c2=2"
C7 = "image:a=20/dependencies:d2=9/repository:c7=2"
EXAMPLE = Written(
    sandboxes=4,
    wanted=(Asked(C1, per_s=0.01), Asked(C2, pinned=1), Asked(C7, expected=1)),
    idle=(There("one", C1), There("two", C7, idle_s=60.0)),
    waiting=(Waits("r", C2),),
)


def test_a_path_is_read_with_its_prices():
    path = path_of(C1)
    assert [stage.kind for stage in path] == [Kind.IMAGE, Kind.DEPENDENCIES, Kind.REPO]
    assert [stage.price_s for stage in path] == [20.0, 15.0, 2.0]
    assert path[1].key == "a/d1"


def test_the_worked_example_of_the_documentation():
    decided = decide(EXAMPLE)
    [match] = decided.matches
    assert (match.worker.name, match.shared, match.left_s) == ("one", 2, 2.0)
    assert [decided.names[copy.key] for copy in decided.worthy][:2] == ["a/d1/c2", "a/d2/c7"]
    assert next(decided.names[copy.key] for copy in decided.plan.fill) == "a/d1/c2"


def test_a_file_says_the_same():
    assert parse(msgspec.json.encode(EXAMPLE), where="file") == EXAMPLE


@pytest.mark.parametrize(
    "text", [b"{", b"{}", b'{"sandboxes": "many"}', b'{"sandboxes": 1, "colour": 2}']
)
def test_what_is_no_such_file_is_told_in_one_line(text):
    with pytest.raises(InputError, match=r"^file: .*docs/pools.md"):
        parse(text, where="file")


@pytest.mark.parametrize("path", ["", "image", "image:a=x", "planet:a=1", "image:=1", "image:a=-1"])
def test_a_path_that_is_none_is_refused(path):
    with pytest.raises(InputError):
        path_of(path)


def test_a_budget_that_serves_nobody_is_refused():
    with pytest.raises(InputError, match="less than one sandbox takes"):
        decide(Written(sandboxes=4, memory_bytes=10, copy_bytes=100))
