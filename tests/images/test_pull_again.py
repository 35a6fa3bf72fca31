"""A second pull, two at once, and one that is killed: what is here stays whole, and is not fetched again."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
import sys
import time

import pytest

from excise.errors import ImageError
from excise.layers.images.image import images
from excise.layers.images.pull import pull
from excise.layers.store import Store, StoreFull


def test_a_pull_from_what_was_pulled_needs_the_source_no_more(store, layout, two_layers) -> None:
    layout.add(two_layers)
    text = f"oci:{layout.folder}:latest"
    with pytest.raises(ImageError, match="pull it anew"):
        pull(store, text, cached=True)
    image = pull(store, text)
    shutil.rmtree(layout.folder)
    assert pull(store, text, cached=True) == image
    store.remove(image.top)
    with pytest.raises(ImageError, match="pull it anew"):
        pull(store, text, cached=True)
    assert images(store) == ()


def test_a_layer_that_was_removed_is_unpacked_again(store, layout, two_layers) -> None:
    layout.add(two_layers)
    image = pull(store, f"oci:{layout.folder}")
    store.remove(image.top)
    assert pull(store, f"oci:{layout.folder}").top.id == image.top.id
    assert images(store)[0][0].digest == image.digest


def test_a_full_disk_is_said_and_nothing_is_left(small_disk, layout, two_layers, tar) -> None:
    store = Store(small_disk / "store")
    layout.add([two_layers[0], tar(tar.file("large", os.urandom(6_000_000)))])
    with pytest.raises(StoreFull, match="has no room"):
        pull(store, f"oci:{layout.folder}")
    assert len(store.layers()) == 1
    assert store.du().unfinished == 0


@pytest.fixture
def small_disk(as_root, tmp_path):
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


PULL = """
import sys
from pathlib import Path
from excise.layers.images.pull import pull
from excise.layers.store import Store
print(pull(Store(Path(sys.argv[1])), sys.argv[2]).top.id)
"""


def test_two_that_pull_the_same_image_both_get_it(store, layout, two_layers) -> None:
    layout.add(two_layers)
    command = [sys.executable, "-c", PULL, str(store.root), f"oci:{layout.folder}"]
    pulls = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    tops = {process.communicate()[0] for process in pulls}
    assert [process.returncode for process in pulls] == [0, 0, 0]
    assert len(tops) == 1
    assert len(store.layers()) == 2


@pytest.mark.parametrize("after_s", [0.1, 0.3, 0.5])
def test_a_killed_pull_leaves_nothing_half_made(store, layout, tar, after_s) -> None:
    many = tar(*(tar.file(f"f{n}", b"x" * 100) for n in range(8_000)))
    layout.add([tar(tar.file("first")), many])
    text = f"oci:{layout.folder}"
    process = subprocess.Popen(
        [sys.executable, "-c", PULL, str(store.root), text], stdout=subprocess.PIPE
    )
    time.sleep(after_s)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    store.sweep()
    assert store.du().unfinished == 0
    assert all(store.verify(layer) for layer in store.layers())
    assert len(list(pull(store, text).top.path.iterdir())) == 8_000
