"""Eviction, as a pure function: what it may take, in which order, and what it never takes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from excise.layers.budget import Held, evict, worth

NOW = 1e9


@st.composite
def forests(draw):
    """Layers that stand on earlier ones, some of them in use, and a budget."""
    layers = []
    for number in range(draw(st.integers(0, 9))):
        below = draw(st.sets(st.sampled_from(layers), max_size=2)) if layers else set()
        layers.append(
            Held(
                id=f"{number}",
                parents=tuple(sorted(layer.id for layer in below)),
                bytes=draw(st.integers(0, 1000)),
                build_s=draw(st.floats(0, 100)),
                used_at=NOW - draw(st.floats(0, 1e6)),
            )
        )
    names = [layer.id for layer in layers]
    in_use = draw(st.sets(st.sampled_from(names))) if names else set()
    return layers, in_use, draw(st.integers(0, 3000))


def standing_on(layers, gone):
    """Layers that are kept although something below them is gone."""
    return [
        layer.id for layer in layers if layer.id not in gone and gone.intersection(layer.parents)
    ]


@given(forests())
def test_nothing_that_is_in_use_or_below_it_is_taken(case) -> None:
    layers, in_use, budget = case
    by_id = {layer.id: layer for layer in layers}
    needed, ahead = set(), list(in_use)
    while ahead:
        key = ahead.pop()
        needed.add(key)
        ahead += by_id[key].parents
    assert needed.isdisjoint(evict(layers, in_use, budget, now=NOW))


@given(forests())
def test_no_layer_goes_before_what_stands_on_it(case) -> None:
    layers, in_use, budget = case
    gone = evict(layers, in_use, budget, now=NOW)
    for number in range(len(gone) + 1):
        assert not standing_on(layers, set(gone[:number]))


@given(forests())
def test_each_goes_once_and_was_there(case) -> None:
    layers, in_use, budget = case
    gone = evict(layers, in_use, budget, now=NOW)
    assert len(set(gone)) == len(gone)
    assert set(gone) <= {layer.id for layer in layers}


@given(forests())
def test_the_budget_is_met_unless_all_that_is_left_is_needed(case) -> None:
    layers, in_use, budget = case
    gone = set(evict(layers, in_use, budget, now=NOW))
    left = [layer for layer in layers if layer.id not in gone]
    if sum(layer.bytes for layer in left) > budget:
        assert set(evict(left, in_use, 0, now=NOW)) == set()


@given(forests())
def test_nothing_goes_from_a_store_within_its_budget(case) -> None:
    layers, in_use, _ = case
    total = sum(layer.bytes for layer in layers)
    assert evict(layers, in_use, total, now=NOW) == ()


@given(forests(), st.integers(0, 3000))
def test_a_smaller_budget_takes_the_same_and_then_more(case, other) -> None:
    layers, in_use, budget = case
    smaller, larger = sorted((budget, other))
    more, fewer = (evict(layers, in_use, b, now=NOW) for b in (smaller, larger))
    assert more[: len(fewer)] == fewer


@given(forests(), st.randoms())
def test_the_order_in_which_layers_are_listed_does_not_matter(case, random) -> None:
    layers, in_use, budget = case
    shuffled = list(layers)
    random.shuffle(shuffled)
    assert evict(shuffled, in_use, budget, now=NOW) == evict(layers, in_use, budget, now=NOW)


def held(name, *, on=(), size=100, build_s=1.0, age_s=0.0):
    return Held(name, tuple(on), size, build_s, NOW - age_s)


def test_of_two_as_dear_the_larger_goes() -> None:
    layers = [held("small", size=10), held("large", size=1000)]
    assert evict(layers, (), 500, now=NOW) == ("large",)


def test_of_two_as_large_the_one_that_is_built_sooner_goes() -> None:
    layers = [held("dear", build_s=60.0), held("cheap", build_s=1.0)]
    assert evict(layers, (), 100, now=NOW) == ("cheap",)


def test_of_two_alike_the_one_not_asked_for_goes() -> None:
    layers = [held("asked"), held("forgotten", age_s=1e6)]
    assert evict(layers, (), 100, now=NOW) == ("forgotten",)


def test_a_cheap_image_stays_for_the_dear_layer_on_it() -> None:
    image, other = held("image", size=1000, build_s=1.0), held("other", size=1000, build_s=5.0)
    top = held("top", on=["image"], size=1, build_s=100.0)
    assert evict([image, other, top], (), 1500, now=NOW) == ("other",)


def test_a_cheap_layer_on_a_dear_image_goes_alone() -> None:
    layers = [held("image", build_s=100.0), held("top", on=["image"], build_s=1.0)]
    assert evict(layers, (), 150, now=NOW) == ("top",)


@given(st.floats(0, 1e3), st.floats(0, 1e7), st.floats(0, 1e7))
def test_a_layer_is_worth_less_the_longer_nobody_asked(build_s, age_s, more_s) -> None:
    young, old = (
        held("a", build_s=build_s, age_s=age_s),
        held("a", build_s=build_s, age_s=age_s + more_s),
    )
    assert worth(old, NOW) <= worth(young, NOW)
