"""Making one layer where nobody looks, and publishing it with one rename."""

from __future__ import annotations

import contextlib
import errno
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import msgspec

from excise.errors import InputError, LayerError
from excise.layers import clear, manifest
from excise.layers.digest import weigh
from excise.layers.key import SHOWN, Recipe, plain
from excise.layers.layer import StoreFull
from excise.layers.place import TREE, Place, boot, is_full, remove_tree
from excise.layers.runner import CommandFailed

Make = Callable[[Path], Mapping[str, object] | None]
"""Fills an empty folder; what it returns is noted in the manifest."""

_NO_ROOM = {errno.ENOSPC, errno.EDQUOT}


def build(
    place: Place, key: str, recipe: Recipe, make: Make, parents: Sequence[str], *, kept: bool
) -> None:
    """Make the layer `key`, whose lock the caller holds. If anything is raised, nothing of it is left."""
    _clear_the_way(place, key)
    shop = clear.workshop(place.building, key)
    try:
        tree = shop / TREE
        shop.mkdir(mode=0o700)
        tree.mkdir()
        tree.chmod(0o755)
        began = time.monotonic()
        notes = _made(make, tree, place, key)
        build_s = time.monotonic() - began
        made = _describe(shop / TREE, recipe, parents, notes, build_s)
        manifest.write(msgspec.structs.replace(made, kept=kept), shop)
        place.pin_in(shop).touch(mode=0o600)
        shop.rename(place.layer(key))
    finally:
        with contextlib.suppress(LayerError):  # what still writes there is an orphan: swept later
            remove_tree(shop)


def _made(make: Make, tree: Path, place: Place, key: str) -> Mapping[str, object]:
    """What a command said before it failed is kept, and named in the error, until the layer can be built."""
    log = place.log(key)
    try:
        notes = make(tree) or {}
    except CommandFailed as error:
        with contextlib.suppress(OSError):
            log.parent.mkdir(mode=0o700, exist_ok=True)
            log.write_text(error.log, encoding="utf-8", errors="replace")
            raise CommandFailed(f"{error}; its log: {log}", error.log) from error
        raise
    log.unlink(missing_ok=True)
    return notes


def _clear_the_way(place: Place, key: str) -> None:
    if place.layer(key).exists():
        aside = clear.take_out(place, key)
        if aside is None:
            raise LayerError(f"layer {key[:SHOWN]} is damaged and in use: end what uses it")
        remove_tree(aside)


def _describe(
    tree: Path, recipe: Recipe, parents: Sequence[str], notes: Mapping[str, object], build_s: float
) -> manifest.Manifest:
    weight = weigh(tree)
    return manifest.Manifest(
        recipe=cast("dict[str, Any]", plain(recipe)),
        parents=tuple(parents),
        digest=weight.digest,
        bytes=weight.bytes,
        entries=weight.entries,
        build_s=build_s,
        made_at=time.time(),
        boot=boot(),
        notes=cast("dict[str, Any]", plain(notes)),
    )


@contextlib.contextmanager
def room(place: Place, kind: object) -> Iterator[None]:
    """Whatever way a full disk shows itself in, say that it is full."""
    try:
        yield
    except InputError:
        raise
    except Exception as error:
        if not (_tells_of_no_room(error) or is_full(place.root)):
            raise
        raise StoreFull(
            f"the disk of {place.root} has no room for this {kind} layer: free some, run "
            "`excise layer gc --budget BYTES`, or set EXCISE_STORE to another disk"
        ) from error


def _tells_of_no_room(error: BaseException | None) -> bool:
    while error is not None:
        if isinstance(error, OSError) and error.errno in _NO_ROOM:
            return True
        error = error.__cause__ or error.__context__
    return False
