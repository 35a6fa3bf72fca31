"""An image that a Docker engine has, by way of its own client and so of its settings."""

from __future__ import annotations

from pathlib import Path

from excise.errors import ImageError
from excise.layers.images.programs import run
from excise.layers.images.reference import Reference

_ASK_S = 60.0
_SAVE_S = 3600.0


def identify(reference: Reference, scratch: Path) -> str:
    """The digest by which the engine knows the image."""
    command = ["docker", "image", "inspect", "--format", "{{.Id}}", _name(reference)]
    failed = f"{reference} cannot be found"
    found = run(command, failed, scratch=scratch, timeout_s=_ASK_S).decode("utf-8", "replace")
    if not found.startswith("sha256:"):
        raise ImageError(f"{failed}: the engine calls it {found[:80]!r}")
    return found.strip()


def save(reference: Reference, scratch: Path) -> Path:
    """An archive of the image."""
    archive = scratch / "saved.tar"
    command = ["docker", "image", "save", "--output", str(archive), _name(reference)]
    run(command, f"{reference} cannot be saved", scratch=scratch, timeout_s=_SAVE_S)
    return archive


def _name(reference: Reference) -> str:
    return f"{reference.name}:{reference.tag}" if reference.tag else reference.name
