"""The layer store: read-only trees of files, each named by its recipe, built once, shared by all, never half there.

A layer is built in a folder that nobody looks into and published by one rename, so it is whole or absent,
whatever kills its builder. Two that want the same layer take turns: one builds, the other gets the result.
What is in use is pinned by a lock that dies with its holder, so no daemon is needed to know it.

Nothing is synced to disk on the way, because a layer can be made again: after a restart of the machine a
layer is handed out only once its digest has been recomputed, and one that lost bytes is made anew.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Callable, Collection, Sequence
from pathlib import Path

from excise.errors import InputError, LayerError
from excise.layers import clear, manifest
from excise.layers.budget import Held, evict
from excise.layers.build import Make, build, room
from excise.layers.digest import weigh
from excise.layers.key import SHOWN, Recipe, is_key, key_of
from excise.layers.layer import Layer, LayerGone, Pin, StoreFull, Usage
from excise.layers.lock import Hold, hold
from excise.layers.place import TREE, Place, boot, root

__all__ = ["Layer", "LayerGone", "Make", "Pin", "Store", "StoreFull", "Usage"]

_TRIES = 5


class Store:
    """The layers of one folder. Any number of processes and threads may use the same folder at once."""

    def __init__(self, folder: Path | None = None, budget_bytes: int | None = None) -> None:
        if budget_bytes is not None and budget_bytes < 0:
            raise InputError("a store's budget is a number of bytes, 0 or more")
        self._place = Place((folder or root()).absolute())
        self._place.prepare()
        self.root = self._place.root
        self.budget_bytes = budget_bytes
        self.sweep()

    def get(self, key: str) -> Layer | None:
        """The layer, if it is here and whole. It is safe from removal only once it is pinned."""
        layer = self._read(key)
        return layer if layer is not None and self._survived(layer) else None

    def build(
        self,
        key: str,
        recipe: Recipe,
        make: Make,
        parents: Sequence[Layer] = (),
        *,
        kept: bool = False,
    ) -> Layer:
        """The layer of this recipe on these parents, made by `make` if it is not here yet.

        `key` is `key_of(recipe, [p.id for p in parents])`. Whatever `make` raises is raised here, and
        nothing of the layer is left. A `kept` layer cannot be made again, and is not evicted.
        """
        below = [parent.id for parent in parents]
        if key != key_of(recipe, below):
            raise InputError("a layer's key is key_of(its recipe, the keys of its parents)")
        layer = self.get(key)
        if layer is None:
            with room(self._place, recipe["kind"]), self.pin(*parents), self._lock(key):
                layer = self.get(key)
                if layer is None:
                    build(self._place, key, recipe, make, below, kept=kept)
            if self.budget_bytes is not None:
                self.gc(self.budget_bytes, keep={key})
        layer = layer or self._read(key)
        if layer is None:
            raise LayerGone(f"layer {key[:SHOWN]} was removed as soon as it was built")
        self._touch(key)
        return layer

    def pin(self, *layers: Layer) -> Pin:
        """Keep `layers` and all they stand on; LayerGone if one of them is not here any more."""
        holds: list[Hold] = []
        try:
            for key in {each.id: None for layer in layers for each in self.lineage(layer)}:
                held = hold(self._place.pin(key), shared=True, create=False)
                holds.extend(() if held is None else (held,))
                self._touch(key)
        except OSError as error:
            Pin((), holds).close()
            raise LayerGone("a layer was removed since it was looked up: build it again") from error
        except BaseException:
            Pin((), holds).close()
            raise
        return Pin(layers, holds)

    def lease(self, make_sure: Callable[[], Layer]) -> Pin:
        """Build and pin, again if the layer is removed between the two."""
        for _ in range(_TRIES):
            with contextlib.suppress(LayerGone):
                return self.pin(make_sure())
        raise LayerGone("layers are removed as fast as they are built: give the store more room")

    def lineage(self, layer: Layer) -> tuple[Layer, ...]:
        """The layer and all it stands on, top first, each once."""
        found = {layer.id: layer}
        for key in layer.parents:
            parent = self.get(key)
            if parent is None:
                raise LayerGone(f"layer {layer.short} stands on {key[:SHOWN]}, which is gone")
            for each in self.lineage(parent):
                found.setdefault(each.id, each)
        return tuple(found.values())

    def chain(self, layer: Layer) -> tuple[Path, ...]:
        """The folders to mount, top first, as the lowers of one overlay."""
        return tuple(each.path for each in self.lineage(layer))

    def layers(self) -> tuple[Layer, ...]:
        """All that are here, oldest first; damaged ones are not."""
        found = (self._read(key) for key in self._keys())
        return tuple(sorted((f for f in found if f), key=lambda f: (f.facts.made_at, f.id)))

    def find(self, prefix: str) -> Layer:
        """The one layer whose key starts with `prefix`; InputError if there is none or several."""
        fits = [layer for layer in self.layers() if layer.id.startswith(prefix)] if prefix else []
        if len(fits) == 1:
            return fits[0]
        several = ", ".join(layer.short for layer in fits)
        how = f"several begin so, {several}" if fits else "`excise layer list` names them all"
        raise InputError(f"{prefix!r} names no single layer: {how}")

    def verify(self, layer: Layer) -> bool:
        """Whether every byte of the tree is still as it was built; reads all of it."""
        try:
            return weigh(layer.path).digest == layer.facts.digest
        except (OSError, LayerError):
            return False

    def remove(self, layer: Layer) -> None:
        """Remove one layer; InputError if it is in use or others stand on it."""
        above = [other.short for other in self.layers() if layer.id in other.parents]
        if above:
            raise InputError(f"layer {layer.short} is below {', '.join(above)}: remove those first")
        if not clear.remove(self._place, layer.id):
            raise InputError(f"layer {layer.short} is in use: end what uses it, then try again")

    def gc(self, budget_bytes: int, keep: Collection[str] = ()) -> tuple[str, ...]:
        """Remove what is damaged, what killed builders left, and layers until the rest fits the budget.

        Returns the keys of what was removed. What is in use, and snapshots, stay even if the budget is not met then.
        """
        self.sweep()
        layers = self.layers()
        in_use = clear.pinned(self._place, (layer.id for layer in layers)) | frozenset(keep)
        in_use |= {layer.id for layer in layers if layer.facts.kept}
        doomed = evict(map(self._held, layers), in_use, budget_bytes, now=time.time())
        gone: list[str] = []
        spared: set[str] = set()
        parents = {layer.id: layer.parents for layer in layers}
        for key in (*self.damaged(), *doomed):
            if key not in spared and clear.remove(self._place, key):
                gone.append(key)
            else:  # taken into use just now: what it stands on stays too
                spared.update(parents.get(key, ()))
        return tuple(gone)

    def sweep(self) -> int:
        """Remove what killed builders left; says how many there were."""
        return clear.sweep(self._place)

    def damaged(self) -> tuple[str, ...]:
        """The keys of what cannot be read as a layer: `gc` removes it, `build` replaces it."""
        return tuple(key for key in self._keys() if self._read(key) is None)

    def du(self) -> Usage:
        """What the store takes, from the manifests: no tree is read."""
        layers = self.layers()
        pinned = clear.pinned(self._place, (layer.id for layer in layers))
        status = os.statvfs(self.root)
        return Usage(
            layers=len(layers),
            bytes=sum(layer.facts.bytes for layer in layers),
            pinned_bytes=sum(layer.facts.bytes for layer in layers if layer.id in pinned),
            entries=sum(layer.facts.entries for layer in layers),
            unfinished=len(list(self._place.building.iterdir())),
            free_bytes=status.f_bavail * status.f_frsize,
        )

    def last_used(self, layer: Layer) -> float:
        """Seconds since the epoch."""
        try:
            return self._place.pin(layer.id).stat().st_mtime
        except OSError:
            return layer.facts.made_at

    def _keys(self) -> list[str]:
        return sorted(entry.name for entry in self._place.layers.iterdir() if is_key(entry.name))

    def _read(self, key: str) -> Layer | None:
        if not is_key(key):
            raise InputError(f"{key!r} is not a layer's key")
        folder = self._place.layer(key)
        facts = manifest.read(folder, key)
        if facts is None or not (folder / TREE).is_dir() or not self._place.pin(key).is_file():
            return None
        return Layer(key, folder / TREE, facts.parents, facts)

    def _survived(self, layer: Layer) -> bool:
        """Whether it was made since the machine started, or has been found whole since."""
        checked, now = layer.path.parent / "checked", boot()
        if layer.facts.boot == now:
            return True
        with contextlib.suppress(OSError):
            if checked.read_text() == now:
                return True
        if not self.verify(layer):
            return False
        with contextlib.suppress(OSError):
            checked.write_text(now)
        return True

    def _lock(self, key: str) -> Hold:
        held = hold(self._place.lock(key))
        if held is None:
            raise LayerError("a lock that is waited for was refused")
        return held

    def _touch(self, key: str) -> None:
        with contextlib.suppress(FileNotFoundError):
            os.utime(self._place.pin(key))

    def _held(self, layer: Layer) -> Held:
        facts = layer.facts
        return Held(layer.id, layer.parents, facts.bytes, facts.build_s, self.last_used(layer))
