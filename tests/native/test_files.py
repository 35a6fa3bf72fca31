"""The agent's file operations, under sanitizers, in a root of their own."""

from __future__ import annotations

import errno
import os
import socket
import stat
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

REQUEST_LIMIT = 8 << 20


def fails(error: int) -> Any:
    return pytest.raises(OSError, check=lambda e: e.errno == error)


def leftovers(root: Path) -> list[str]:
    return [str(p.relative_to(root)) for p in root.rglob(".excise-*")]


def test_a_file_reads_as_it_was_written(files: Any, root: Path) -> None:
    content = os.urandom(300_000) + bytes(1000)
    files.write("/f", content, mode=0o751)
    assert (root / "f").read_bytes() == content
    assert files.read("/f") == content
    about = files.stat("/f")
    assert (about.mode, about.size, about.links) == (stat.S_IFREG | 0o751, len(content), 1)
    assert (about.name, about.target, about.uid) == (b"f", b"", 0)
    assert about.mtime_ns == (root / "f").stat().st_mtime_ns


def test_a_read_gives_at_most_what_was_asked_for_and_less_only_at_the_end(files: Any) -> None:
    files.write("/f", b"0123456789")
    assert files.read("/f", 0, 4) == b"0123"
    assert files.read("/f", 4, 4) == b"4567"
    assert files.read("/f", 8, 4) == b"89"
    assert files.read("/f", 10, 4) == b""
    assert files.read("/f", 1 << 40, 4) == b""
    assert files.read("/f", 0, 0) == b""
    with fails(errno.EINVAL):
        files.read("/f", 0, REQUEST_LIMIT + 1)
    with fails(errno.EINVAL):
        files.read("/f", 1 << 63, 1)


def test_relative_paths_count_from_the_root(files: Any, root: Path) -> None:
    files.mkdir("a")
    files.write("a/f", b"x")
    assert (root / "a/f").read_bytes() == b"x"
    assert files.read("../../a/../a/./f") == b"x"


def test_a_file_in_pieces_appears_with_the_last_one(files: Any, root: Path) -> None:
    (root / "f").write_bytes(b"old")
    files.piece(7, files.FIRST, "/f", b"one ")
    files.piece(9, files.FIRST, "/g", b"other")
    files.piece(7, 0, "", b"two ")
    assert files.read("/f") == b"old"
    assert len(leftovers(root)) == 2
    files.piece(7, files.LAST, "", b"three")
    assert files.receive(7)[0] == 67
    assert files.read("/f") == b"one two three"
    files.piece(9, files.LAST, "", b"")
    assert files.receive(9)[0] == 67
    assert leftovers(root) == []


def test_an_upload_that_is_not_finished_leaves_nothing(
    start: Callable[..., Any], root: Path
) -> None:
    (root / "f").write_bytes(b"old")
    with start(root) as files:
        files.piece(1, files.FIRST, "/f", b"new")
        files.stat("/f")
        assert len(leftovers(root)) == 1
    assert leftovers(root) == []
    assert (root / "f").read_bytes() == b"old"


def test_an_upload_that_starts_over_leaves_one_file(files: Any, root: Path) -> None:
    files.piece(1, files.FIRST, "/f", b"given up")
    files.piece(1, files.FIRST | files.LAST, "/f", b"new")
    files.receive(1)
    assert (root / "f").read_bytes() == b"new"
    assert leftovers(root) == []


def test_one_answer_for_an_upload_that_fails_whatever_still_comes(files: Any, root: Path) -> None:
    files.piece(1, files.FIRST, "/missing/f", b"one")
    files.piece(1, 0, "", b"two")
    files.piece(1, files.LAST, "", b"three")
    with fails(errno.ENOENT):
        files.receive(1)
    files.write("/f", b"the next answer is this one's")
    assert leftovers(root) == []
    files.piece(5, files.LAST, "", b"never begun")
    with fails(errno.EBADF):
        files.receive(5)


def test_failed_uploads_do_not_use_up_the_places_for_good(files: Any) -> None:
    for number in range(100, 200):
        files.piece(number, files.FIRST, "/missing/f", b"")
        with fails(errno.ENOENT):
            files.receive(number)
    for number in range(200, 264):
        files.piece(number, files.FIRST, f"/{number}", b"")
    files.piece(300, files.FIRST, "/one-too-many", b"")
    with fails(errno.EMFILE):
        files.receive(300)
    files.piece(200, files.LAST, "", b"")
    files.receive(200)
    files.write("/f", b"")


def test_an_existing_file_keeps_its_mode_and_owner(files: Any, root: Path) -> None:
    (root / "f").write_bytes(b"old")
    os.chown(root / "f", 1234, 567)
    (root / "f").chmod(0o4710)
    for flags in (0, files.IN_PLACE):
        files.write("/f", b"new", flags, mode=0o600, owner=(1, 1))
        about = (root / "f").stat()
        assert (about.st_uid, about.st_gid, about.st_size) == (1234, 567, 3)
        assert stat.S_IMODE(about.st_mode) == 0o4710
        assert (root / "f").read_bytes() == b"new"


def test_a_new_file_and_its_parents_get_their_owner(files: Any, root: Path) -> None:
    files.write("/a/b//c/f", b"", files.PARENTS, mode=0o2640, owner=(1000, 1001))
    files.write("/d/g", b"", files.PARENTS | files.IN_PLACE, owner=(1000, 1001))
    for path in ("a", "a/b", "a/b/c", "a/b/c/f", "d", "d/g"):
        assert ((root / path).stat().st_uid, (root / path).stat().st_gid) == (1000, 1001)
    assert stat.S_IMODE((root / "a/b/c/f").stat().st_mode) == 0o2640
    assert root.stat().st_uid == 0


def test_writing_in_place_keeps_hard_links_and_renaming_does_not(files: Any, root: Path) -> None:
    (root / "f").write_bytes(b"a long old content")
    os.link(root / "f", root / "g")
    files.write("/f", b"new", files.IN_PLACE)
    assert (root / "g").read_bytes() == b"new"
    files.write("/f", b"newer")
    assert ((root / "f").read_bytes(), (root / "g").read_bytes()) == (b"newer", b"new")


@pytest.mark.parametrize("in_place", [False, True])
def test_writing_to_a_link_writes_what_it_leads_to(files: Any, root: Path, in_place: bool) -> None:
    (root / "d").mkdir()
    (root / "d/target").write_bytes(b"old")
    (root / "absolute").symlink_to("/d/relative")
    (root / "d/relative").symlink_to("../d/target")
    (root / "dangling").symlink_to("d/new")
    flags = files.IN_PLACE if in_place else 0
    files.write("/absolute", b"new", flags)
    files.write("/dangling", b"fresh", flags)
    assert (root / "d/target").read_bytes() == b"new"
    assert (root / "d/new").read_bytes() == b"fresh"
    assert (root / "absolute").is_symlink()
    assert (root / "dangling").is_symlink()
    assert leftovers(root) == []


def test_links_and_dots_do_not_lead_out(files: Any, root: Path, tmp_path_factory: Any) -> None:
    outside = tmp_path_factory.mktemp("outside")
    (outside / "secret").write_bytes(b"secret")
    (root / "up").symlink_to("../" * 20 + str(outside / "secret")[1:])
    (root / "absolute").symlink_to(outside / "secret")
    for path in ("/up", "/absolute", str(outside / "secret"), "../" * 20 + str(outside)[1:]):
        with fails(errno.ENOENT):
            files.read(path)
        with fails(errno.ENOENT):
            files.write(path, b"x")
    assert (outside / "secret").read_bytes() == b"secret"
    (root / "loop").symlink_to("loop")
    for act in (files.read, files.list, files.digest, lambda p: files.write(p, b"")):
        with fails(errno.ELOOP):
            act("/loop")


def test_pipes_sockets_devices_and_directories_are_refused_and_never_waited_for(
    files: Any, root: Path
) -> None:
    os.mkfifo(root / "pipe")
    os.mknod(root / "null", stat.S_IFCHR | 0o666, os.makedev(1, 3))
    (root / "directory").mkdir()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))
    (root / "link").symlink_to("pipe")
    for name in ("pipe", "null", "socket", "link", "directory"):
        error = errno.EISDIR if name == "directory" else errno.ENXIO
        with fails(error):
            files.read(f"/{name}")
        for flags in (0, files.IN_PLACE):
            with fails(error):
                files.write(f"/{name}", b"x", flags)
    assert leftovers(root) == []


def test_the_kernels_own_links_and_the_agent_itself_are_out_of_reach(
    start: Callable[..., Any], tmp_path: Path
) -> None:
    files = start()
    pid = files.process.pid
    (tmp_path / "fd").symlink_to("/proc/self/fd/0")
    (tmp_path / "memory").symlink_to("/proc/self/mem")
    for path in (f"/proc/self/root{tmp_path}", f"/proc/{pid}/fd/1", str(tmp_path / "fd")):
        with fails(errno.ELOOP):
            files.read(path)
    for path in ("/proc/self/environ", f"/proc/{pid}/task/{pid}/maps", str(tmp_path / "memory")):
        with fails(errno.EACCES):
            files.read(path)
    for path in ("/proc/self/oom_score_adj", "/proc/self/comm", str(tmp_path / "memory")):
        for flags in (0, files.IN_PLACE):
            with fails(errno.EACCES):
                files.write(path, b"0", flags)
    assert files.read("/proc/version", 0, 20) == Path("/proc/version").read_bytes()[:20]
    assert files.read("/proc/cpuinfo")


def test_what_is_shorter_than_it_said_is_read_to_its_end(
    start: Callable[..., Any], root: Path
) -> None:
    files = start()
    size = int(Path("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size").read_text())
    assert int(files.read("/sys/kernel/mm/transparent_hugepage/hpage_pmd_size")) == size


def test_entries_come_sorted_by_their_bytes_whatever_they_are_called(
    files: Any, root: Path
) -> None:
    names = [b"b", b"B", b"a b", b"\xff\xfe", b"new\nline", b"-x", "ü".encode(), b"z" * 255]
    for name in names:
        Path(os.fsdecode(os.fsencode(root) + b"/" + name)).write_bytes(name)
    (root / "link").symlink_to("/nowhere")
    found = files.list("/")
    assert [e.name for e in found] == sorted([*names, b"link"])
    assert {e.name: e.target for e in found}[b"link"] == b"/nowhere"
    assert {e.name: e.size for e in found}[b"z" * 255] == 255
    assert files.stat("/link", follow=False).target == b"/nowhere"
    with fails(errno.ENOENT):
        files.stat("/link")
    files.remove(b"/\xff\xfe")
    assert b"\xff\xfe" not in [e.name for e in files.list("/")]


def test_a_directory_too_long_to_be_listed_at_once_is_listed_whole(files: Any, root: Path) -> None:
    (root / "many").mkdir()
    for number in range(2500):
        (root / "many" / f"{number:04}").touch()
    assert [e.name for e in files.list("/many")] == [b"%04d" % n for n in range(2500)]
    files.remove("/many", whole=True)
    assert list(root.iterdir()) == []


def test_directories_are_made_with_their_mode_and_asked_for_twice(files: Any, root: Path) -> None:
    files.mkdir("/a", 0o1777)
    assert stat.S_IMODE((root / "a").stat().st_mode) == 0o1777
    with fails(errno.EEXIST):
        files.mkdir("/a")
    with fails(errno.ENOENT):
        files.mkdir("/b/c")
    files.mkdir("/b/c/d/", 0o700, parents=True)
    files.mkdir("/b/c/d", parents=True)
    files.mkdir("/", parents=True)
    assert stat.S_IMODE((root / "b/c/d").stat().st_mode) == 0o700
    (root / "f").touch()
    with fails(errno.ENOTDIR):
        files.mkdir("/f", parents=True)


def test_renames_links_modes_and_owners(files: Any, root: Path) -> None:
    files.write("/f", b"x")
    files.symlink("../f", "/l")
    files.rename("/f", "/g")
    assert (root / "l").readlink() == Path("../f")
    files.rename("/l", "/g2")
    assert (root / "g2").is_symlink()
    files.chmod("/g", 0o4755)
    files.chown("/g", 12, 34)
    files.chown("/g", 0xFFFFFFFF, 35)
    about = (root / "g").stat()
    assert (about.st_uid, about.st_gid) == (12, 35)
    files.write("/h", b"y")
    files.rename("/h", "/g")
    assert files.read("/g") == b"y"
    with fails(errno.EEXIST):
        files.symlink("x", "/g")
    with fails(errno.ENOENT):
        files.rename("/nothing", "/g")


def test_what_has_no_place_cannot_be_removed_or_renamed(files: Any, root: Path) -> None:
    (root / "d").mkdir()
    for path in ("/", "//", "/.", "/d/..", "/d/."):
        with fails(errno.EINVAL):
            files.remove(path, whole=True)
        with fails(errno.EINVAL):
            files.rename(path, "/e")
    assert (root / "d").is_dir()


def test_a_request_cut_short_is_refused_and_the_next_one_served(files: Any) -> None:
    whole = {
        32: struct.pack("<I2sQI", 2, b"/f", 0, 10),
        33: struct.pack("<IIIII2s", 3, 0o644, 0, 0, 2, b"/f"),
        34: struct.pack("<II2s", 1, 2, b"/f"),
        38: struct.pack("<I2sI2s", 2, b"/f", 2, b"/g"),
        39: struct.pack("<I2sI2s", 2, b"/f", 2, b"/g"),
        41: struct.pack("<III2s", 0, 0, 2, b"/f"),
    }
    for op, body in whole.items():
        for length in range(len(body)):
            with fails(errno.EPROTO):
                files.receive(files.send(op, body[:length]))
    with fails(errno.EPROTO):
        files.receive(files.send(34, struct.pack("<II4s", 1, 4, b"/f\0g")))
    with fails(errno.EPROTO):
        files.receive(files.send(34, whole[34] + b"more"))
    files.write("/f", b"")


def test_paths_that_cannot_be(files: Any) -> None:
    for path, error in (
        ("/" + "x" * 5000, errno.ENAMETOOLONG),
        ("/" + "x" * 256, errno.ENAMETOOLONG),
        ("", errno.ENOENT),
    ):
        with fails(error):
            files.stat(path)
        with fails(error):
            files.write(path, b"")


def test_a_message_names_the_path_and_what_is_wrong_with_it(files: Any, root: Path) -> None:
    os.mkfifo(root / "pipe")
    with pytest.raises(OSError, match="/pipe: not a regular file: pipes"):
        files.read("/pipe")


def test_an_old_kernel_serves_as_well(files_on_an_old_kernel: Any, tmp_path: Path) -> None:
    files, top = files_on_an_old_kernel, str(tmp_path)
    files.write(f"{top}/a/f", b"x", files.PARENTS)
    files.chmod(f"{top}/a/f", 0o4750)
    assert files.stat(f"{top}/a/f").mode == stat.S_IFREG | 0o4750
    assert files.read(f"{top}/a/f") == b"x"
    assert files.digest(top)[0] == 3
    os.mkfifo(tmp_path / "a/pipe")
    with fails(errno.ENXIO):
        files.read(f"{top}/a/pipe")
    with fails(errno.EACCES):
        files.read("/proc/self/environ")
    files.remove(f"{top}/a", whole=True)
    assert list(tmp_path.iterdir()) == []
