"""What clients said of files when they wrote them. Kept here, beside the sandbox, and dropped when a file was changed.

The protocol's own daemon keeps this in extended attributes of the files; whether a sandbox has room for those
depends on the host's file systems.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable, Mapping

from excise.errors import InputError
from excise.substrates.base import Entry

HEADER = "x-metadata-"
MOST_FILES = 10_000
MOST_BYTES = 16 * 1024
Labels = Mapping[str, str]


class FileLabels:
    """By path. What was said of a file holds for that content: size and time of change tell."""

    def __init__(self) -> None:
        self._known: OrderedDict[str, tuple[tuple[int, int], Labels]] = OrderedDict()

    def said(self, path: str, entry: Entry, labels: Labels) -> None:
        """This was just written."""
        self._known.pop(path, None)
        if labels:
            self._known[path] = (_content(entry), labels)
            while len(self._known) > MOST_FILES:
                self._known.popitem(last=False)

    def of(self, path: str, entry: Entry) -> Labels | None:
        content, labels = self._known.get(path, (None, None))
        return labels if content == _content(entry) else None

    def moved(self, path: str, to: str) -> None:
        """With what is below it; what was there before is gone."""
        self.removed(to)
        for each in self._at_or_below(path):
            self._known[to + each[len(path) :]] = self._known.pop(each)

    def removed(self, path: str) -> None:
        for each in self._at_or_below(path):
            del self._known[each]

    def _at_or_below(self, path: str) -> list[str]:
        return [each for each in self._known if each == path or each.startswith(f"{path}/")]


def labels_of(headers: Iterable[tuple[str, str]]) -> dict[str, str]:
    """What the headers of an upload say of its files. Their names come in lower case, as the protocol has them."""
    found: dict[str, str] = {}
    for name, value in headers:
        if name.lower().startswith(HEADER):
            found[name[len(HEADER) :].lower()] = value
    if sum(len(name) + len(value) for name, value in found.items()) > MOST_BYTES:
        raise InputError(f"more metadata than {MOST_BYTES} bytes")
    if "" in found:
        raise InputError("metadata without a name")
    return found


def _content(entry: Entry) -> tuple[int, int]:
    return entry.size, entry.modified_ns
