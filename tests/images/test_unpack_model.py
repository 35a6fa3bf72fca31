"""Any layers at all: the overlay shows what whiteouts and entries, applied one after the other, leave."""

from __future__ import annotations

import contextlib
import io
import os
import stat
import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from excise.errors import ImageError
from excise.layers.images.below import Below
from excise.layers.images.tarstream import read_entries
from excise.layers.images.unpack import unpack

FOLDERS = st.lists(st.sampled_from("ab"), max_size=2).map(tuple)
PATHS = st.builds(lambda above, name: (*above, name), FOLDERS, st.sampled_from("abl"))
LINKS = FOLDERS.map(lambda above: (*above, "l"))
"""Only what is called l may be a link, and no path leads through it: that is held elsewhere."""

NOTHING = st.just(b"")
OPS = st.one_of(
    st.tuples(st.just("file"), PATHS, st.binary(max_size=3)),
    st.tuples(st.just("folder"), PATHS, NOTHING),
    st.tuples(st.just("link"), LINKS, st.sampled_from([b"a", b"/b/c", b"../.."])),
    st.tuples(st.just("hard"), LINKS, PATHS),
    st.tuples(st.just("hide"), PATHS, NOTHING),
    st.tuples(st.just("opaque"), FOLDERS, NOTHING),
)
LAYERS = st.lists(st.lists(OPS, min_size=1, max_size=6), min_size=2, max_size=4)


class Refused(Exception):
    """What the model expects to be an ImageError."""


class Model:
    """A root file system as a flat mapping; one layer at a time is applied to it."""

    def __init__(self) -> None:
        self.tree: dict[tuple, tuple] = {}

    def apply(self, ops) -> None:
        below, self.tree = dict(self.tree), {}
        own: dict[tuple, tuple] = {}
        hides = []
        for kind, path, extra in ops:
            if kind in ("hide", "opaque"):
                inside = path if kind == "opaque" else path[:-1]
                self._blocked(own, inside)
                hides.append((kind, path))
            else:
                self._add(own, kind, path, extra)
        for kind, path in hides:
            if kind == "hide" or below.get(path, ("folder",))[0] == "folder":
                below = {p: v for p, v in below.items() if not self._in(p, path, kind == "hide")}
        for path, value in own.items():
            if value[0] != "folder" or below.get(path, ("folder",))[0] != "folder":
                below = {p: v for p, v in below.items() if p[: len(path)] != path}
        self.tree = below | own

    @staticmethod
    def _in(path, top, itself) -> bool:
        return path[: len(top)] == top and (itself or path != top)

    @staticmethod
    def _blocked(own, path) -> None:
        for depth in range(1, len(path) + 1):
            if own.get(path[:depth], ("folder",))[0] != "folder":
                raise Refused

    def _add(self, own, kind, path, extra) -> None:
        value = (kind, extra)
        if kind == "hard":
            self._blocked(own, extra[:-1])
            if own.get(extra, ("folder",))[0] == "folder" or extra == path:
                raise Refused
            value = own[extra]
        self._blocked(own, path[:-1])
        for depth in range(1, len(path)):
            own.setdefault(path[:depth], ("folder", b""))
        if kind != "folder":
            if kind == "hard" and extra[: len(path)] == path:
                raise Refused  # the link would remove what it links to
            for inner in [p for p in own if p[: len(path)] == path]:
                del own[inner]
        elif own.get(path, ("folder",))[0] != "folder":
            del own[path]
        own[path] = value


def seen(top: Path) -> dict[tuple, tuple]:
    found = {}
    for folder, folders, files in os.walk(top):
        for name in folders + files:
            path = Path(folder, name)
            parts, mode = path.relative_to(top).parts, path.lstat().st_mode
            if stat.S_ISLNK(mode):
                found[parts] = ("link", os.fsencode(path.readlink()))
            elif stat.S_ISDIR(mode):
                found[parts] = ("folder", b"")
            else:
                found[parts] = ("file", path.read_bytes())
    return found


@contextlib.contextmanager
def overlay(lowers, scratch: Path):
    for name in ("upper", "work", "merged"):
        (scratch / name).mkdir()
    options = f"lowerdir={':'.join(map(str, lowers))},upperdir=upper,workdir=work"
    command = ["mount", "-t", "overlay", "overlay", "-o", options, "merged"]
    subprocess.run(command, check=True, cwd=scratch)
    try:
        yield scratch / "merged"
    finally:
        subprocess.run(["umount", "--lazy", "merged"], check=True, cwd=scratch)


def to_archive(tar, ops) -> bytes:
    members = []
    for kind, path, extra in ops:
        name = "/".join(path)
        if kind == "file":
            members.append(tar.file(name, extra))
        elif kind == "folder":
            members.append(tar.folder(name))
        elif kind == "link":
            members.append(tar.link(name, extra.decode()))
        elif kind == "hard":
            members.append(tar.hard(name, "/".join(extra)))
        elif kind == "hide":
            members.append(tar.file("/".join((*path[:-1], f".wh.{path[-1]}"))))
        else:
            members.append(tar.file("/".join((*path, ".wh..wh..opq"))))
    return tar(*members)


def acceptable(ops) -> list:
    """The operations without those that no layer can have."""
    good: list = []
    for op in ops:
        with contextlib.suppress(Refused):
            Model().apply([*good, op])
            good.append(op)
    return good


def unpack_on(trees, tar, ops, place: Path) -> None:
    tree = place / str(len(trees))
    tree.mkdir()
    unpack(read_entries(io.BytesIO(to_archive(tar, ops))), tree, Below(trees))
    trees.insert(0, tree)


THOROUGH = settings(
    max_examples=300,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@pytest.mark.timeout(180)
@THOROUGH
@given(stack=LAYERS)
def test_the_overlay_shows_what_the_model_says(as_root, tar, stack) -> None:
    model = Model()
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="images-") as name:
        trees: list[Path] = []
        for ops in map(acceptable, stack):
            model.apply(ops)
            unpack_on(trees, tar, ops, Path(name))
        scratch = Path(name, "mount")
        scratch.mkdir()
        with overlay(trees, scratch) as merged:
            assert seen(merged) == model.tree


@settings(THOROUGH, max_examples=100)
@given(stack=st.lists(st.lists(OPS, max_size=10), min_size=1, max_size=1))
def test_the_layers_that_are_refused_are_those_that_make_no_sense(as_root, tar, stack) -> None:
    (ops,) = stack
    with tempfile.TemporaryDirectory(dir="/dev/shm", prefix="images-") as name:
        if acceptable(ops) == ops:
            unpack_on([], tar, ops, Path(name))
        else:
            with pytest.raises(ImageError):
                unpack_on([], tar, ops, Path(name))
