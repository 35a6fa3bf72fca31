"""What is unpacked, mounted as an overlay, is the tree that the archives say."""

from __future__ import annotations

import io
import os
import stat
import subprocess
import tarfile
import tempfile
from pathlib import Path

import pytest

from excise.errors import ImageError
from excise.layers.images.below import Below
from excise.layers.images.tarstream import read_entries
from excise.layers.images.unpack import unpack

S = 1_600_000_000
SOMEBODY = 12_345


def test_the_second_layer_hides_replaces_and_adds(
    tar, layers, mounted, tree_of, two_layers
) -> None:
    trees, facts = layers(*two_layers)
    seen = tree_of(mounted(trees))
    assert set(seen) == {
        "etc", "etc/keep", "etc/added", "var", "var/cache", "var/cache/new",
        "bin", "bin/tool", "bin/same", "tmp",
    }  # fmt: skip
    assert seen["etc/added"][2:5] == (1000, 1000, b"added")
    assert seen["bin/tool"][1] == 0o4755
    assert facts["whiteouts"] == 2


def test_hard_links_share_an_inode_and_times_are_kept(tar, layers, two_layers) -> None:
    (tree,), _ = layers(two_layers[0])
    tool, same = (tree / "bin/tool").stat(), (tree / "bin/same").stat()
    assert (tool.st_ino, tool.st_nlink) == (same.st_ino, 2)
    assert {int((tree / at).lstat().st_mtime) for at in ("etc", "bin", "tmp", "bin/tool")} == {S}


def test_nanoseconds_are_kept(tar, layers) -> None:
    early = tar.file("f", pax_headers={"mtime": "1600000000.123456789"})
    (tree,), _ = layers(tar(early, tar.file("b", pax_headers={"mtime": "-1.5"})))
    assert (tree / "f").stat().st_mtime_ns == S * 10**9 + 123456789
    assert (tree / "b").stat().st_mtime_ns == -1_500_000_000


def test_a_whiteout_that_hides_nothing_leaves_no_broken_file(tar, layers, mounted, tree_of) -> None:
    trees, facts = layers(tar(tar.folder("d")), tar(tar.folder("d"), tar.file("d/.wh.none")))
    assert set(tree_of(trees[0])) == {"d"}
    assert facts["whiteouts"] == 0


@pytest.mark.parametrize("hidden_first", [True, False])
def test_a_folder_that_is_removed_and_made_again_is_empty(
    tar, layers, mounted, tree_of, hidden_first
) -> None:
    again = [tar.file(".wh.d"), tar.folder("d"), tar.file("d/new")]
    order = again if hidden_first else [*again[1:], again[0]]
    trees, _ = layers(tar(tar.folder("d"), tar.file("d/old")), tar(*order))
    assert set(tree_of(mounted(trees))) == {"d", "d/new"}


def test_a_layers_own_files_are_not_hidden_by_its_own_opaque_mark(
    tar, layers, mounted, tree_of
) -> None:
    opaque = tar(tar.folder("d"), tar.file("d/new"), tar.file("d/.wh..wh..opq"))
    trees, _ = layers(tar(tar.folder("d"), tar.file("d/old")), opaque)
    assert set(tree_of(mounted(trees))) == {"d", "d/new"}


def test_a_root_that_hides_all_below_it_hides_it(tar, layers, mounted, tree_of) -> None:
    below = tar(tar.folder("d"), tar.file("d/old"), tar.file("f"))
    trees, _ = layers(below, tar(tar.file(".wh..wh..opq"), tar.folder("d"), tar.file("d/new")))
    assert set(tree_of(mounted(trees))) == {"d", "d/new"}


def test_a_third_layer_brings_back_what_the_second_hid(tar, layers, mounted, tree_of) -> None:
    first = tar(tar.folder("d"), tar.file("d/f", b"1"))
    trees, _ = layers(first, tar(tar.file(".wh.d")), tar(tar.folder("d"), tar.file("d/g", b"3")))
    assert set(tree_of(mounted(trees))) == {"d", "d/g"}


def test_a_folder_only_implied_looks_as_it_does_below(tar, layers, mounted, tree_of) -> None:
    sticky = tar.folder("tmp", mode=0o1777, uid=7, gid=8)
    trees, _ = layers(tar(tar.folder("./", mode=0o711), sticky), tar(tar.file("tmp/x")))
    seen = tree_of(mounted(trees))
    assert seen["tmp"][1:4] == (0o1777, 7, 8)
    assert stat.S_IMODE(trees[0].stat().st_mode) == 0o711


def test_a_path_through_a_link_of_a_lower_layer_follows_it(tar, layers, mounted, tree_of) -> None:
    below = tar(tar.folder("usr"), tar.folder("usr/lib"), tar.link("lib", "usr/lib"))
    trees, _ = layers(below, tar(tar.file("lib/x", b"x"), tar.file("lib/.wh.y")))
    seen = tree_of(mounted(trees))
    assert seen["lib"][0] == stat.S_IFLNK
    assert seen["usr/lib/x"][4] == b"x"


def test_an_absolute_link_starts_at_the_images_root_and_another_where_it_stands(
    tar, layers, tree_of
) -> None:
    links = [tar.folder("d"), tar.link("d/abs", "/e"), tar.link("d/rel", "e")]
    (tree,), _ = layers(tar(*links, tar.file("d/abs/f"), tar.file("d/rel/g")))
    assert set(tree_of(tree)) == {"d", "d/abs", "d/rel", "e", "e/f", "d/e", "d/e/g"}


def test_what_is_hidden_already_is_not_hidden_again(tar, layers) -> None:
    hide = tar(tar.folder("d"), tar.file("d/.wh.f"))
    _, facts = layers(tar(tar.folder("d"), tar.file("d/f")), hide, hide)
    assert facts["whiteouts"] == 0


def test_files_become_folders_and_folders_files(tar, layers, mounted, tree_of) -> None:
    first = tar(tar.file("a", b"file"), tar.folder("b"), tar.file("b/in"), tar.link("c", "a"))
    second = tar(tar.folder("a"), tar.file("a/in"), tar.file("b", b"file"), tar.folder("c"))
    trees, _ = layers(first, second)
    seen = tree_of(mounted(trees))
    assert {name: seen[name][0] for name in ("a", "b", "c")} == {
        "a": stat.S_IFDIR, "b": stat.S_IFREG, "c": stat.S_IFDIR,
    }  # fmt: skip
    assert set(seen) == {"a", "a/in", "b", "c"}


def test_the_last_of_entries_with_one_name_stands(tar, layers, tree_of) -> None:
    twice = [tar.file("f", b"1"), tar.hard("kept", "f"), tar.file("f", b"2")]
    replaced = [tar.folder("d"), tar.file("d/in"), tar.file("d", b"no folder"), tar.folder("d")]
    folder = [tar.folder("e", mode=0o700), tar.file("e/in"), tar.folder("e", mode=0o711)]
    (tree,), _ = layers(tar(*twice, *replaced, *folder))
    seen = tree_of(tree)
    assert (seen["f"][4], seen["kept"][4]) == (b"2", b"1")
    assert "d/in" not in seen
    assert seen["e"][1] == 0o711
    assert "e/in" in seen


def test_capabilities_and_attributes_of_users_are_kept_and_others_counted(tar, layers) -> None:
    capability = bytes.fromhex("0100000200040000000000000000000000000000")
    about = {
        "SCHILY.xattr.security.capability": capability.decode("latin-1"),
        "SCHILY.xattr.user.note": "told",
        "SCHILY.xattr.trusted.other": "host's business",
    }
    (tree,), facts = layers(tar(tar.file("ping", b"x", mode=0o755, uid=3, pax_headers=about)))
    assert os.getxattr(tree / "ping", "security.capability") == capability
    assert os.getxattr(tree / "ping", "user.note") == b"told"
    assert facts["xattrs_left_out"] == 1


def test_devices_are_left_out_and_counted_and_hide_what_they_replace(
    tar, layers, mounted, tree_of
) -> None:
    below = tar(tar.file("x", b"x"), tar.file("y", b"y"))
    trees, facts = layers(
        below, tar(tar.device("x", 1, 3), tar.device("y", 0, 0), tar.fifo("p", mode=0o620))
    )
    seen = tree_of(mounted(trees))
    assert set(seen) == {"p"}
    assert seen["p"][:2] == (stat.S_IFIFO, 0o620)
    assert facts["devices_left_out"] == 2


@pytest.mark.parametrize(
    "form",
    ["gnu", "pax --sparse-version=0.0", "pax --sparse-version=0.1", "pax --sparse-version=1.0"],
)
def test_a_file_with_holes_takes_no_room_for_them(layers, tmp_path, form) -> None:
    source = tmp_path / "source"
    source.mkdir()
    with (source / "holes").open("wb") as file:
        for at in range(0, 8_000_000, 200_000):  # more of them than one header holds
            file.seek(at)
            file.write(b"here")
        file.truncate(80_000_000)
    command = ["tar", "--sparse", "--create", *f"--format={form}".split(), "-C", source, "holes"]
    (tree,), _ = layers(subprocess.run(command, capture_output=True, check=True).stdout)
    assert (tree / "holes").read_bytes() == (source / "holes").read_bytes()
    assert (tree / "holes").stat().st_blocks * 512 < 1_000_000


@pytest.mark.parametrize("form", [tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_odd_names_survive(tar, layers, tree_of, form) -> None:
    names = [
        "new\nline",
        "\udcff\udcfe",
        "n" * 255,
        "sp ace",
        "-rf",
        "日本",
        "..a",
        "a" * 90 + "/" + "b" * 120,
    ]
    (tree,), _ = layers(tar(*(tar.file(name, b"x") for name in names), form=form))
    assert set(names) <= set(tree_of(tree))


def test_large_owners_are_kept_and_counted(tar, layers) -> None:
    (tree,), facts = layers(tar(tar.file("f", uid=3_000_000_000, gid=70_000)))
    status = (tree / "f").stat()
    assert (status.st_uid, status.st_gid) == (3_000_000_000, 70_000)
    assert facts["owners_beyond_65535"] == 1


def test_old_notes_of_a_storage_driver_mean_nothing(tar, layers, tree_of) -> None:
    (tree,), _ = layers(tar(tar.file(".wh..wh.aufs"), tar.folder(".wh..wh.plnk"), tar.file("f")))
    assert set(tree_of(tree)) == {"f"}


def test_a_hard_link_into_a_lower_layer_is_a_clear_error(tar, layers) -> None:
    with pytest.raises(ImageError, match="no file of the same layer"):
        layers(tar(tar.file("f")), tar(tar.hard("g", "f")))


@pytest.fixture
def somebody(as_root):
    """A folder of somebody who is not root, while this process is him."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        os.chown(folder, SOMEBODY, SOMEBODY)
        os.seteuid(SOMEBODY)
        try:
            yield Path(folder)
        finally:
            os.seteuid(0)


def test_without_root_the_files_of_root_become_ones_own_and_others_are_refused(
    tar, somebody
) -> None:
    roots = tar(tar.folder("d"), tar.file("d/f", b"x", mode=0o4755), tar.link("l", "d/f"))
    unpack(read_entries(io.BytesIO(roots)), somebody, Below([]))
    owners = {p.lstat().st_uid for p in (somebody, *somebody.rglob("*"))}
    assert owners == {SOMEBODY}
    assert (somebody / "d/f").stat().st_mode & 0o7777 == 0o4755
    others = tar(tar.file("g", uid=7))
    with pytest.raises(ImageError, match="owner 7:0, which only root can make"):
        unpack(read_entries(io.BytesIO(others)), somebody, Below([]))
