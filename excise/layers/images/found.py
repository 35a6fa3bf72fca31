"""What a source has found: an image's identity, how to start it, and its layers, still packed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from excise.errors import ImageError
from excise.layers.images.documents import (
    Descriptor,
    ImageConfig,
    Index,
    Manifest,
    Platform,
    Saved,
    choose,
    named,
    read_config,
    read_document,
    read_saved,
)
from excise.layers.images.files import Blob, Files

_MOST_INDEXES = 4
_MANIFEST = "manifest.json"
_BLOBS = "blobs/sha256/"


@dataclass(frozen=True, slots=True)
class Found:
    """One image. `digest` is its manifest's; that of its configuration where there is no manifest."""

    digest: str
    config: ImageConfig
    layers: tuple[Blob, ...]


def in_layout(files: Files, tag: str, wanted: Platform) -> Found:
    """The image called `tag` in an OCI layout."""
    top = read_document(Blob(files, "index.json").document(), f"index.json of {files.what}")
    if not isinstance(top, Index):
        raise ImageError(f"{files.what} is no OCI layout: its index.json is no index")
    return _below(files, _called(top, tag, wanted, files.what), wanted)


def in_blobs(
    files: Files, manifest: Manifest, config: ImageConfig, digest: str, wanted: Platform
) -> Found:
    """The image of this manifest and configuration, its layers named by the hex digits of their digests."""
    layers = tuple(_blob(files, "", layer) for layer in manifest.layers)
    return _fitting(digest, config, layers, wanted, files.what)


def in_archive(files: Files, tag: str, wanted: Platform) -> Found:
    """The image called `tag` in an archive as `docker save` writes it."""
    saved = read_saved(Blob(files, _MANIFEST).document(), f"{_MANIFEST} of {files.what}")
    image = _saved(saved, tag, files.what)
    metered = Blob(files, image.config)
    data = metered.document()
    digest = _digest_of(data)
    claimed = image.config.rpartition("/")[2].removesuffix(".json")
    if len(claimed) == 64 and digest != f"sha256:{claimed}":
        raise ImageError(f"{image.config} in {files.what} is damaged: it is {digest}")
    config = read_config(data, f"the configuration of {files.what}")
    return _fitting(digest, config, tuple(Blob(files, n) for n in image.layers), wanted, files.what)


def _called(index: Index, tag: str, wanted: Platform, what: str) -> Descriptor:
    """Several may have one name, one for each platform; without a name there must be no doubt."""
    if not tag and index.manifests and all(m.platform is not None for m in index.manifests):
        fitting = [m for m in index.manifests if m.platform == wanted]
        return named(fitting, "", what) if fitting else choose(index, wanted, what)
    alike = [m for m in index.manifests if tag in m.names and m.platform in (wanted, None)]
    return alike[0] if len(alike) == 1 else named(index.manifests, tag, what)


def _below(files: Files, at: Descriptor, wanted: Platform) -> Found:
    for _ in range(_MOST_INDEXES):
        blob = _blob(files, _BLOBS, at)
        document = read_document(blob.document(), f"{at.digest} of {files.what}")
        if isinstance(document, Manifest):
            return _found(files, document, at.digest, wanted)
        at = choose(document, wanted, files.what)
    raise ImageError(f"{files.what} has an index in an index in an index without end")


def _found(files: Files, manifest: Manifest, digest: str, wanted: Platform) -> Found:
    about = f"the configuration of {files.what}"
    config = read_config(_blob(files, _BLOBS, manifest.config).document(), about)
    layers = tuple(_blob(files, _BLOBS, layer) for layer in manifest.layers)
    return _fitting(digest, config, layers, wanted, files.what)


def _fitting(
    digest: str, config: ImageConfig, layers: tuple[Blob, ...], wanted: Platform, what: str
) -> Found:
    if config.platform != wanted:
        raise ImageError(f"{what} is for {config.platform}; this machine is {wanted}")
    if len(config.diff_ids) != len(layers):
        raise ImageError(f"{what} has {len(layers)} layers and speaks of {len(config.diff_ids)}")
    if not layers:
        raise ImageError(f"{what} has no layers: there is nothing to run in it")
    return Found(digest, config, layers)


def _blob(files: Files, below: str, at: Descriptor) -> Blob:
    return Blob(files, below + at.digest.removeprefix("sha256:"), at.digest, at.size)


def _saved(images: Sequence[Saved], tag: str, what: str) -> Saved:
    fitting = [
        i for i in images if not tag or tag in i.names or _short(tag) in map(_short, i.names)
    ]
    if len(fitting) != 1:
        names = ", ".join(sorted({name for image in images for name in image.names}))
        asked = f"{len(fitting)} images called {tag!r}" if tag else f"{len(images)} images"
        raise ImageError(f"{what} has {asked}: name one of: {names or '(none has a name)'}")
    return fitting[0]


def _short(name: str) -> str:
    """As people write it: the usual registry left out."""
    return name.removeprefix("docker.io/").removeprefix("library/")


def _digest_of(data: bytes) -> str:
    import hashlib

    return f"sha256:{hashlib.sha256(data).hexdigest()}"
