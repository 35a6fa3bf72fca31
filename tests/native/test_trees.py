"""Whole trees, removed and digested by a child of the agent: deep, hostile, and equal on every file system."""

from __future__ import annotations

import contextlib
import errno
import hashlib
import itertools
import os
import shutil
import struct
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

DEEP = 1100


def fails(error: int) -> Any:
    return pytest.raises(OSError, check=lambda e: e.errno == error)


KINDS = {0o4: b"d", 0o10: b"f", 0o12: b"l", 0o1: b"p", 0o14: b"s", 0o2: b"c", 0o6: b"b"}
ATTRIBUTES = {"security.capability", "system.posix_acl_access", "system.posix_acl_default"}


def text(value: bytes) -> bytes:
    return struct.pack("<I", len(value)) + value


def attributes(path: Path) -> bytes:
    names = sorted(n for n in os.listxattr(path) if n.startswith("user.") or n in ATTRIBUTES)
    values = (text(n.encode()) + text(os.getxattr(path, n)) for n in names)
    return struct.pack("<I", len(names)) + b"".join(values)


def records(path: Path, name: bytes) -> Iterator[bytes]:
    """The encoding of native/digest.h, written down a second time: an entry's head, and what follows it."""
    about = path.lstat()
    kind = KINDS[about.st_mode >> 12]
    yield (
        kind + struct.pack("<III", about.st_mode & 0o7777, about.st_uid, about.st_gid) + text(name)
    )
    match kind:
        case b"d":
            yield attributes(path)
            for below in sorted(path.iterdir(), key=os.fsencode):
                yield from records(below, os.fsencode(below.name))
            yield b"\0"
        case b"f":
            content = path.read_bytes()
            yield attributes(path) + struct.pack("<Q", len(content)) + content
        case b"l":
            yield text(os.fsencode(path.readlink()))
        case b"c" | b"b":
            yield struct.pack("<II", os.major(about.st_rdev), os.minor(about.st_rdev))


def digest_in_python(top: Path) -> tuple[int, str]:
    whole = b"excise tree 1\n" + b"".join(records(top, b""))
    return sum(1 for _ in top.rglob("*")) + 1, hashlib.sha256(whole).hexdigest()


def make_tree(top: Path) -> None:
    (top / "a/b").mkdir(parents=True)
    (top / "a/b/f").write_bytes(os.urandom(200_001))
    (top / "a/empty").write_bytes(b"")
    (top / "a.b").mkdir(mode=0o1777)
    (top / "a-").symlink_to("a/b")
    (top / os.fsdecode(b"\xff")).write_bytes(b"x" * 64)
    os.mkfifo(top / "pipe", 0o600)
    os.mknod(top / "device", 0o020600, os.makedev(1, 7))
    os.link(top / "a/b/f", top / "linked")
    os.chown(top / "a/b/f", 1000, 2000)
    os.setxattr(top / "a", "user.two", b"2")
    os.setxattr(top / "a", "user.one", b"\0\1")


@pytest.fixture
def tree(root: Path) -> Path:
    make_tree(root / "t")
    return root / "t"


@pytest.mark.parametrize("size", [0, 1, 55, 56, 57, 63, 64, 65, 119, 120, 127, 128, 65536, 70001])
def test_a_files_digest_is_the_sha_256_of_its_record(files: Any, root: Path, size: int) -> None:
    (root / "f").write_bytes(os.urandom(size))
    assert files.digest("/f") == digest_in_python(root / "f")


def test_a_trees_digest_is_what_the_documentation_says(files: Any, tree: Path) -> None:
    assert files.digest("/t") == digest_in_python(tree)
    (tree.parent / "link").symlink_to("t")
    assert files.digest("/link") == files.digest("/t") == files.digest("/t/.")
    assert files.digest("/") == digest_in_python(tree.parent)


def test_equal_trees_have_equal_digests_whenever_and_wherever_they_were_written(
    files: Any, tree: Path
) -> None:
    (tree / "sparse").write_bytes(bytes(100_000))
    subprocess.run(["cp", "-a", "--sparse=always", tree, tree.parent / "copy"], check=True)
    (tree.parent / "copy/linked").unlink()
    shutil.copy2(tree / "linked", tree.parent / "copy/linked")
    os.chown(tree.parent / "copy/linked", 1000, 2000)
    os.utime(tree.parent / "copy/a", (1, 1))
    assert files.digest("/copy") == files.digest("/t")


@pytest.mark.parametrize(
    "change",
    [
        lambda t: (t / "a/b/f").chmod(0o600),
        lambda t: os.chown(t / "a/empty", 1, 0),
        lambda t: os.chown(t / "a/empty", 0, 1),
        lambda t: (t / "a/empty").write_bytes(b"\0"),
        lambda t: (t / "a/empty").rename(t / "empty"),
        lambda t: (t / "a/new").symlink_to("x"),
        lambda t: ((t / "a-").unlink(), (t / "a-").symlink_to("a/c")),
        lambda t: os.setxattr(t / "a", "user.one", b"\0\2"),
        lambda t: os.removexattr(t / "a", "user.two"),
        lambda t: t.chmod(0o700),
        lambda t: ((t / "pipe").unlink(), (t / "pipe").touch(0o600)),
        lambda t: ((t / "device").unlink(), os.mknod(t / "device", 0o020600, os.makedev(1, 5))),
        lambda t: (t / "a/b").rename(t / "a.b/b"),
    ],
)
def test_whatever_differs_changes_the_digest(
    files: Any, tree: Path, change: Callable[[Path], object]
) -> None:
    before = files.digest("/t")
    change(tree)
    assert files.digest("/t") != before


def make_deep(top: Path, name: str = "d" * 100) -> None:
    """Deeper than any path can say, and than there are descriptors."""
    here = os.open(top, os.O_RDONLY)
    for level in range(DEEP):
        os.mkdir(name, dir_fd=here)
        if level % 100 == 0:
            os.close(os.open("f", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        below = os.open(name, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)


def test_a_tree_deeper_than_any_path_is_digested_and_removed(files: Any, root: Path) -> None:
    (root / "t").mkdir()
    make_deep(root / "t")
    assert files.digest("/t")[0] == 1 + DEEP + DEEP // 100
    files.remove("/t", whole=True)
    assert list(root.iterdir()) == []


def test_a_tree_is_removed_with_all_that_is_in_it_and_nothing_its_links_lead_to(
    files: Any, tree: Path
) -> None:
    root = tree.parent
    (root / "kept").mkdir()
    (root / "kept/f").write_bytes(b"x")
    (tree / "a/b/out").symlink_to("../../../kept")
    (tree / "a/b/absolute").symlink_to("/kept/f")
    (root / "link").symlink_to("kept")
    with fails(errno.ENOTEMPTY):
        files.remove("/t")
    files.remove("/t", whole=True)
    files.remove("/link", whole=True)
    assert [p.name for p in root.iterdir()] == ["kept"]
    assert (root / "kept/f").read_bytes() == b"x"
    with fails(errno.ENOENT):
        files.remove("/t", whole=True)


def test_a_tree_that_somebody_keeps_swapping_for_links_takes_nothing_else_along(
    files: Any, root: Path
) -> None:
    (root / "kept").mkdir()
    for number in range(50):
        (root / "kept" / str(number)).touch()
    over = threading.Event()

    def swap() -> None:
        for number in itertools.count():
            if over.wait(0.0001):
                return
            for name in ("t", "t/x", "t/x/deep"):
                try:
                    (root / name).rename(root / f"away-{number}-{name.replace('/', '-')}")
                    (root / name).symlink_to("/kept")
                except OSError:
                    continue  # not there at the moment, or already a link

    thread = threading.Thread(target=swap)
    thread.start()
    try:
        for round_ in range(25):
            new = root / f"new-{round_}"
            for number in range(30):
                (new / "x/deep" / str(number)).mkdir(parents=True)
                (new / "x" / f"f{number}").touch()
            while new.exists():
                remove_whatever_is_at(files, "/t")
                with contextlib.suppress(NotADirectoryError):  # a link is there again
                    new.rename(root / "t")
            remove_whatever_is_at(files, "/t")
    finally:
        over.set()
        thread.join()
    assert len(list((root / "kept").iterdir())) == 50


def remove_whatever_is_at(files: Any, path: str) -> None:
    with contextlib.suppress(FileNotFoundError):
        while True:
            try:
                files.remove(path, whole=True)
            except OSError as failed:
                if failed.errno not in {
                    errno.ESTALE,
                    errno.ENOTEMPTY,
                    errno.ENOTDIR,
                }:  # swapped meanwhile
                    raise


def test_a_mount_stops_a_removal_before_anything_behind_it_is_touched(
    files: Any, root: Path
) -> None:
    (root / "t/mounted").mkdir(parents=True)
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", root / "t/mounted"],
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"no mount may be made here: {done.stderr.strip()}")
    try:
        (root / "t/mounted/f").touch()
        with fails(errno.EBUSY) as failed:
            files.remove("/t", whole=True)
        assert "/t/mounted: " in str(failed.value)
        assert (root / "t/mounted/f").exists()
    finally:
        subprocess.run(["umount", root / "t/mounted"], check=True)


def test_no_room_is_said_and_leaves_no_half_file(start: Callable[..., Any], root: Path) -> None:
    done = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", root], capture_output=True, text=True, check=False
    )  # fmt: skip
    if done.returncode:
        pytest.skip(f"no mount may be made here: {done.stderr.strip()}")
    try:
        with start(root) as files:
            files.write("/f", b"small")
            with fails(errno.ENOSPC):
                files.write("/f", bytes(2 << 20))
            assert [e.name for e in files.list("/")] == [b"f"]
            assert files.read("/f") == b"small"
    finally:
        subprocess.run(["umount", root], check=True)
