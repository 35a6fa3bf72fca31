"""A store of its own for each test, and what a test needs of the machine said in one place."""

from __future__ import annotations

import os
import shutil
import subprocess

import pytest

from excise.layers.key import key_of
from excise.layers.store import Store


def need(name: str, there: bool, why: str) -> None:
    """Skip where it is not there, unless EXCISE_REQUIRE says that it must be."""
    if there:
        return
    if name in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(f"{name} is required: {why}", pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="session")
def as_root() -> None:
    need("root", os.geteuid() == 0, "only root mounts file systems and makes devices")


@pytest.fixture
def tool():
    """Ask for a program of the host."""
    return lambda name: need(name, shutil.which(name) is not None, f"{name} is not installed")


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def small_disk(as_root, tmp_path):
    """A file system of 2 MiB."""
    place = tmp_path / "disk"
    place.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=2m", "tmpfs", place], check=True)
    yield place
    subprocess.run(["umount", "--lazy", place], check=True)


ENTER = """
set -e
mount -t tmpfs tmpfs "$1"
mkdir "$1/upper" "$1/work" "$1/root"
mount -t overlay -o "lowerdir=$2,upperdir=$1/upper,workdir=$1/work" overlay "$1/root"
mount -t proc proc "$1/root/proc"
mount -t tmpfs tmpfs "$1/root/dev"
mknod -m 666 "$1/root/dev/null" c 1 3
scratch=$1; shift 2
while [ "$1" != -- ]; do mount --bind -o ro "$1" "$scratch/root$2"; shift 2; done
shift
exec chroot "$scratch/root" "$@"
"""


@pytest.fixture
def enter(as_root, tmp_path):
    """Run a command in an environment: lowers as one overlay, then binds, in name spaces that go with it."""
    scratch = tmp_path / "scratch"
    scratch.mkdir()

    def enter(lowers, binds, *command, env=None):
        names = ("--mount", "--pid", "--fork", "--kill-child", "--propagation", "private")
        pairs = [str(part) for bind in binds for part in bind]
        lower = ":".join(map(str, lowers))
        return subprocess.run(
            ["unshare", *names, "sh", "-c", ENTER, "sh", scratch, lower, *pairs, "--", *command],
            env={"PATH": os.environ["PATH"], **(env or {})},
            capture_output=True,
            text=True,
            check=False,
        )

    return enter


@pytest.fixture
def built(store):
    """Build a layer of a few files in `store`, or in another."""

    def built(name="a", parents=(), files=None, into=store):
        recipe = {"kind": "test", "name": name}

        def make(tree):
            for path, text in (files or {name: name}).items():
                (tree / path).parent.mkdir(parents=True, exist_ok=True)
                (tree / path).write_text(text)

        return into.build(key_of(recipe, [p.id for p in parents]), recipe, make, parents)

    return built
