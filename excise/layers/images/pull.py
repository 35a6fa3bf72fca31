"""`pull(store, "python:3.12")`: an image from wherever its reference says, verified, unpacked, kept."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path

from excise.errors import ImageError, InputError
from excise.layers.images import engine, folder, registry
from excise.layers.images.documents import ImageConfig, Platform, platform_of, read_config
from excise.layers.images.files import FolderFiles, TarFiles
from excise.layers.images.found import Found, in_archive, in_blobs, in_layout
from excise.layers.images.image import Image, by_digest, by_name, remember, workshop
from excise.layers.images.laying import MOST_BYTES, here, lay, lay_folder
from excise.layers.images.reference import Reference, Source, parse
from excise.layers.store import Store


def pull(store: Store, text: str, *, cached: bool = False, most_bytes: int = MOST_BYTES) -> Image:
    """Have an image here, with all its layers in the store, and `store.lease` its top layer to keep them.

    A name is looked up anew each time; with `cached` it is not, and means what it meant when it was last
    pulled. Nothing is fetched or unpacked that is here already.
    """
    reference = parse(text)
    if reference.source is Source.HOST:
        raise InputError("host is this machine itself: there is nothing to pull")
    if cached:
        return _kept(store, reference)
    if os.geteuid() != 0:
        raise InputError("images have files of many owners: pull as root")
    with workshop(store, reference) as shop:
        if reference.source is Source.FOLDER:
            return _copied(store, reference, shop)
        with ExitStack() as stack:
            try:
                found = _look_up(store, reference, shop, stack)
            except ImageError as error:
                if by_name(store, reference) is None:
                    raise
                raise ImageError(f"{error}; what was pulled before is here: --cached") from error
            if isinstance(found, Image):
                return remember(store, reference, found.digest, found.config, found.top, shop)
            pin = stack.enter_context(lay(store, found, most_bytes))
            return remember(store, reference, found.digest, found.config, pin.layers[0], shop)


def this_platform() -> Platform:
    """What images this machine runs."""
    return platform_of(os.uname().machine)


def _kept(store: Store, reference: Reference) -> Image:
    image = by_name(store, reference)
    if image is None:
        raise ImageError(f"{reference} is not here, or not all of it any more: pull it anew")
    return image


def _look_up(store: Store, reference: Reference, shop: Path, stack: ExitStack) -> Image | Found:
    """The image where it is, or as it is here already, if that can be known without having it all sent."""
    wanted, path, what = this_platform(), Path(reference.path), str(reference)
    match reference.source:
        case Source.REGISTRY:
            return _at_registry(store, reference, shop, stack)
        case Source.LAYOUT:
            return in_layout(FolderFiles(path, what), reference.tag, wanted)
        case Source.ENGINE:
            image = by_digest(store, engine.identify(reference, shop))
            if image is not None:
                return image
            path = engine.save(reference, shop)
    archive = TarFiles(path, what)
    stack.callback(archive.close)
    if reference.source is Source.LAYOUT_ARCHIVE:
        return in_layout(archive, reference.tag, wanted)
    tag = "" if reference.source is Source.ENGINE else reference.tag
    return in_archive(archive, tag, wanted)


def _at_registry(store: Store, reference: Reference, shop: Path, stack: ExitStack) -> Image | Found:
    wanted = this_platform()
    digest, manifest = registry.resolve(reference, wanted, shop)
    image = by_digest(store, digest)
    if image is not None:
        return image
    resolved = registry.configuration(reference, digest, manifest, shop)
    config = read_config(resolved.config, f"the configuration of {reference}")
    files = registry.parts(reference, shop)
    found = in_blobs(files, manifest, config, digest, wanted)
    layers = here(store, config.diff_ids)
    if layers:  # they may not go before the others stand on them
        stack.enter_context(store.pin(layers[-1]))
    registry.fetch(reference, resolved, len(layers), shop)
    return found


def _copied(store: Store, reference: Reference, shop: Path) -> Image:
    real = folder.check(Path(reference.path), store.root)
    with lay_folder(store, real) as pin:
        top = pin.layers[0]
        digest = f"sha256:{top.facts.recipe['fingerprint']}"
        config = ImageConfig(platform=this_platform(), diff_ids=(digest,))
        return remember(store, reference, digest, config, top, shop)
