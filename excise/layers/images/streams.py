"""Bytes that are counted, hashed and unpacked as they pass, so that nothing is trusted and nothing is kept."""

from __future__ import annotations

import contextlib
import hashlib
import io
import shutil
import subprocess
import threading
import zlib
from collections.abc import Iterator
from typing import IO, TYPE_CHECKING

from excise.errors import ImageError
from excise.layers.images.tarstream import CHUNK, Reads

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_STEP = 64 * 1024
_GZIP = b"\x1f\x8b"
_ZSTD = b"\x28\xb5\x2f\xfd"
_GZIP_WINDOW = 31  # zlib's way to say: a gzip header, and its checksum is to be right


class Metered:
    """Passes bytes on, at most `most` of them, and knows the digest of all that passed."""

    def __init__(self, source: Reads, most: int, too_long: str) -> None:
        self.passed = 0
        self._source = source
        self._most = most
        self._too_long = too_long
        self._sha256 = hashlib.sha256()

    def read(self, size: int, /) -> bytes:
        data = self._source.read(size)
        self.passed += len(data)
        if self.passed > self._most:
            raise ImageError(self._too_long)
        self._sha256.update(data)
        return data

    def drain(self) -> None:
        while self.read(CHUNK):
            pass

    @property
    def digest(self) -> str:
        return f"sha256:{self._sha256.hexdigest()}"


class _Plain:
    """Bytes looked at already, then the rest."""

    def __init__(self, seen: bytes, source: Reads) -> None:
        self._seen = seen
        self._source = source

    def read(self, size: int, /) -> bytes:
        if not self._seen:
            return _full(self._source, size)
        data, self._seen = self._seen[:size], self._seen[size:]
        return data + _full(self._source, size - len(data)) if len(data) < size else data


class _Gunzip(io.RawIOBase):
    """gzip, of one or more members, never more in memory than a chunk."""

    def __init__(self, source: Reads) -> None:
        self._source = source
        self._inflate = zlib.decompressobj(_GZIP_WINDOW)
        self._ahead = b""

    def readable(self) -> bool:
        return True

    def readinto(self, into: WriteableBuffer, /) -> int:
        room = memoryview(into).cast("B")
        data = b""
        while not data and (not self._inflate.eof or self._next_member()):
            data = self._some(len(room))
        room[: len(data)] = data
        return len(data)

    def _some(self, size: int) -> bytes:
        data = self._ahead or self._source.read(_STEP)
        try:
            part = self._inflate.decompress(data, size)
        except zlib.error as error:
            raise ImageError(f"the layer's compressed data is damaged: {error}") from error
        if not data and not part and not self._inflate.eof:
            raise ImageError("the layer ends within its compressed data")
        self._ahead = self._inflate.unconsumed_tail
        return part

    def _next_member(self) -> bool:
        rest = self._inflate.unused_data.lstrip(b"\0") or self._source.read(_STEP)
        while rest and not (rest := rest.lstrip(b"\0")):  # what may follow: filling
            rest = self._source.read(_STEP)
        self._ahead = rest
        self._inflate = zlib.decompressobj(_GZIP_WINDOW) if rest else self._inflate
        return bool(rest)


@contextlib.contextmanager
def unpacked(source: Reads) -> Iterator[Reads]:
    """What `source` holds, by its first bytes: gzip, zstd, or just what it says."""
    seen = _full(source, 4)
    whole = _Plain(seen, source)
    if seen.startswith(_GZIP):
        yield io.BufferedReader(_Gunzip(whole), CHUNK)
    elif seen == _ZSTD:
        with _unzstd(whole) as plain:
            yield plain
    else:
        yield whole


@contextlib.contextmanager
def _unzstd(source: Reads) -> Iterator[Reads]:
    """Zstd is not in this Python: its own program does it, fed by a thread."""
    program = shutil.which("zstd")
    if program is None:
        raise ImageError("the layer is compressed with zstd: install the program `zstd`")
    command = [program, "--decompress", "--stdout", "--quiet", "--single-thread"]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        failure: list[BaseException] = []
        feeder = threading.Thread(target=_feed, args=(source, process.stdin, failure), daemon=True)
        feeder.start()
        try:
            yield _Piped(process, feeder, failure)
        finally:
            process.kill()
            feeder.join()


class _Piped:
    """A program's output, and at its end whether it and its feeder were content."""

    def __init__(
        self,
        process: subprocess.Popen[bytes],
        feeder: threading.Thread,
        failure: list[BaseException],
    ) -> None:
        self._process = process
        self._feeder = feeder
        self._failure = failure

    def read(self, size: int, /) -> bytes:
        assert self._process.stdout is not None
        data = self._process.stdout.read(size)
        if len(data) < size:
            self._feeder.join()
            if self._failure:
                raise self._failure[0]
            if self._process.wait() != 0:
                raise ImageError("the layer's compressed data is damaged")
        return data


def _feed(source: Reads, into: IO[bytes], failure: list[BaseException]) -> None:
    try:
        with into:
            while data := source.read(CHUNK):
                into.write(data)
    except BrokenPipeError:
        pass  # it had enough; its exit status says why
    except BaseException as error:  # noqa: BLE001  (raised again where the output is read)
        failure.append(error)


def _full(source: Reads, size: int) -> bytes:
    """`size` bytes however many reads it takes; fewer only at the end."""
    data = source.read(size)
    if not data or len(data) == size:
        return data
    parts, missing = [data], size - len(data)
    while missing and (data := source.read(missing)):
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)
