"""An image at a registry, by way of skopeo: which manifest a name means now, and the parts that it names."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from excise.errors import ImageError
from excise.layers.images.documents import (
    LARGEST_DOCUMENT,
    Index,
    Manifest,
    Platform,
    choose,
    read_document,
)
from excise.layers.images.files import FolderFiles
from excise.layers.images.programs import run
from excise.layers.images.reference import Reference

_ASK_S = 120.0
_FETCH_S = 2 * 3600.0


@dataclass(frozen=True, slots=True)
class Resolved:
    """The manifest that a name means for one platform, and its configuration, as the registry keeps them."""

    digest: str
    manifest: Manifest
    config: bytes


def resolve(reference: Reference, wanted: Platform, scratch: Path) -> tuple[str, Manifest]:
    """Ask what the name means now; what the registry answers is held to the digest that was asked for."""
    data, what = _manifest(reference, scratch), str(reference)
    document = read_document(data, what)
    if isinstance(document, Index):
        chosen = reference.at(choose(document, wanted, what).digest)
        data = _manifest(chosen, scratch)
        document = read_document(data, what)
    if isinstance(document, Index):
        raise ImageError(f"{reference} has an index in its index")
    return _digest_of(data), document


def configuration(reference: Reference, digest: str, manifest: Manifest, scratch: Path) -> Resolved:
    """The same with its configuration, which tells which of its layers are here already."""
    exact = reference.at(digest)
    command = ["skopeo", "inspect", "--config", "--raw", *_trust("--tls-verify", exact), str(exact)]
    data = run(command, f"{reference} cannot be read", scratch=scratch, timeout_s=_ASK_S)
    if _digest_of(data) != manifest.config.digest or len(data) > LARGEST_DOCUMENT:
        raise ImageError(f"the configuration of {reference} is damaged: it is {_digest_of(data)}")
    return Resolved(digest, manifest, data)


def parts(reference: Reference, scratch: Path) -> FolderFiles:
    """Where `fetch` puts an image's parts."""
    return FolderFiles(scratch / "parts" / "sha256", str(reference))


def fetch(reference: Reference, resolved: Resolved, here: int, scratch: Path) -> None:
    """Copy the layers of one manifest to `scratch`, but for the lowest ones that are `here`.

    skopeo fetches no part that stands in the folder already. For a layer that is here a file of its
    size without content stands in; it would not survive being read, for its digest is wrong.
    """
    shared = scratch / "parts"
    (shared / "sha256").mkdir(parents=True)
    missing = {layer.digest for layer in resolved.manifest.layers[here:]}
    for layer in resolved.manifest.layers[:here]:
        if layer.digest not in missing:
            with (shared / "sha256" / layer.digest.removeprefix("sha256:")).open("wb") as stand_in:
                stand_in.truncate(layer.size)
    exact = reference.at(resolved.digest)
    command = ["skopeo", "copy", "--quiet", *_trust("--src-tls-verify", exact)]
    command += ["--dest-oci-accept-uncompressed-layers", f"--dest-shared-blob-dir={shared}"]
    failed = f"{reference} cannot be fetched"
    run([*command, str(exact), f"oci:{scratch}/copy"], failed, scratch=scratch, timeout_s=_FETCH_S)


def _manifest(reference: Reference, scratch: Path) -> bytes:
    command = ["skopeo", "inspect", "--raw", *_trust("--tls-verify", reference), str(reference)]
    failed = f"{reference} cannot be resolved"
    data = run(command, failed, scratch=scratch, timeout_s=_ASK_S)
    if len(data) > LARGEST_DOCUMENT:
        raise ImageError(f"{reference} has a manifest of {len(data)} bytes")
    if reference.digest and _digest_of(data) != reference.digest:
        raise ImageError(f"{reference} is damaged at its registry: it is {_digest_of(data)}")
    return data


def _trust(option: str, reference: Reference) -> list[str]:
    return [f"{option}=false"] if reference.loopback else []


def _digest_of(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"
