"""Files through the real agent, and whole directories both ways."""

import os
import socket
import stat

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from excise.agent.errors import AgentRefused
from excise.agent.messages import PIECE_BYTES
from excise.errors import InputError
from excise.types import MIB

SIZES = (0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 4 * MIB, 9 * MIB + 5)


def names_in(folder):
    return sorted(path.name for path in folder.iterdir())


def content(size):
    return (bytes(range(251)) * (size // 251 + 1))[:size]


@pytest.mark.parametrize("size", SIZES)
def test_what_is_written_is_what_is_read(box, tmp_path, size):
    path = tmp_path / "file"
    box.write(str(path), content(size), mode=0o640)
    assert path.read_bytes() == content(size)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert box.read(str(path)) == content(size)
    assert names_in(tmp_path) == ["file"]


def test_part_of_a_file_can_be_read(box, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(content(5 * MIB))
    assert box.read(str(path), offset=MIB, most=10) == content(5 * MIB)[MIB : MIB + 10]
    assert box.read(str(path), offset=MIB) == content(5 * MIB)[MIB:]
    assert box.read(str(path), offset=6 * MIB) == b""
    assert box.read(str(path), most=0) == b""


def test_files_that_do_not_know_their_size_are_read_to_their_end(box):
    assert box.read(f"/proc/{os.getpid()}/status").startswith(b"Name:")
    with pytest.raises(AgentRefused, match="EACCES"):  # its own are not for the sandbox to see
        box.read("/proc/self/status")


def test_a_file_that_is_there_keeps_its_mode_and_its_old_content_until_the_end(box, tmp_path):
    path = tmp_path / "file"
    path.write_text("old")
    path.chmod(0o751)
    with path.open("rb") as held:
        box.write(str(path), b"new", mode=0o600)
        assert held.read() == b"old"
    assert (path.read_bytes(), stat.S_IMODE(path.stat().st_mode)) == (b"new", 0o751)


def test_written_in_place_a_file_stays_the_same_file(box, tmp_path):
    path, other = tmp_path / "file", tmp_path / "other"
    path.write_text("much longer than before")
    os.link(path, other)
    box.write(str(path), b"new", in_place=True)
    assert other.read_bytes() == b"new"


def test_parents_are_made_when_asked_for_and_only_then(box, tmp_path):
    path = tmp_path / "a" / "b" / "file"
    with pytest.raises(AgentRefused, match="ENOENT"):
        box.write(str(path), b"x")
    box.write(str(path), b"x", parents=True)
    assert path.read_bytes() == b"x"


def test_a_refused_file_of_many_pieces_is_refused_once_and_leaves_nothing(box, tmp_path):
    with pytest.raises(AgentRefused, match="EISDIR"):
        box.write(str(tmp_path), content(5 * MIB))
    box.write(str(tmp_path / "file"), content(3 * MIB))
    assert names_in(tmp_path) == ["file"]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives files away")
def test_owners_are_given_and_changed(box, tmp_path):
    path = tmp_path / "file"
    box.write(str(path), b"x", uid=1234, gid=5678)
    assert (path.stat().st_uid, path.stat().st_gid) == (1234, 5678)
    box.chown(str(path), 4321, 8765)
    found = box.stat(str(path))
    assert (found.uid, found.gid) == (4321, 8765)


def test_directories_are_made_listed_renamed_and_removed(box, tmp_path):
    top = str(tmp_path / "top")
    with pytest.raises(AgentRefused, match="ENOENT"):
        box.mkdir(f"{top}/deep")
    box.mkdir(f"{top}/deep", 0o750, parents=True)
    box.mkdir(f"{top}/deep", 0o750, parents=True)
    box.write(f"{top}/b", b"12345")
    box.symlink("no/where", f"{top}/a")
    box.rename(f"{top}/b", f"{top}/c")
    entries = box.directory(top)
    assert [e.name for e in entries] == ["a", "c", "deep"]
    assert (entries[0].target, stat.S_ISLNK(entries[0].mode)) == ("no/where", True)
    assert (entries[1].size, entries[1].links) == (5, 1)
    assert stat.S_IMODE(entries[2].mode) == 0o750
    with pytest.raises(AgentRefused, match="ENOTEMPTY"):
        box.remove(top)
    box.remove(top, tree=True)
    assert names_in(tmp_path) == []


def test_stat_follows_links_or_not(box, tmp_path):
    (tmp_path / "file").write_bytes(b"123")
    (tmp_path / "link").symlink_to("file")
    followed = box.stat(str(tmp_path / "link"))
    assert (followed.size, stat.S_ISREG(followed.mode)) == (3, True)
    itself = box.stat(str(tmp_path / "link"), follow=False)
    assert (itself.target, stat.S_ISLNK(itself.mode), itself.name) == ("file", True, "link")
    assert itself.mtime_ns == (tmp_path / "link").lstat().st_mtime_ns


def test_modes_are_changed(box, tmp_path):
    (tmp_path / "file").touch()
    box.chmod(str(tmp_path / "file"), 0o4711)
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o4711


def test_what_would_block_or_is_no_file_is_refused(box, tmp_path):
    os.mkfifo(tmp_path / "fifo")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "socket"))
        for name in ("fifo", "socket"):
            with pytest.raises(AgentRefused, match="not a regular file"):
                box.read(str(tmp_path / name))
            with pytest.raises(AgentRefused):
                box.write(str(tmp_path / name), b"x")
    with pytest.raises(AgentRefused, match="not a regular file"):
        box.read("/dev/zero")
    with pytest.raises(AgentRefused, match=r"EISDIR|not a regular file"):
        box.read(str(tmp_path))


@pytest.mark.parametrize(
    "path", ["/proc/self/fd/3", "/proc/self/root/etc/passwd", "/proc/self/exe"]
)
def test_the_kernels_own_links_lead_nowhere(box, path):
    with pytest.raises(AgentRefused, match="ELOOP"):
        box.read(path)


def test_removing_a_tree_removes_links_and_not_what_they_lead_to(box, tmp_path):
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "kept").touch()
    tree = tmp_path / "tree"
    tree.mkdir()
    (tree / "link").symlink_to(outside, target_is_directory=True)
    (tmp_path / "also").symlink_to(outside, target_is_directory=True)
    box.remove(str(tree), tree=True)
    box.remove(str(tmp_path / "also"), tree=True)
    assert names_in(tmp_path) == ["outside"]
    assert (outside / "kept").exists()


def test_a_digest_is_of_names_modes_and_content_and_not_of_times(box, tmp_path):
    (tmp_path / "a").write_text("1")
    (tmp_path / "b").symlink_to("a")
    first = box.digest(str(tmp_path))
    assert (len(first.sha256), first.entries) == (32, 3)
    os.utime(tmp_path / "a", (1, 1))
    assert box.digest(str(tmp_path)) == first
    (tmp_path / "a").chmod(0o600)
    second = box.digest(str(tmp_path))
    (tmp_path / "a").write_text("2")
    third = box.digest(str(tmp_path))
    assert len({first, second, third}) == 3


def listing(top):
    """Everything below, with what an upload keeps."""
    found = {}
    for path in sorted(top.rglob("*")):
        name = str(path.relative_to(top))
        mode = path.lstat().st_mode
        if path.is_symlink():
            found[name] = os.readlink(path)  # noqa: PTH115 - a Path would rewrite it
        elif path.is_dir():
            found[name] = stat.S_IMODE(mode)
        else:
            found[name] = (stat.S_IMODE(mode), path.read_bytes())
    return found


def make_tree(top):
    (top / "empty").mkdir(parents=True)
    (top / "closed").mkdir()
    (top / "closed" / "tool").write_bytes(b"#!/bin/sh\n")
    (top / "closed" / "tool").chmod(0o755)
    (top / "closed").chmod(0o700)
    (top / "large").write_bytes(content(3 * MIB + 7))
    (top / "exact").write_bytes(content(PIECE_BYTES))
    (top / "none").touch(0o600)
    (top / "name with\nodd \udcff bytes").write_bytes(b"x")
    (top / "link").symlink_to("./closed//tool")
    (top / "dangling").symlink_to("/no/where")
    for n in range(300):
        (top / "many" / str(n % 7)).mkdir(parents=True, exist_ok=True)
        (top / "many" / str(n % 7) / f"{n}").write_text(str(n))


def test_a_directory_goes_up_and_comes_down_as_it_was(box, tmp_path):
    source, inside, back = tmp_path / "source", tmp_path / "inside", tmp_path / "back"
    make_tree(source)
    os.mkfifo(source / "fifo")
    up = box.upload(source, str(inside))
    assert up.left_out == [str(source / "fifo")]
    (source / "fifo").unlink()
    assert listing(inside) == listing(source)
    down = box.download(str(inside), back)
    assert listing(back) == listing(source)
    assert (up.files, up.directories, up.links) == (305, 11, 2)
    assert (down.files, down.directories, down.links) == (305, 11, 2)
    assert up.size_bytes == down.size_bytes > 4 * MIB


def test_an_upload_replaces_what_is_there_and_leaves_the_rest(box, tmp_path):
    source, inside = tmp_path / "source", tmp_path / "inside"
    make_tree(source)
    box.upload(source, str(inside))
    (inside / "other").touch()
    (source / "large").write_text("small now")
    (source / "large").chmod(0o444)
    (source / "link").unlink()
    (source / "link").symlink_to("elsewhere")
    box.upload(source, str(inside))
    assert listing(inside) == {**listing(source), "other": (0o644, b"")}


def test_set_id_bits_do_not_come_down(box, tmp_path):
    (tmp_path / "inside").mkdir()
    (tmp_path / "inside" / "tool").touch()
    (tmp_path / "inside" / "tool").chmod(0o6755)
    box.download(str(tmp_path / "inside"), tmp_path / "back")
    assert stat.S_IMODE((tmp_path / "back" / "tool").stat().st_mode) == 0o755


def test_directories_that_cannot_be_moved_are_bad_input(box, tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match="not a directory"):
        box.upload(tmp_path / "file", "/x")
    with pytest.raises(InputError, match="not an empty directory"):
        box.download("/etc", tmp_path)
    with pytest.raises(InputError, match="not an empty directory"):
        box.download("/etc", tmp_path / "file")
    with pytest.raises(AgentRefused, match="ENOENT"):
        box.download("/no/such/directory", tmp_path / "back")


@settings(
    max_examples=25, suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None
)
@given(data=st.binary(max_size=200), name=st.binary(min_size=1, max_size=60))
def test_any_name_and_any_bytes_survive(box, tmp_path, data, name):
    name = name.replace(b"\0", b"").replace(b"/", b"")
    if name in {b"", b".", b".."}:
        return
    path = str(tmp_path / os.fsdecode(name))
    box.write(path, data)
    assert box.read(path) == data
    assert os.fsdecode(name) in [entry.name for entry in box.directory(str(tmp_path))]
    box.remove(path)
