"""A snapshot holds what a sandbox changed, deletions and renames included, and is never evicted."""

from __future__ import annotations

import os
import socket
import subprocess
from pathlib import Path

import pytest

from excise.errors import InputError, LayerError
from excise.layers.recipes.snapshot import snapshot_layer

WRITE = """
set -e
mount -t overlay -o "lowerdir=$1,upperdir=$2,workdir=$3,redirect_dir=on" overlay "$4"
cd "$4"
eval "$5"
cd /
{ cd "$4"; find . | sort; find . -type f -exec sha256sum {} + | sort; }
"""

CHANGE = """
rm gone; rm -r folder; mkdir folder; echo new > folder/fresh
mv moved elsewhere; echo more >> kept; ln kept twin; ln -s /etc/passwd link
mkfifo pipe; chown 1000:100 program; chmod 4755 program; mkdir -p a/b; chmod 700 a
"""

FILES = {
    "gone": "x", "folder/old": "y", "moved/deep/z": "z", "kept": "k", "program": "p", "same": "s"
}  # fmt: skip


@pytest.fixture
def write(as_root, tmp_path):
    """Run a script on top of lowers; what it wrote is in the folder that is returned, and how it looked."""

    def write(lowers, script):
        place = tmp_path / f"box{len(list(tmp_path.iterdir()))}"
        parts = [place / name for name in ("upper", "work", "root")]
        for part in parts:
            part.mkdir(parents=True)
        lower = ":".join(map(str, lowers))
        ended = subprocess.run(
            ["unshare", "--mount", "--propagation", "private", "sh", "-c", WRITE, "sh", lower, *parts, script],
            capture_output=True, text=True, check=False,
        )  # fmt: skip
        assert ended.returncode == 0, ended.stderr
        return parts[0], ended.stdout

    return write


def test_a_snapshot_on_its_layers_looks_as_the_sandbox_did(store, built, write) -> None:
    base = built("base", files=FILES)
    upper, seen = write(store.chain(base), CHANGE)
    layer = snapshot_layer(store, upper, [base])
    _, again = write(store.chain(layer), "true")
    assert again == seen
    assert "./elsewhere/deep/z" in seen
    assert "gone" not in seen
    assert "folder/old" not in seen
    assert store.verify(layer)


def test_modes_owners_links_and_times_are_kept(store, built, write) -> None:
    base = built("base", files=FILES)
    upper, _ = write(store.chain(base), CHANGE + "touch -d @1000000000 same")
    tree = snapshot_layer(store, upper, [base]).path
    program = (tree / "program").stat()
    assert (program.st_mode & 0o7777, program.st_uid, program.st_gid) == (0o4755, 1000, 100)
    assert (tree / "kept").samefile(tree / "twin")
    assert (tree / "link").readlink() == Path("/etc/passwd")
    assert (tree / "a").stat().st_mode & 0o777 == 0o700
    assert (tree / "same").stat().st_mtime == 1_000_000_000
    assert (tree / "pipe").is_fifo()


def test_owners_are_shifted_back_to_what_the_sandbox_saw(as_root, store, built, tmp_path) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    (upper / "file").touch()
    (upper / "link").symlink_to("nowhere")
    for path, owner in ((upper, 0), (upper / "file", 1000), (upper / "link", 33)):
        os.chown(path, 500_000 + owner, 500_000, follow_symlinks=False)
    tree = snapshot_layer(store, upper, [], first_id=500_000).path
    owners = [(tree / name).lstat().st_uid for name in (".", "file", "link")]
    assert owners == [0, 1000, 33]


def test_a_deletion_which_the_kernel_owns_is_kept(as_root, store, tmp_path) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    os.chown(upper, 500_000, 500_000)
    os.mknod(upper / "gone", 0o020000, os.makedev(0, 0))
    gone = (snapshot_layer(store, upper, [], first_id=500_000).path / "gone").lstat()
    assert (gone.st_mode & 0o170000, gone.st_rdev, gone.st_uid) == (0o020000, 0, 0)


def test_an_owner_from_outside_is_refused(as_root, store, tmp_path) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    (upper / "of the host").touch()
    os.chown(upper, 500_000, 500_000)
    with pytest.raises(LayerError, match="whom no sandbox knows"):
        snapshot_layer(store, upper, [], first_id=500_000)
    assert store.layers() == ()


def test_what_an_overlay_noted_about_itself_is_dropped_and_what_it_means_is_kept(
    as_root, store, tmp_path
) -> None:
    upper = tmp_path / "upper"
    (upper / "d").mkdir(parents=True)
    for name in ("opaque", "origin", "impure", "redirect"):
        os.setxattr(upper / "d", f"trusted.overlay.{name}", b"y")
    os.setxattr(upper / "d", "user.mine", b"1")
    tree = snapshot_layer(store, upper, []).path
    kept = {"trusted.overlay.opaque", "trusted.overlay.redirect", "user.mine"}
    assert set(os.listxattr(tree / "d")) == kept


def test_a_socket_is_left_out_and_counted(store, tmp_path, monkeypatch) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    monkeypatch.chdir(upper)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("socket")
        layer = snapshot_layer(store, upper, [])
    assert layer.facts.notes == {"sockets_left_out": 1}
    assert list(layer.path.iterdir()) == []


def test_a_snapshot_is_kept_whatever_the_budget_until_it_is_removed(store, built, tmp_path) -> None:
    base = built("base")
    (tmp_path / "upper").mkdir()
    (tmp_path / "upper/work").write_text("hours of it")
    layer = snapshot_layer(store, tmp_path / "upper", [base])
    assert store.gc(0) == ()
    store.remove(layer)
    assert store.gc(0) == (base.id,)


def test_names_that_are_not_text_are_kept(store, tmp_path) -> None:
    upper = tmp_path / "upper"
    upper.mkdir()
    (upper / os.fsdecode(b"\xff\n")).write_text("odd")
    layer = snapshot_layer(store, upper, [])
    assert (layer.path / os.fsdecode(b"\xff\n")).read_text() == "odd"


def test_what_is_no_folder_is_bad_input(store, tmp_path) -> None:
    with pytest.raises(InputError, match="no folder"):
        snapshot_layer(store, tmp_path / "nothing", [])
