"""A jail as the place where layers are filled: what commands write there is the layer, and nothing else is."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from excise.errors import LayerError
from excise.jail.control import Bind
from excise.jail.runner import JailRunner
from excise.jail.spawner import Spawner
from excise.layers.recipes.base import host_base
from excise.layers.recipes.deps import python_layer
from excise.layers.runner import Command, Work
from excise.layers.store import Store
from excise.types import Egress

from .conftest import refuse


@pytest.fixture
def spawner(able, leases):
    """How it mounts is no matter here."""
    started = Spawner.start(leases=leases)
    yield started
    started.close()


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path / "store")


@pytest.fixture
def base(store):
    return host_base(store)


@pytest.fixture
def runner(spawner, base):
    """A jail on the host's own programs, without a network."""
    binds = tuple(Bind(str(source), target) for source, target in base.binds)
    return JailRunner(spawner, binds, egress=Egress.NONE)


@pytest.fixture
def filled(runner, base, tmp_path):
    """The tree that a script leaves."""

    def filled(script, inputs=None):
        tree = tmp_path / "tree"
        tree.mkdir()
        work = Work((Command(("sh", "-c", script), "running the script"),), inputs or {})
        runner.run(work, below=base.lowers, tree=tree)
        return tree

    return filled


def files(tree):
    found = (path for path in tree.rglob("*") if not path.is_dir() or path.is_symlink())
    return {str(path.relative_to(tree)) for path in found}


def test_what_is_written_is_the_layer_with_its_owners_and_modes(filled) -> None:
    tree = filled("cp /in/put /work/kept; chown 33:44 /work/kept; chmod 4711 /work/kept; ln -s x /work/l",
                  {"/in/put": b"data"})  # fmt: skip
    assert files(tree) == {"in/put", "work/kept", "work/l"}
    kept = (tree / "work/kept").stat()
    assert (kept.st_uid, kept.st_gid, kept.st_mode & 0o7777) == (33, 44, 0o4711)
    assert (tree / "in").stat().st_uid == 0


def test_what_passes_is_not_kept(filled) -> None:
    tree = filled(
        "for d in /tmp /run /var/tmp; do echo x > $d/left; mkdir -p $d/a/b; done; echo y > /work/kept"
    )
    assert files(tree) == {"work/kept"}


def test_what_was_below_and_is_deleted_stays_deleted(filled) -> None:
    tree = filled("rm /etc/shells")
    assert (tree / "etc/shells").is_char_device()


def test_a_command_that_fails_is_told_and_leaves_nothing(filled, tmp_path) -> None:
    with pytest.raises(LayerError, match="running the script was not possible: error: so it is"):
        filled("echo half > /work/half; echo error: so it is >&2; exit 3")
    assert files(tmp_path / "tree") == set()


def test_the_host_is_out_of_reach(filled) -> None:
    tree = filled(
        "(cat /etc/shadow; ls /root/.ssh; touch /usr/bin/new) 2> /work/said; id -u >> /work/said; true"
    )
    said = (tree / "work/said").read_text().splitlines()
    assert len(said) == 4
    assert said[-1] == "0"


@pytest.mark.timeout(180)
def test_an_environment_of_packages_is_made_at_its_own_place(store, base, runner) -> None:
    layer = python_layer(store, [], "/opt/environment", parents=base.layers, runner=runner)
    tree = layer.path / "opt/environment"
    assert "/opt/environment" in (tree / "pyvenv.cfg").read_text()
    assert not (tree / ".making").exists()
    assert list(tree.glob("lib/python3*/site-packages/pip/__pycache__/*.pyc"))
    assert store.lineage(layer)[1:] == base.layers


def test_no_jail_is_left(runner, filled) -> None:
    alive = set(runner.spawner._alive)
    filled("sleep 1000 & echo x > /work/kept")
    assert set(runner.spawner._alive) == alive


@pytest.mark.slow
@pytest.mark.timeout(600)
def test_a_system_package_is_installed_in_a_jail_and_stands_on_what_was_there(
    spawner, store, tmp_path
) -> None:
    """As a user does it: an image, and a layer of packages upon it."""

    def excise(*words):
        program = Path(sys.executable).with_name("excise")
        env = {**os.environ, "EXCISE_STORE": str(tmp_path / "store")}
        done = subprocess.run(
            [program, *words], env=env, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    if shutil.which("mmdebstrap") is None:
        refuse("mmdebstrap makes the Debian to install in, and is not installed")
    debian = tmp_path / "debian"
    command = ["mmdebstrap", "--variant=minbase", "--quiet", "bookworm", debian]
    subprocess.run(command, check=True, capture_output=True)
    excise("image", "pull", f"dir:{debian}")
    words = ("layer", "build", "system", "hello", "--image", f"dir:{debian}", "--json")
    [built] = json.loads(excise(*words))["layers"]
    layer = next(each for each in store.layers() if each.id == built["id"])
    assert (layer.path / "usr/bin/hello").exists()
    listed = set((layer.path / "var/lib/dpkg/status").read_text().splitlines())
    assert {"Package: hello", "Package: dpkg"} <= listed
    left = {path.split("/")[0] for path in files(layer.path)}
    assert left <= {"usr", "var", "etc"}
    assert not (layer.path / "etc/resolv.conf").exists()
    on_both = JailRunner(spawner, egress=Egress.NONE)
    tree = tmp_path / "tree"
    tree.mkdir()
    greet = Command(("sh", "-c", "hello > /greeting"), "greeting")
    on_both.run(Work((greet,)), below=store.chain(layer), tree=tree)
    assert (tree / "greeting").read_text() == "Hello, world!\n"
