"""A layer's key: the same for the same recipe however it is written down, another for any other."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.layers import manifest
from excise.layers.key import canonical, is_key, key_of, plain

TEXT = st.text(st.characters(exclude_categories=["Cs"]))
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=12,
)
RECIPES = st.dictionaries(TEXT, JSON, max_size=4).map(lambda recipe: recipe | {"kind": "test"})


@given(RECIPES, st.randoms())
def test_the_order_of_a_recipes_entries_does_not_matter(recipe, random) -> None:
    entries = list(recipe.items())
    random.shuffle(entries)
    assert key_of(dict(entries)) == key_of(recipe)


@given(RECIPES)
def test_a_recipe_that_was_written_down_has_the_key_it_had(recipe) -> None:
    assert key_of(json.loads(canonical(recipe))) == key_of(recipe)


@given(RECIPES, RECIPES)
def test_two_recipes_have_one_key_only_if_they_say_the_same(one, other) -> None:
    assert (key_of(one) == key_of(other)) == (canonical(one) == canonical(other))


@given(RECIPES)
def test_a_manifest_read_back_is_the_layers_own(tmp_path_factory, recipe) -> None:
    folder = tmp_path_factory.mktemp("layer")
    written = manifest.Manifest(
        recipe=plain(recipe), parents=(), digest="sha256:0", bytes=1, entries=1,
        build_s=0.5, made_at=1.5, boot="b",
    )  # fmt: skip
    manifest.write(written, folder)
    assert manifest.read(folder, key_of(recipe)) is not None
    assert manifest.read(folder, key_of(recipe | {"kind": "other"})) is None


def test_what_a_layer_stands_on_is_part_of_its_name_and_so_is_the_order() -> None:
    recipe = {"kind": "test"}
    assert len({key_of(recipe), key_of(recipe, "ab"), key_of(recipe, "ba")}) == 3


def test_a_tuple_is_a_list_as_json_has_it() -> None:
    assert key_of({"kind": "t", "of": (1, 2)}) == key_of({"kind": "t", "of": [1, 2]})


@pytest.mark.parametrize(
    "recipe",
    [
        {},
        {"kind": 3},
        {"kind": "t", "x": b"bytes"},
        {"kind": "t", "x": {1: 2}},
        {"kind": "t", "x": float("nan")},
        {"kind": "t", "x": "\udcff"},
    ],
)
def test_a_recipe_that_json_cannot_say_is_bad_input(recipe) -> None:
    with pytest.raises(InputError, match="recipe"):
        key_of(recipe)


@given(TEXT)
def test_only_64_hex_digits_are_a_key(name) -> None:
    assert not is_key(name) or (len(name) == 64 and int(name, 16) >= 0)
    assert not is_key(f"../{name}")


def test_every_key_is_one() -> None:
    assert is_key(key_of({"kind": "test"}))
