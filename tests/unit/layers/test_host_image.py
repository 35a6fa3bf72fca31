"""A root file system of the host's own programs: what is in it, what is not, and that it is always the same."""

from __future__ import annotations

import os
import tarfile
import venv
from pathlib import Path

import pytest

from excise.errors import InputError
from excise.layers.host import build_rootfs
from excise.layers.programs import libraries_in, library_name_in, search_path_of, settings_in
from excise.layers.tree import inside, trace, walk

LDD = """\
/usr/bin/git:
\tlinux-vdso.so.1 (0x00007ffc5a5f2000)
\tlibz.so.1 => /lib/x86_64-linux-gnu/libz.so.1 (0x00007f12)
\tlibgone.so.2 => not found
\t/lib64/ld-linux-x86-64.so.2 (0x00007f34)
/usr/bin/static:
\tnot a dynamic executable
"""


def test_the_libraries_ldd_found_are_taken_and_only_they() -> None:
    assert libraries_in(LDD) == {"/lib/x86_64-linux-gnu/libz.so.1", "/lib64/ld-linux-x86-64.so.2"}


@pytest.mark.parametrize("key", ["version", "version_info"])
def test_a_virtual_environment_names_its_library(key: str) -> None:
    settings = settings_in(f"home = /usr/bin\n{key} = 3.13.1\n")
    assert settings["home"] == "/usr/bin"
    assert library_name_in(settings) == "python3.13"


def test_the_loader_searches_no_private_folder() -> None:
    libraries = ["/usr/lib/x/libc.so.6", "/opt/env/lib/numpy.libs/libblas.so", "/lib64/ld.so"]
    assert search_path_of(libraries, ["/opt/env"]) == ["/lib64", "/usr/lib/x"]


def test_every_link_on_the_way_is_kept(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/program").write_text("x")
    (tmp_path / "folder").symlink_to("real")
    (tmp_path / "real/alias").symlink_to("../folder/program")
    found = [m.path for m in trace(tmp_path / "folder/alias")]
    names = [p.removeprefix(inside(tmp_path) + "/") for p in found]
    assert names == ["folder", "real/alias", "folder", "real/program"]


def test_a_loop_of_links_is_bad_input(tmp_path: Path) -> None:
    (tmp_path / "a").symlink_to("b")
    (tmp_path / "b").symlink_to("a")
    with pytest.raises(InputError, match="loop"):
        list(trace(tmp_path / "a"))


def test_a_walk_follows_no_link_out_of_the_tree(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret")
    (tmp_path / "tree").mkdir()
    (tmp_path / "tree/link").symlink_to("../secret")
    members = list(walk(tmp_path / "tree", "at"))
    assert [(m.path, m.target) for m in members[1:]] == [("at/link", "../secret")]


def test_the_same_inputs_give_the_same_archive(tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "a.py").write_text("a")
    first = build_rootfs(programs=("bash",), workspace={"repo": checkout}, out=tmp_path / "1")
    os.utime(checkout / "a.py", (1, 1))
    second = build_rootfs(programs=("bash",), workspace={"repo": checkout}, out=tmp_path / "2")
    assert first.digest == second.digest
    assert first.reference == f"excise/host:{first.digest[:12]}"
    (checkout / "b.py").write_text("b")
    third = build_rootfs(programs=("bash",), workspace={"repo": checkout}, out=tmp_path / "1")
    assert third.digest != first.digest


def test_a_built_image_is_not_built_again(tmp_path: Path) -> None:
    first = build_rootfs(programs=("bash",), out=tmp_path)
    written = first.archive.stat().st_mtime_ns
    assert build_rootfs(programs=("bash",), out=tmp_path) == first
    assert first.archive.stat().st_mtime_ns == written


def test_an_image_holds_the_interpreter_and_nothing_private(tmp_path: Path) -> None:
    environment = tmp_path / "env"
    venv.create(environment, with_pip=False, symlinks=True)
    image = build_rootfs(programs=("bash", "git"), paths=(environment,), out=tmp_path / "out")
    with tarfile.open(image.archive) as tar:
        members = {m.name: m for m in tar}
    names = set(members)
    assert inside(environment / "bin/python") in names
    assert any(n.endswith("/os.py") for n in names)
    assert not any("/test/" in n or "/idlelib/" in n for n in names)
    assert not any("site-packages" in n for n in names if not n.startswith(inside(environment)))
    assert {n for n in names if n.startswith("etc/")} <= {
        "etc/passwd",
        "etc/group",
        "etc/nsswitch.conf",
        "etc/hosts",
        "etc/ld.so.conf",
        "etc/ld.so.cache",
    }
    assert members["tmp"].mode == 0o1777
    assert {(m.uid, m.gid, m.uname) for m in members.values()} == {(0, 0, "root")}


def test_a_missing_program_is_named(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="not on this host: no-such-program"):
        build_rootfs(programs=("bash", "no-such-program"), out=tmp_path)
