"""What an image is called, and so where it is: text in, a `Reference` or one clear line out."""

from __future__ import annotations

import ipaddress
import re
from dataclasses import dataclass
from enum import StrEnum
from typing import Self

from excise.errors import InputError

DEFAULT_REGISTRY = "docker.io"
DEFAULT_TAG = "latest"
HOST = "host"

FORMS = (
    "host, dir:/PATH, oci:/PATH[:TAG], oci-archive:/FILE.tar[:TAG], docker-archive:/FILE.tar[:NAME:TAG], "
    "docker-daemon:NAME[:TAG], docker://REGISTRY/NAME[:TAG or @sha256:DIGEST], or NAME[:TAG]"
)

_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_NAME = re.compile(rf"{_PART}(?:/{_PART})*")
_TAG = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}")
_DIGEST = re.compile(r"sha256:[0-9a-f]{64}")
_DOMAIN = re.compile(
    r"(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::[0-9]{1,5})?"
)
_LONGEST_NAME = 255
_LONGEST = 4096


class Source(StrEnum):
    """The kind of place that an image is in."""

    HOST = "host"
    FOLDER = "dir"
    LAYOUT = "oci"
    LAYOUT_ARCHIVE = "oci-archive"
    DOCKER_ARCHIVE = "docker-archive"
    ENGINE = "docker-daemon"
    REGISTRY = "docker"


_BY_PATH = (Source.FOLDER, Source.LAYOUT, Source.LAYOUT_ARCHIVE, Source.DOCKER_ARCHIVE)


@dataclass(frozen=True, slots=True)
class Reference:
    """One image at one place: a path, or a name at a registry or an engine, and which of those there."""

    source: Source
    path: str = ""
    registry: str = ""
    name: str = ""
    tag: str = ""
    digest: str = ""

    def __str__(self) -> str:
        """The whole reference, nothing left to defaults; it parses to itself."""
        if self.source is Source.HOST:
            return HOST
        if self.source in _BY_PATH:
            return f"{self.source}:{self.path}" + (f":{self.tag}" if self.tag else "")
        if self.source is Source.ENGINE:
            return f"{self.source}:{self.name}" + (f":{self.tag}" if self.tag else "")
        return f"docker://{self.address}" + (f":{self.tag}" if self.tag else f"@{self.digest}")

    @property
    def address(self) -> str:
        """Registry and name, without tag and digest."""
        return f"{self.registry}/{self.name}"

    @property
    def loopback(self) -> bool:
        """Whether the registry is on this machine, where no one listens in: then TLS is not asked for."""
        host = self.registry.rpartition(":")[0] if _has_port(self.registry) else self.registry
        if host == "localhost":
            return True
        try:
            return ipaddress.ip_address(host.strip("[]")).is_loopback
        except ValueError:
            return False

    def at(self, digest: str) -> Self:
        """The same name at a registry, held to one digest."""
        return type(self)(self.source, registry=self.registry, name=self.name, digest=digest)


def parse(text: str) -> Reference:
    """The reference that `text` is; InputError says what can be written."""
    if not text.isprintable() or len(text) > _LONGEST:
        raise InputError(f"{text[:80]!a} names no image: write one of {FORMS}")
    if text == HOST:
        return Reference(Source.HOST)
    if text.startswith("docker://"):
        return _registry(text, text.removeprefix("docker://"))
    kind, colon, rest = text.partition(":")
    for source in _BY_PATH:
        if colon and kind == source.value:
            return _placed(source, text, rest)
    if colon and kind == Source.ENGINE.value:
        return _engine(text, rest)
    return _registry(text, text)


def _placed(source: Source, text: str, rest: str) -> Reference:
    """A colon ends the path of all but a folder: the other tools for these files have the same rule."""
    path, colon, tag = (rest, "", "") if source is Source.FOLDER else rest.partition(":")
    if not path.startswith("/"):
        raise InputError(f"{text!r}: write an absolute path, as in {source}:/path")
    if colon and not tag:
        raise InputError(f"{text!r}: write a tag after the last colon, or leave the colon out")
    return Reference(source, path=path, tag=tag)


def _engine(text: str, rest: str) -> Reference:
    if _DIGEST.fullmatch(rest):
        return Reference(Source.ENGINE, name=rest)
    name, tag = _tagged(rest)
    if not _fits(name, tag or DEFAULT_TAG):
        raise InputError(f"{text!r}: write docker-daemon:NAME:TAG, as `docker images` lists it")
    return Reference(Source.ENGINE, name=name, tag=tag or DEFAULT_TAG)


def _registry(text: str, rest: str) -> Reference:
    whole, at, digest = rest.partition("@")
    if at and not _DIGEST.fullmatch(digest):
        raise InputError(f"{text!r}: a digest is written @sha256: and 64 hex digits")
    named, tag = _tagged(whole)
    registry, name = _domain(named)
    if not _fits(f"{registry}/{name}", tag or DEFAULT_TAG):
        raise InputError(f"{text!r} names no image: write one of {FORMS}")
    if digest:  # it says more than the tag beside it
        return Reference(Source.REGISTRY, registry=registry, name=name, digest=digest)
    return Reference(Source.REGISTRY, registry=registry, name=name, tag=tag or DEFAULT_TAG)


def _tagged(text: str) -> tuple[str, str]:
    """Name and tag; a colon before the last slash is a registry's port."""
    head, slash, last = text.rpartition("/")
    last, colon, tag = last.partition(":")
    return head + slash + last, tag if colon and tag else ("!" if colon else "")


def _domain(named: str) -> tuple[str, str]:
    """Registry and name, by the rule that every tool has: a registry has a dot or a port, or is localhost."""
    first, slash, rest = named.partition("/")
    if slash and ("." in first or ":" in first or first == "localhost"):
        registry = DEFAULT_REGISTRY if first == "index.docker.io" else first
        name = rest
    else:
        registry, name = DEFAULT_REGISTRY, named
    if registry == DEFAULT_REGISTRY and "/" not in name:
        name = f"library/{name}"
    return registry, name


def _fits(name: str, tag: str) -> bool:
    registry, path = _domain(name)
    return (
        _DOMAIN.fullmatch(registry) is not None
        and _NAME.fullmatch(path) is not None
        and len(name) <= _LONGEST_NAME
        and _TAG.fullmatch(tag) is not None
    )


def _has_port(registry: str) -> bool:
    return ":" in registry.rpartition("]")[2]
