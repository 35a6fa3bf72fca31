"""The host as a base: its programs run, its interpreter too, and nothing of it that is private can be seen."""

from __future__ import annotations

import os
import subprocess
import sys
import venv
from pathlib import Path

import pytest

from excise.errors import InputError
from excise.layers.recipes.base import COPIED, host_base, mounted_below, private_below
from excise.layers.recipes.repo import repo_layer
from excise.tasks import git

TOP = """
bin boot dev etc home lib lib32 lib64 libx32 media mnt opt proc root run sbin srv sys tmp usr var work
"""


@pytest.fixture
def inside(store, enter):
    """Run a script in the base."""

    def inside(script, paths=(), lowers=()):
        base = host_base(store, paths)
        ended = enter((*lowers, *base.lowers), base.binds, "sh", "-c", script, env=base.env)
        assert ended.returncode == 0, ended.stderr
        return ended.stdout

    return inside


def test_the_hosts_programs_run_in_it(inside) -> None:
    script = "git --version && echo hi | sed s/i/o/ && getent passwd root && ls -d /etc/ssl/certs"
    told = inside(script).splitlines()
    assert told[0].startswith("git version")
    assert told[1] == "ho"
    assert told[2].startswith("root:x:0:0:")


def test_nothing_of_the_host_but_its_programs_is_there(inside) -> None:
    hidden = inside(
        "ls -A /root /home /var/lib /opt /srv /mnt /media /run /tmp | grep -v ':$' | grep . || true"
    )
    assert hidden == ""
    assert set(inside("ls -A /").split()) <= set(TOP.split())


def test_of_etc_there_is_only_what_is_listed(inside) -> None:
    own = {"passwd", "group", "nsswitch.conf", "hosts", "resolv.conf", "shells", "mtab", "pam.d"}
    listed = {name.split("/")[0] for name in COPIED} | own
    there = set(inside("ls -A /etc").split())
    assert {n for n in there - listed if not n.startswith(("python3", "java-"))} == set()
    assert inside("ls -A /etc/ssl").split() == ["certs", "openssl.cnf"]


def test_no_file_of_its_etc_was_unreadable_to_a_stranger_on_the_host(store) -> None:
    for lower in host_base(store).lowers:
        files = (p for p in lower.rglob("*") if p.is_file() and not p.is_symlink())
        assert all(path.stat().st_mode & 0o004 for path in files)


def test_what_only_root_could_read_below_usr_is_covered(inside) -> None:
    look = "find /usr -xdev \\( -type d ! -perm -005 -o -type f ! -perm -004 -o -type s \\) 2>&1"
    assert inside(f"{look} || true") == ""


def test_its_programs_cannot_be_changed(store, enter) -> None:
    base = host_base(store)
    ended = enter(base.lowers, base.binds, "touch", "/usr/bin/new", env=base.env)
    assert ended.returncode != 0
    assert "Read-only" in ended.stderr
    assert not Path("/usr/bin/new").exists()


@pytest.mark.timeout(120)
def test_a_virtual_environment_works_at_its_own_place_without_its_users_packages(
    inside, tmp_path
) -> None:
    place = tmp_path / "environment"
    venv.create(place, symlinks=True)
    script = f"{place}/bin/python -c 'import sys, json, ssl, sqlite3; print(sys.prefix)'"
    assert inside(script, [place]) == f"{place}\n"
    look = f"{place}/bin/python -c 'import site, os, sys; p = sys.base_prefix; print(p)'"
    prefix = inside(look, [place]).strip()
    packages = f"{prefix}/lib/python{sys.version_info[0]}.{sys.version_info[1]}/site-packages"
    if not prefix.startswith("/usr"):
        assert inside(f"ls -A {packages}", [place]) == ""


def test_a_path_through_links_is_found_by_both_names(inside, tmp_path) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "real/file").write_text("here")
    (tmp_path / "alias").symlink_to("real")
    script = f"cat {tmp_path}/alias/file {tmp_path}/real/file"
    assert inside(script, [tmp_path / "alias"]) == "herehere"
    assert inside(f"cat {tmp_path}/real/file", [tmp_path / "real/file"]) == "here"


def test_the_same_host_is_the_same_base_and_is_made_once(store) -> None:
    first = host_base(store)
    count = len(store.layers())
    assert host_base(store) == first
    assert len(store.layers()) == count


def test_a_repository_stands_on_it_and_is_clean_at_the_first_look(store, inside, tmp_path) -> None:
    git.run("init", "--quiet", ".", cwd=tmp_path)
    (tmp_path / "a.txt").write_text("a")
    git.run("add", "a.txt", cwd=tmp_path)
    git.run("commit", "--quiet", "-m", "first", cwd=tmp_path)
    head = git.text("rev-parse", "HEAD", cwd=tmp_path)
    layer = repo_layer(store, str(tmp_path), head, "/work/repo")
    script = "cd /work/repo && cat a.txt && git diff-files && git rev-parse HEAD"
    assert inside(script, lowers=(layer.path,)) == f"a{head}\n"


@pytest.mark.parametrize("path", ["relative", "/", "/etc", "/root", "/home", "/no/such/path"])
def test_what_is_private_as_a_whole_is_not_taken(store, path) -> None:
    with pytest.raises(InputError):
        host_base(store, [Path(path)])


def test_other_file_systems_below_are_found_by_whatever_name(tmp_path) -> None:
    for name in ("a b", "a b/c", "elsewhere"):
        (tmp_path / "usr" / name).mkdir(parents=True)
    spelt = str(tmp_path / "usr/a b").replace(" ", "\\040")
    mounts = f"x {spelt}/c ext4 rw 0 0\nx {spelt} ext4 rw 0 0\nx / ext4 rw 0 0\n\nx {tmp_path}/usr/no t\n"
    assert mounted_below(mounts, [tmp_path / "usr"]) == [
        tmp_path / "usr/a b",
        tmp_path / "usr/a b/c",
    ]


def test_a_file_system_mounted_among_the_programs_is_bound_too(as_root, tmp_path) -> None:
    code = (
        "from pathlib import Path; from excise.layers.recipes.base import host_base; "
        "from excise.layers.store import Store; import sys; "
        "print(*(target for _, target in host_base(Store(Path(sys.argv[1]))).binds))"
    )
    mount = 'mount -t tmpfs tmpfs /usr/src && exec "$@"'
    command = ["sh", "-c", mount, "sh", sys.executable, "-c", code, str(tmp_path / "store")]
    ended = subprocess.run(
        ["unshare", "--mount", "--propagation", "private", *command],
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    assert ended.stdout.split()[:2] == ["/usr", "/usr/src"]


def test_a_private_folder_among_the_programs_is_found_by_its_mode(tmp_path) -> None:
    tmp_path.chmod(0o755)
    (tmp_path / "open").mkdir(mode=0o755)
    (tmp_path / "open/secret").touch(mode=0o600)
    (tmp_path / "closed").mkdir(mode=0o700)
    (tmp_path / "closed/below").touch()
    os.mkfifo(tmp_path / "pipe")
    found = private_below([tmp_path])
    assert found == [str(tmp_path / name) for name in ("closed", "open/secret", "pipe")]
