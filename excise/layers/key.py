"""A layer's name: the hash of its recipe and of what it stands on. The same recipe is the same layer, anywhere."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence

from excise.errors import InputError

Recipe = Mapping[str, object]
"""What a layer is made from: a JSON object that decides every byte of the result that matters."""

_FORMAT = "excise-layer-1"
"""Part of every key: raise it when the same recipes must give other layers."""

SHOWN = 12


def canonical(value: object) -> bytes:
    """The one JSON text of `value`: keys sorted, no spaces, ASCII; InputError for what JSON cannot say."""
    try:
        text = json.dumps(plain(value), sort_keys=True, separators=(",", ":"), allow_nan=False)
    except ValueError as error:
        raise InputError(f"a recipe is plain JSON: {error}") from error
    return text.encode("ascii")


def key_of(recipe: Recipe, parents: Sequence[str] = ()) -> str:
    """64 hex digits; `parents` are the keys of what the layer was made on, nearest first."""
    if not isinstance(recipe.get("kind"), str):
        raise InputError("a recipe says what it is in `kind`")
    whole = {"format": _FORMAT, "recipe": recipe, "parents": list(parents)}
    return hashlib.sha256(canonical(whole)).hexdigest()


def is_key(name: str) -> bool:
    """Whether `name` could be a layer's: nothing else may become part of a path of the store."""
    return len(name) == 64 and all(digit in "0123456789abcdef" for digit in name)


def plain(value: object) -> object:
    """`value` in JSON's own types; a key that is not text would be mistaken for one that is."""
    if value is None or isinstance(value, bool | int | float):
        return value
    if isinstance(value, str):
        return _text(value)
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        wrong = [key for key in value if not isinstance(key, str)]
        if wrong:
            raise InputError(f"a recipe is plain JSON: the key {wrong[0]!r} is not text")
        return {_text(key): plain(part) for key, part in value.items()}
    raise InputError(f"a recipe is plain JSON: {type(value).__name__} is not")


def _text(value: str) -> str:
    try:
        value.encode()
    except UnicodeEncodeError as error:
        raise InputError("a recipe is plain JSON: its text must be valid Unicode") from error
    return value
