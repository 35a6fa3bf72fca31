"""Where the parts of an image lie: files of a folder, or of a tar archive, opened where they are and not copied."""

from __future__ import annotations

import io
import os
import posixpath
import stat
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Protocol, cast

from excise.errors import ImageError, InputError
from excise.layers.images.documents import LARGEST_DOCUMENT
from excise.layers.images.entry import Kind, parts_of
from excise.layers.images.streams import Metered
from excise.layers.images.tarstream import CHUNK, read_entries

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_MOST_PARTS = 100_000
_GZIP = b"\x1f\x8b"


class Files(Protocol):
    """Named files that can be read. `what` is how a message speaks of all of them."""

    @property
    def what(self) -> str: ...

    def open(self, name: str) -> BinaryIO: ...


@dataclass(frozen=True, slots=True)
class Blob:
    """One part of an image, and what is known of it beforehand."""

    files: Files
    name: str
    digest: str | None = None
    size: int | None = None

    def document(self) -> bytes:
        """All of it, if it is as small as a document and is what its digest says."""
        if self.size is not None and self.size > LARGEST_DOCUMENT:
            raise ImageError(f"{self.name} in {self.files.what} is too large to be a document")
        with self.files.open(self.name) as file:
            source = Metered(file, LARGEST_DOCUMENT, f"{self.name} is too large to be a document")
            data = source.read(LARGEST_DOCUMENT + 1)
        self.check(source)
        return data

    def metered(self, file: BinaryIO) -> Metered:
        """The bytes of the part, counted and hashed; more than were announced are refused."""
        most = self.size if self.size is not None else 1 << 62
        return Metered(file, most, f"{self.name} in {self.files.what} is longer than announced")

    def check(self, passed: Metered) -> None:
        """ImageError unless all that passed is what was announced."""
        if self.size not in (None, passed.passed):
            raise ImageError(
                f"{self.name} in {self.files.what} has {passed.passed} bytes, not the {self.size} announced"
            )
        if self.digest not in (None, passed.digest):
            raise ImageError(f"{self.name} in {self.files.what} is damaged: it is {passed.digest}")


class FolderFiles:
    """The files below a folder."""

    def __init__(self, folder: Path, what: str) -> None:
        self.what = what
        self._folder = folder

    def open(self, name: str) -> BinaryIO:
        return open_file(self._folder / name, f"{self.what} lacks {name}")


class TarFiles:
    """The files in a tar archive, which stays open and as it is."""

    def __init__(self, archive: Path, what: str) -> None:
        self.what = what
        self._file = open_file(archive, f"{what} does not exist")
        try:
            if self._file.read(2) == _GZIP:
                raise InputError(f"{what} is compressed: unpack it with gunzip, then name the tar")
            self._file.seek(0)
            self._places, self._links = self._survey()
        except BaseException:
            self._file.close()
            raise

    def close(self) -> None:
        self._file.close()

    def open(self, name: str) -> BinaryIO:
        at = posixpath.normpath(name)
        for _ in range(10):
            if at not in self._links:
                break
            at = posixpath.normpath(posixpath.join(posixpath.dirname(at), self._links[at]))
        if at not in self._places:
            raise ImageError(f"{self.what} lacks {name}")
        start, size = self._places[at]
        return io.BufferedReader(_Part(self._file.fileno(), start, size), CHUNK)

    def _survey(self) -> tuple[Mapping[str, tuple[int, int]], Mapping[str, str]]:
        places: dict[str, tuple[int, int]] = {}
        links: dict[str, str] = {}
        for entry in read_entries(self._file, lambda size: self._file.seek(size, os.SEEK_CUR)):
            name = os.fsdecode(b"/".join(parts_of(entry.path)))
            if entry.kind is Kind.FILE:
                places[name] = (self._file.tell(), entry.size)
            elif (
                entry.kind is Kind.SYMLINK
            ):  # how an old engine saves a layer that two images share
                links[name] = os.fsdecode(entry.target)
            if len(places) + len(links) > _MOST_PARTS:
                raise ImageError(f"{self.what} has too many parts for an image")
        return places, links


class _Part(io.RawIOBase):
    """A stretch of an open file, at a place of its own."""

    def __init__(self, fd: int, start: int, size: int) -> None:
        self._fd = fd
        self._at = start
        self._end = start + size

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer, /) -> int:
        room = memoryview(into).cast("B")[: self._end - self._at]
        count = os.preadv(self._fd, [room], self._at) if room else 0
        self._at += count
        return count


def open_file(path: Path, absent: str) -> BinaryIO:
    """The regular file at `path`: a fifo would make us wait, a folder cannot be read."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except (FileNotFoundError, NotADirectoryError):
        raise ImageError(absent) from None
    except OSError as error:
        raise ImageError(f"{path} cannot be read: {error.strerror}") from error
    if not stat.S_ISREG(os.fstat(fd).st_mode):
        os.close(fd)
        raise ImageError(f"{path} is not a file")
    return cast("BinaryIO", os.fdopen(fd, "rb"))
