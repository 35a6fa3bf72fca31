"""An environment as a path of layers."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.layers.budget import size_in_bytes
from excise.layers.key import key_of
from excise.layers.recipe import plan
from excise.types import Deps, Egress, Limits, Repo, Spec

COMMIT = "0123456789abcdef" * 2 + "01234567"
REPO = Repo(source="/somewhere", commit=COMMIT)


def test_a_bare_spec_stands_on_the_hosts_programs() -> None:
    assert plan(Spec()) == ({"kind": "base", "of": "host"},)


def test_the_image_is_below_the_repository() -> None:
    assert plan(Spec(image="python:3.12", repo=REPO)) == (
        {"kind": "image", "reference": "python:3.12"},
        {"kind": "repo", "commit": COMMIT, "at": "/work/repo"},
    )


def test_dependencies_are_below_the_repository_and_exact() -> None:
    deps = Deps(("six==1.17.0", "attrs==25.3.0"))
    image, installed, repo = plan(Spec(deps=(deps,), repo=REPO))
    assert (image["kind"], repo["kind"]) == ("base", "repo")
    assert installed["requirements"] == ["attrs==25.3.0", "six==1.17.0"]
    system = Deps(("ripgrep", "git", "git"), installer="apt")
    assert plan(Spec(deps=(system,)))[1]["packages"] == ["git", "ripgrep"]


def test_what_is_bound_late_changes_no_layer() -> None:
    late = Spec(
        repo=REPO,
        limits=Limits(cpus=4),
        egress=Egress.FULL,
        env={"A": "1"},
        user="x",
        labels={"b": "2"},
    )
    assert plan(late) == plan(Spec(repo=REPO))


def test_the_same_commit_from_elsewhere_is_the_same_layer() -> None:
    other = Repo(source="https://elsewhere", commit=COMMIT)
    assert plan(Spec(repo=other)) == plan(Spec(repo=REPO))


def test_specs_share_the_beginning_that_they_have_in_common() -> None:
    one = plan(Spec(image="a", repo=REPO))
    other = plan(Spec(image="a", repo=Repo("/s", COMMIT[::-1])))
    assert one[0] == other[0]
    assert one[1] != other[1]


@given(st.sampled_from(["host", "a", "docker://b:1"]), st.none() | st.just(REPO))
def test_every_recipe_of_a_plan_has_a_key(image, repo) -> None:
    assert len({key_of(recipe) for recipe in plan(Spec(image=image, repo=repo))}) in {1, 2}


def test_an_absolute_path_of_a_repository_is_kept() -> None:
    assert plan(Spec(repo=Repo("/s", COMMIT, "/testbed")))[1]["at"] == "/testbed"


@pytest.mark.parametrize("spec", [Spec(image=" "), Spec(repo=Repo("/s", "main"))])
def test_a_spec_without_a_fixed_environment_is_bad_input(spec) -> None:
    with pytest.raises(InputError):
        plan(spec)


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("0", 0),
        ("512", 512),
        ("1kB", 1000),
        ("1.5KiB", 1536),
        ("20GiB", 20 << 30),
        ("2 TB", 2 * 10**12),
        ("3m", 3_000_000),
    ],
)
def test_sizes_are_read_as_people_write_them(text, size) -> None:
    assert size_in_bytes(text) == size


@given(st.integers(0, 1 << 52))
def test_a_number_of_bytes_is_itself(size) -> None:
    assert size_in_bytes(str(size)) == size


@pytest.mark.parametrize("text", ["", "-1", "1XB", "GiB", "1e3", "nan"])
def test_what_is_no_size_is_bad_input(text) -> None:
    with pytest.raises(InputError, match="no size"):
        size_in_bytes(text)
