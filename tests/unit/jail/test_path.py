"""A spec as a path of stages: what two specs share, and where one can be cut."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.jail.path import cut, laid, steps_of
from excise.pools.stage import Kind
from excise.types import Deps, Egress, Limits, Repo, Spec

ONE, OTHER = "1" * 40, "2" * 40
DEPS = Deps(("attrs==25.3.0",))

specs = st.builds(
    Spec,
    image=st.sampled_from(["host", "python:3.12", "other"]),
    deps=st.sampled_from([(), (DEPS,), (DEPS, Deps(("six==1.17.0",), path="/opt/other"))]),
    repo=st.sampled_from([None, Repo("/source", ONE), Repo("/source", OTHER)]),
)


def kinds(spec: Spec) -> list[Kind]:
    return [step.kind for step in steps_of(laid(spec))]


def test_dependencies_stand_between_image_and_repository() -> None:
    whole = Spec(image="python:3.12", deps=(DEPS,), repo=Repo("/source", ONE))
    assert kinds(whole) == [Kind.BASE, Kind.IMAGE, Kind.DEPENDENCIES, Kind.REPO]
    assert kinds(Spec()) == [Kind.BASE]
    assert kinds(Spec(image="snapshot:1")) == [Kind.BASE, Kind.SNAPSHOT]


def test_two_commits_share_all_but_themselves() -> None:
    one, other = (steps_of(laid(Spec(deps=(DEPS,), repo=Repo("/s", c)))) for c in (ONE, OTHER))
    assert one[:-1] == other[:-1]
    assert one[-1] != other[-1]


@given(specs, specs)
def test_a_key_names_its_stage_and_all_below(one, other) -> None:
    a, b = steps_of(laid(one)), steps_of(laid(other))
    for step in {step.key for step in a} & {step.key for step in b}:
        depth = [s.key for s in a].index(step)
        assert a[: depth + 1] == b[: depth + 1]


@given(specs, st.integers(1, 5))
def test_a_cut_spec_has_the_first_stages(spec, depth) -> None:
    assert steps_of(laid(cut(spec, depth))) == steps_of(laid(spec))[:depth]


@given(specs)
def test_what_is_bound_late_is_no_part_of_the_path(spec) -> None:
    bound = Spec(
        spec.image, spec.repo, Limits(cpus=4), Egress.FULL, {"A": "1"}, "x", {"b": "2"}, spec.deps
    )
    assert laid(bound) == laid(spec)


@pytest.mark.parametrize(
    ("deps", "said"),
    [
        (Deps(("attrs",)), "not one exact version"),
        (Deps(("attrs==1",), installer="conda"), "no installer 'conda'"),
        (Deps(("attrs==1",), path="environment"), "no place in an environment"),
    ],
)
def test_what_can_be_no_layer_is_refused_before_anything_is_made(deps, said) -> None:
    with pytest.raises(InputError, match=said):
        steps_of(laid(Spec(deps=(deps,))))
