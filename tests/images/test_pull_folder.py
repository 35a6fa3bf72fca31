"""A folder as an image: copied as it is, once for each state it is in."""

from __future__ import annotations

import os
import subprocess

import pytest

from excise.errors import InputError
from excise.layers.images.pull import pull


def test_a_folder_is_copied_once_for_each_state_it_is_in(store, tmp_path, merged, tree_of) -> None:
    folder = tmp_path / "root"
    (folder / "etc").mkdir(parents=True)
    (folder / "etc/.wh.name").write_bytes(b"a file like others")
    (folder / "etc/hard").hardlink_to(folder / "etc/.wh.name")
    (folder / "link").symlink_to("/etc")
    os.chown(folder / "etc", 12, 34)
    before = tree_of(folder)
    image = pull(store, f"dir:{folder}")
    assert merged(image) == before
    assert pull(store, f"dir:{folder}").top == image.top
    (folder / "etc/hard").write_bytes(b"a file like OTHERS")
    os.utime(folder / "etc/hard", ns=(0, 0))
    os.utime(folder / "etc/hard", ns=(before["etc/hard"][5],) * 2)
    changed = pull(store, f"dir:{folder}")
    assert changed.top != image.top
    assert merged(changed)["etc/hard"][4] == b"a file like OTHERS"
    assert merged(image) == before


def test_a_folder_keeps_its_holes_and_what_is_mounted_in_it_stays_out(store, tmp_path) -> None:
    folder = tmp_path / "root"
    (folder / "proc").mkdir(parents=True)
    with (folder / "holes").open("wb") as file:
        file.seek(10_000_000)
        file.write(b"end")
    subprocess.run(["mount", "-t", "proc", "proc", folder / "proc"], check=True)
    try:
        tree = pull(store, f"dir:{folder}").top.path
    finally:
        subprocess.run(["umount", "--lazy", folder / "proc"], check=True)
    assert list((tree / "proc").iterdir()) == []
    assert (tree / "holes").stat().st_blocks * 512 < 1_000_000
    assert (tree / "holes").read_bytes() == bytes(10_000_000) + b"end"


def test_folders_that_cannot_be_images_are_bad_input(store, tmp_path) -> None:
    for folder, why in [
        (tmp_path / "none", "not a folder"),
        ("/", "write host"),
        (tmp_path, "within each other"),
        (store.root / "layers", "within each other"),
    ]:
        with pytest.raises(InputError, match=why):
            pull(store, f"dir:{folder}")
