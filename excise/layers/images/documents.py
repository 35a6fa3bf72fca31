"""Manifests, indexes and configurations of images: JSON in, checked values out. OCI's and Docker's schema 2."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import msgspec

from excise.errors import ImageError

LARGEST_DOCUMENT = 8 * 1024 * 1024
MOST_LAYERS = 400
"""As many directories as one overlay mount takes."""

_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_OCI = "application/vnd.oci.image."
_DOCKER = "application/vnd.docker."
_INDEXES = {_OCI + "index.v1+json", _DOCKER + "distribution.manifest.list.v2+json"}
_MANIFESTS = {_OCI + "manifest.v1+json", _DOCKER + "distribution.manifest.v2+json"}
_CONFIGS = {_OCI + "config.v1+json", _DOCKER + "container.image.v1+json"}
_LAYERS = {
    _OCI + "layer.v1.tar",
    _OCI + "layer.v1.tar+gzip",
    _OCI + "layer.v1.tar+zstd",
    _DOCKER + "image.rootfs.diff.tar",
    _DOCKER + "image.rootfs.diff.tar.gzip",
    _DOCKER + "image.rootfs.diff.tar.zstd",
}
_MACHINES = {
    "x86_64": "amd64",
    "aarch64": "arm64",
    "armv7l": "arm",
    "armv6l": "arm",
    "i686": "386",
    "i386": "386",
}
_REF_NAMES = ("org.opencontainers.image.ref.name", "io.containerd.image.name")


@dataclass(frozen=True, slots=True)
class Platform:
    """What machine an image is for, in the words of images."""

    os: str
    architecture: str

    def __str__(self) -> str:
        return f"{self.os}/{self.architecture}"


@dataclass(frozen=True, slots=True)
class Descriptor:
    """One blob as another document speaks of it."""

    digest: str
    size: int
    media_type: str = ""
    platform: Platform | None = None
    variant: str = ""
    names: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Index:
    """A choice of manifests, one per platform."""

    manifests: tuple[Descriptor, ...]


@dataclass(frozen=True, slots=True)
class Manifest:
    """What one image is made of, lowest layer first."""

    config: Descriptor
    layers: tuple[Descriptor, ...]


@dataclass(frozen=True, slots=True)
class ImageConfig:
    """What the image's maker wants its processes to be started with."""

    platform: Platform
    diff_ids: tuple[str, ...]
    env: Mapping[str, str] = field(default_factory=dict)
    user: str = ""
    workdir: str = ""
    entrypoint: tuple[str, ...] = ()
    cmd: tuple[str, ...] = ()
    volumes: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)


class _Descriptor(msgspec.Struct, rename="camel"):
    digest: str
    size: int
    media_type: str = ""
    platform: dict[str, Any] | None = None
    annotations: dict[str, str] | None = None


class _Document(msgspec.Struct, rename="camel"):
    schema_version: int = 2
    media_type: str = ""
    manifests: list[_Descriptor] | None = None
    config: _Descriptor | None = None
    layers: list[_Descriptor] | None = None


class _RootFs(msgspec.Struct):
    diff_ids: list[str] = []


class _Process(msgspec.Struct, rename="pascal"):
    env: list[str] | None = None
    user: str | None = None
    working_dir: str | None = None
    entrypoint: list[str] | None = None
    cmd: list[str] | None = None
    volumes: dict[str, Any] | None = None
    labels: dict[str, str] | None = None


class _Config(msgspec.Struct):
    os: str
    architecture: str
    rootfs: _RootFs
    config: _Process | None = None


class _Saved(msgspec.Struct, rename="pascal"):
    config: str
    layers: list[str]
    repo_tags: list[str] | None = None


@dataclass(frozen=True, slots=True)
class Saved:
    """One image in an archive as `docker save` writes it: the names of its parts there."""

    config: str
    layers: tuple[str, ...]
    names: tuple[str, ...]


def read_document(data: bytes, what: str) -> Index | Manifest:
    """The index or manifest that `data` is; a text that could pass for both is neither."""
    document = _decode(data, _Document, what)
    if document.schema_version != 2:
        raise ImageError(
            f"{what} is of schema {document.schema_version}: rebuild the image, 2 is read"
        )
    if document.manifests is not None:
        if document.layers is not None or document.config is not None:
            raise ImageError(f"{what} claims to be an index and an image at once")
        _known(document.media_type, _INDEXES, what)
        return Index(tuple(_descriptor(entry, what) for entry in document.manifests))
    if document.config is None or document.layers is None:
        raise ImageError(f"{what} is neither an image's manifest nor an index of some")
    _known(document.media_type, _MANIFESTS, what)
    _known(document.config.media_type, _CONFIGS, f"the configuration in {what}")
    if len(document.layers) > MOST_LAYERS:
        raise ImageError(f"{what} has {len(document.layers)} layers: {MOST_LAYERS} can be mounted")
    for layer in document.layers:
        _layer(layer, what)
    return Manifest(
        _descriptor(document.config, what),
        tuple(_descriptor(layer, what) for layer in document.layers),
    )


def read_config(data: bytes, what: str) -> ImageConfig:
    """The configuration that `data` is."""
    config = _decode(data, _Config, what)
    diff_ids = tuple(checked_digest(digest, what) for digest in config.rootfs.diff_ids)
    if len(diff_ids) > MOST_LAYERS:
        raise ImageError(f"{what} has {len(diff_ids)} layers: {MOST_LAYERS} can be mounted")
    process = config.config or _Process()
    pairs = (setting.partition("=") for setting in process.env or ())
    return ImageConfig(
        platform=Platform(config.os, config.architecture),
        diff_ids=diff_ids,
        env={name: value for name, _, value in pairs if name},
        user=process.user or "",
        workdir=process.working_dir or "",
        entrypoint=tuple(process.entrypoint or ()),
        cmd=tuple(process.cmd or ()),
        volumes=tuple(sorted(process.volumes or ())),
        labels=process.labels or {},
    )


def read_saved(data: bytes, what: str) -> tuple[Saved, ...]:
    """The images that the `manifest.json` of a saved archive speaks of."""
    images = _decode(data, list[_Saved], what)
    return tuple(Saved(i.config, tuple(i.layers), tuple(i.repo_tags or ())) for i in images)


def platform_of(machine: str) -> Platform:
    """The platform of a Linux whose `uname -m` is `machine`."""
    return Platform("linux", _MACHINES.get(machine, machine))


def choose(index: Index, wanted: Platform, what: str) -> Descriptor:
    """The one manifest of `index` for `wanted`: the plainest variant, and of equals the first."""
    fitting = [m for m in index.manifests if m.platform == wanted]
    if not fitting:
        there = sorted({str(m.platform) for m in index.manifests if m.platform is not None})
        raise ImageError(f"{what} has nothing for {wanted}; it has {', '.join(there) or 'nothing'}")
    return min(fitting, key=lambda m: m.variant)


def named(descriptors: Sequence[Descriptor], tag: str, what: str) -> Descriptor:
    """The descriptor that is called `tag`; without a tag, the only one there is."""
    if not tag and len(descriptors) == 1:
        return descriptors[0]
    found = [d for d in descriptors if tag and tag in d.names]
    if len(found) != 1:
        names = ", ".join(sorted({name for d in descriptors for name in d.names}))
        asked = f"{len(found)} images called {tag!r}" if tag else f"{len(descriptors)} images"
        raise ImageError(f"{what} has {asked}: name one of: {names or '(none has a name)'}")
    return found[0]


def checked_digest(digest: str, what: str) -> str:
    """`digest`, if it is one that can be checked, and may be part of a path."""
    if not _DIGEST.fullmatch(digest):
        raise ImageError(f"{what} has the digest {digest[:80]!r}: only sha256 is read")
    return digest


def _decode(data: bytes, kind: Any, what: str) -> Any:
    try:
        return msgspec.json.decode(data, type=kind)
    except (msgspec.MsgspecError, RecursionError) as error:
        raise ImageError(f"{what} cannot be read: {error}") from error


def _known(media_type: str, known: set[str], what: str) -> None:
    if media_type and media_type not in known:
        raise ImageError(f"{what} is of the type {media_type!r}, which is not an image's")


def _layer(layer: _Descriptor, what: str) -> None:
    if "foreign" in layer.media_type or "nondistributable" in layer.media_type:
        raise ImageError(f"{what} has a layer that is kept elsewhere ({layer.media_type})")
    if layer.media_type not in _LAYERS:
        raise ImageError(f"{what} has a layer of the type {layer.media_type!r}, which is not read")


def _descriptor(entry: _Descriptor, what: str) -> Descriptor:
    if entry.size < 0:
        raise ImageError(f"{what} has a part of {entry.size} bytes")
    about = entry.platform or {}
    names = entry.annotations or {}
    platform = Platform(str(about.get("os", "")), str(about.get("architecture", "")))
    return Descriptor(
        digest=checked_digest(entry.digest, what),
        size=entry.size,
        media_type=entry.media_type,
        platform=platform if about else None,
        variant=str(about.get("variant", "")),
        names=tuple(names[key] for key in _REF_NAMES if key in names),
    )
