"""Descriptors: ours are complete, and a wrong one is refused with one line that says what is wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.tasks import load

NAMES = load.names()


@pytest.fixture(scope="module")
def good() -> dict[str, Any]:
    return msgspec.to_builtins(load.task("attrs-1417"))


def inline(value: Any) -> str:
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(k)} = {inline(v)}" for k, v in value.items()) + "}"
    if isinstance(value, list | tuple):
        return "[" + ", ".join(inline(v) for v in value) + "]"
    return json.dumps(value)


def toml(descriptor: dict[str, Any]) -> bytes:
    return "\n".join(f"{k} = {inline(v)}" for k, v in descriptor.items()).encode()


def refused(descriptor: dict[str, Any]) -> str:
    with pytest.raises(InputError) as caught:
        load.parse(toml(descriptor), where="mine.toml")
    message = str(caught.value)
    assert message.startswith("mine.toml: ")
    assert "\n" not in message
    return message


def without_nones(good: dict[str, Any], **changes: Any) -> dict[str, Any]:
    return {k: v for k, v in {**good, **changes}.items() if v is not None}


@pytest.mark.parametrize("name", NAMES)
def test_every_task_of_ours_loads_and_has_fifteen_cycles_that_end_in_the_fix(name: str) -> None:
    task = load.task(name)
    assert task.id == name
    assert len(task.cycles) == 15
    assert task.cycles[-1].edit == load.GOLD


@pytest.mark.parametrize("name", NAMES)
def test_the_last_cycle_runs_a_check_so_that_every_length_sees_it_fail(name: str) -> None:
    task = load.task(name)
    assert task.cycles[-1].test in {check.path for check in task.checks}


@pytest.mark.parametrize("name", NAMES)
def test_no_edit_before_the_last_touches_a_file_that_the_last_test_is_in(name: str) -> None:
    task = load.task(name)
    edited = {cycle.edit for cycle in task.cycles[:-1]}
    assert not edited & {*task.tests, *(check.path for check in task.checks)}


def test_there_are_at_least_five_tasks_and_a_large_one() -> None:
    assert len(NAMES) >= 5
    assert {"attrs-1417", "django-524"} <= set(NAMES)


def test_a_users_file_anywhere_is_a_task_like_ours(tmp_path: Path, good: dict[str, Any]) -> None:
    file = tmp_path / "mine.toml"
    file.write_bytes(toml(without_nones(good, id="mine")))
    assert load.task(str(file)).id == "mine"
    assert load.task(file) == load.task(str(file))


def test_an_unknown_name_is_answered_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"no task 'atrs'; there are attrs-1417, .*\.toml"):
        load.task("atrs")


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"cannot read the task .*absent\.toml: No such file"):
        load.task(tmp_path / "absent.toml")
    with pytest.raises(InputError, match="Is a directory"):
        load.task(tmp_path)


def test_what_is_no_toml_is_refused_in_one_line() -> None:
    for content in (b"id = [", b"\xff\xfe", b"", b"id = 1"):
        with pytest.raises(InputError, match=r"^mine\.toml: ") as caught:
            load.parse(content, where="mine.toml")
        assert "\n" not in str(caught.value)


@pytest.mark.parametrize("field", ["id", "base", "checks", "cycles", "runner", "inspect"])
def test_a_missing_field_is_named(good: dict[str, Any], field: str) -> None:
    assert field in refused(without_nones(good, **{field: None}))


def test_an_unknown_field_is_named(good: dict[str, Any]) -> None:
    assert "colour" in refused(without_nones(good, colour="red"))


def test_a_wrong_type_is_told_with_its_place(good: dict[str, Any]) -> None:
    assert "$.base.version" in refused(without_nones(good, base={**good["base"], "version": 25}))


@pytest.mark.parametrize(
    ("release", "said"),
    [
        ({"sha256": "18a06db706db43ac"}, "all 64 hex digits"),
        ({"sha256": "G" * 64}, "all 64 hex digits"),
        ({"tree": "5f9691e6"}, "40 hex digits"),
        ({"version": "-r evil.txt"}, "is not a version"),
    ],
)
def test_a_release_must_be_named_in_full(
    good: dict[str, Any], release: dict[str, str], said: str
) -> None:
    assert said in refused(without_nones(good, fixed={**good["fixed"], **release}))


@pytest.mark.parametrize("field", ["delete", "sources", "tests", "search_in"])
@given(
    path=st.sampled_from(["/etc/passwd", "../x", "a/../../b", "", ".git/hooks/x", "~/x", "a\nb"])
)
def test_a_path_out_of_the_repository_is_refused(field: str, path: str) -> None:
    good = msgspec.to_builtins(load.task("attrs-1417"))
    message = refused(without_nones(good, **{field: [path]}))
    assert field in message
    assert "stay in it" in message


@given(st.lists(st.sampled_from(["a", "b.c", "d e", ".x", "..y"]), min_size=1))
def test_a_path_that_stays_inside_is_taken(parts: list[str]) -> None:
    good = msgspec.to_builtins(load.task("attrs-1417"))
    path = "/".join(parts)
    task = load.parse(toml(without_nones(good, delete=[path])), where="mine.toml")
    assert task.delete == (path,)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"checks": []}, "checks is empty"),
        ({"tests": []}, "tests is empty"),
        ({"id": "Mine+x"}, "id 'Mine+x'"),
        ({"runner": "pytest"}, "runner must contain {python}"),
        ({"requirements": ["pytest"]}, "must be NAME==VERSION"),
        ({"requirements": ["Attrs==25.3.0"]}, "is the package itself"),
        ({"upstream_commit": "v25"}, "40 hex digits"),
        ({"cycles": []}, 'edit = "gold"'),
        ({"python_path": "src:../lib"}, "leads out of the repository"),
        ({"golden": {"k10": {"sha256": "0" * 64, "python": "3.11"}}}, "golden.k10 is no workload"),
        ({"golden": {"K10": {"sha256": "0", "python": "3.11"}}}, "golden.K10.sha256"),
    ],
)
def test_what_a_type_cannot_say_is_checked_too(
    good: dict[str, Any], changes: dict[str, Any], said: str
) -> None:
    assert said in refused(without_nones(good, **changes))
