"""An image that is here: its layers in the store, and what it says of itself; found again by digest or by name."""

from __future__ import annotations

import contextlib
import hashlib
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import msgspec

from excise.errors import LayerError
from excise.layers import clear
from excise.layers.build import room
from excise.layers.images.documents import ImageConfig
from excise.layers.images.reference import Reference, Source
from excise.layers.lock import hold
from excise.layers.place import Place, remove_tree
from excise.layers.store import Layer, Store


@dataclass(frozen=True, slots=True)
class Image:
    """`layers` are top first, as an overlay mounts them; `config` is what its maker wants to be started."""

    reference: str
    digest: str
    layers: tuple[Layer, ...]
    config: ImageConfig

    @property
    def top(self) -> Layer:
        """What to pin, and what to build further layers on."""
        return self.layers[0]

    @property
    def lowers(self) -> tuple[Path, ...]:
        """The folders to mount, top first."""
        return tuple(layer.path for layer in self.layers)

    @property
    def bytes(self) -> int:
        return sum(layer.facts.bytes for layer in self.layers)


class Record(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What is written down of a pulled image."""

    reference: str
    digest: str
    top: str
    config: ImageConfig
    pulled_at: float


@contextlib.contextmanager
def workshop(store: Store, reference: Reference) -> Iterator[Path]:
    """A folder for one pull of one reference at a time; what a killed pull leaves is swept with the builders'."""
    place = Place(store.root)
    key = hashlib.sha256(f"pull {reference}".encode()).hexdigest()
    with hold(place.lock(key)) or contextlib.nullcontext():
        shop = clear.workshop(place.building, key)
        shop.mkdir(mode=0o700)
        try:
            yield shop
        finally:
            with contextlib.suppress(LayerError):  # the next sweep takes it
                remove_tree(shop)


def remember(
    store: Store, reference: Reference, digest: str, config: ImageConfig, top: Layer, shop: Path
) -> Image:
    """Write the image down under its digest and its name, each at once or not at all; forget what is gone."""
    record = Record(
        reference=str(reference), digest=digest, top=top.id, config=config, pulled_at=time.time()
    )
    with room(Place(store.root), "image"):
        for place in (_by_digest(store, digest), _by_name(store, reference)):
            place.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            written = shop / "record"
            written.write_bytes(msgspec.json.format(msgspec.json.encode(record), indent=1))
            written.replace(place)
    _forget_the_gone(store)
    return Image(str(reference), digest, store.lineage(top), config)


def by_name(store: Store, reference: Reference) -> Image | None:
    """The image that this name meant when it was last pulled, if all of it is here.

    A digest always means the same, so under whatever name it came is no matter.
    """
    found = _image(store, _read(_by_name(store, reference)))
    if found is None and reference.source is Source.REGISTRY and reference.digest:
        return by_digest(store, reference.digest)
    return found


def by_digest(store: Store, digest: str) -> Image | None:
    """The image of this digest, if all of it is here."""
    return _image(store, _read(_by_digest(store, digest)))


def images(store: Store) -> tuple[tuple[Image, Record], ...]:
    """Every name that was pulled and is here, by name."""
    records = filter(None, map(_read, (_folder(store) / "names").glob("*.json")))
    found = ((_image(store, record), record) for record in records)
    return tuple(sorted(((i, r) for i, r in found if i), key=lambda pair: pair[0].reference))


def _image(store: Store, record: Record | None) -> Image | None:
    if record is None:
        return None
    try:
        top = store.get(record.top)
        layers = store.lineage(top) if top is not None else ()
    except LayerError:
        return None
    return Image(record.reference, record.digest, layers, record.config) if layers else None


def _forget_the_gone(store: Store) -> None:
    for place in _folder(store).glob("*/*.json"):
        record = _read(place)
        if record is None or not Place(store.root).layer(record.top).is_dir():
            place.unlink(missing_ok=True)


def _read(place: Path) -> Record | None:
    try:
        return msgspec.json.decode(place.read_bytes(), type=Record)
    except (OSError, msgspec.MsgspecError):
        return None


def _folder(store: Store) -> Path:
    return store.root / "images"


def _by_digest(store: Store, digest: str) -> Path:
    return _folder(store) / "digests" / f"{digest.removeprefix('sha256:')}.json"


def _by_name(store: Store, reference: Reference) -> Path:
    name = hashlib.sha256(str(reference).encode("utf-8", "surrogateescape")).hexdigest()
    return _folder(store) / "names" / f"{name}.json"
