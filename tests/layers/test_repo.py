"""A repository at a commit: nothing that came later can be read from it, by whatever name or number."""

from __future__ import annotations

import os
import subprocess
import threading
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from excise.errors import InputError, LayerError
from excise.layers.recipes.repo import repo_layer
from excise.tasks import git

AT = "/work/repo"
SECRET = "the fix that was found later"


def commit(repo: Path, name: str, text: str, message: str = "change") -> str:
    (repo / name).parent.mkdir(parents=True, exist_ok=True)
    (repo / name).write_text(text)
    git.run("add", "--all", cwd=repo)
    git.run("commit", "--quiet", "-m", message, cwd=repo)
    return git.text("rev-parse", "HEAD", cwd=repo)


@pytest.fixture
def source(tmp_path):
    """A repository with a past, a commit to take, and a future told in every way that git has."""
    repo = tmp_path / "source"
    repo.mkdir()
    git.run("init", "--quiet", "--initial-branch=trunk", ".", cwd=repo)
    commit(repo, "old.txt", "old")
    git.run("tag", "v1", cwd=repo)
    wanted = commit(repo, "sub/now.txt", "now")
    git.run("tag", "wanted", cwd=repo)
    commit(repo, "later.txt", SECRET, SECRET)
    git.run("tag", "-a", "v2", "-m", SECRET, cwd=repo)
    git.run("notes", "add", "-m", SECRET, wanted, cwd=repo)
    git.run("checkout", "--quiet", "-b", "feature", wanted, cwd=repo)
    commit(repo, "branch.txt", SECRET)
    git.run("checkout", "--quiet", "trunk", cwd=repo)
    (repo / "later.txt").write_text(SECRET + " and stashed")
    git.run("stash", cwd=repo)
    git.run("gc", "--quiet", cwd=repo)
    unpacked = commit(repo, "loose.txt", SECRET + " loose")
    git.run("reset", "--quiet", "--hard", "HEAD~1", cwd=repo)
    return repo, wanted, unpacked


def objects(repo: Path) -> set[str]:
    listing = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)")
    return set(git.text(*listing, cwd=repo).split())


def test_the_files_are_those_of_the_commit(store, source) -> None:
    repo, wanted, _ = source
    layer = repo_layer(store, str(repo), wanted, AT)
    place = layer.path / "work/repo"
    assert sorted(p.name for p in place.iterdir()) == [".git", "old.txt", "sub"]
    assert (place / "sub/now.txt").read_text() == "now"
    assert git.text("rev-parse", "HEAD", cwd=place) == wanted
    assert git.text("status", "--porcelain", "--ignored", cwd=place) == ""
    assert git.text("branch", "--show-current", cwd=place) == "main"
    assert git.run("fsck", "--full", "--strict", cwd=place) == b""


def test_no_object_of_the_future_is_there(store, source) -> None:
    repo, wanted, unpacked = source
    place = repo_layer(store, str(repo), wanted, AT).path / "work/repo"
    past = set(git.text("rev-list", "--objects", "--no-object-names", wanted, cwd=repo).split())
    assert objects(place) == past
    future = objects(repo) - past
    assert unpacked in future
    for name in future:
        with pytest.raises(Exception, match="cat-file"):
            git.run("cat-file", "-e", name, cwd=place)


def test_no_name_reaches_anything_but_the_commit(store, source) -> None:
    repo, wanted, _ = source
    place = repo_layer(store, str(repo), wanted, AT).path / "work/repo"
    refs = git.text("for-each-ref", "--format=%(refname) %(objectname)", cwd=place)
    assert refs == f"refs/heads/main {wanted}"
    for command in (("remote",), ("tag",), ("stash", "list"), ("reflog",)):
        assert git.text(*command, cwd=place) == ""
    here = place / ".git"
    for name in (
        "packed-refs",
        "logs",
        "hooks",
        "FETCH_HEAD",
        "ORIG_HEAD",
        "objects/info/alternates",
    ):
        assert not (here / name).exists()
    assert str(repo) not in (here / "config").read_text()


def test_no_byte_of_the_future_is_anywhere_in_the_layer(store, source) -> None:
    repo, wanted, _ = source
    layer = repo_layer(store, str(repo), wanted, AT)
    found = subprocess.run(
        ["grep", "-r", "-l", SECRET, layer.path], capture_output=True, check=False
    )
    assert found.stdout == b""


def test_a_source_that_borrows_objects_lends_none(store, source, tmp_path) -> None:
    repo, wanted, _ = source
    git.run("clone", "--quiet", "--shared", "source", "borrower", cwd=tmp_path)
    layer = repo_layer(store, str(tmp_path / "borrower"), wanted, AT)
    place = layer.path / "work/repo"
    assert not (place / ".git/objects/info/alternates").exists()
    repo.rename(tmp_path / "moved")
    assert git.run("fsck", "--full", "--strict", cwd=place) == b""


def test_the_first_look_at_the_status_reads_no_file(store, source) -> None:
    repo, wanted, _ = source
    place = repo_layer(store, str(repo), wanted, AT).path / "work/repo"
    index = (place / ".git/index").stat()
    assert all(
        (place / name).stat().st_mtime < index.st_mtime for name in ("old.txt", "sub/now.txt")
    )
    assert git.run("diff-files", cwd=place) == b""


def test_the_same_commit_of_another_source_is_the_same_layer(store, source, tmp_path) -> None:
    repo, wanted, _ = source
    git.run("clone", "--quiet", "source", "copy", cwd=tmp_path)
    first = repo_layer(store, str(repo), wanted, AT)
    assert repo_layer(store, str(tmp_path / "copy"), wanted, AT) == first


def test_submodules_and_pointers_are_left_alone_and_said(store, source, tmp_path) -> None:
    repo, _, _ = source
    (repo / ".gitattributes").write_text("*.bin filter=lfs diff=lfs merge=lfs -text\n")
    pointer = "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 3\n"
    (repo / "data.bin").write_text(pointer)
    inner = git.text("rev-parse", "HEAD", cwd=repo)
    git.run("update-index", "--add", "--cacheinfo", f"160000,{inner},vendor", cwd=repo)
    head = commit_index(repo)
    layer = repo_layer(store, str(repo), head, AT)
    assert layer.facts.notes["submodules"] == ["vendor"]
    assert layer.facts.notes["pointers"] == ["data.bin"]
    assert (layer.path / "work/repo/data.bin").read_text() == pointer
    assert list((layer.path / "work/repo/vendor").iterdir()) == []


def commit_index(repo: Path) -> str:
    git.run("add", ".gitattributes", "data.bin", cwd=repo)
    git.run("commit", "--quiet", "-m", "large", cwd=repo)
    return git.text("rev-parse", "HEAD", cwd=repo)


def test_a_commit_that_is_not_there_is_bad_input(store, source) -> None:
    repo, _, _ = source
    with pytest.raises(InputError, match="has no commit"):
        repo_layer(store, str(repo), "0" * 40, AT)
    assert store.layers() == ()


@pytest.mark.parametrize("name", ["trunk", "wanted", "abc123", "HEAD", "--upload-pack=x", ""])
def test_a_name_that_may_move_is_no_commit(store, source, name) -> None:
    with pytest.raises(InputError, match="full commit id"):
        repo_layer(store, str(source[0]), name, AT)


@pytest.mark.parametrize("at", ["repo", "/", "", "/work/../etc", "../x"])
def test_a_place_outside_the_tree_is_bad_input(store, source, at) -> None:
    repo, wanted, _ = source
    with pytest.raises(InputError, match="no place in an environment"):
        repo_layer(store, str(repo), wanted, at)


def test_a_source_that_is_no_repository_says_so(store, tmp_path) -> None:
    with pytest.raises(InputError, match="no folder"):
        repo_layer(store, str(tmp_path / "nowhere"), "0" * 40, AT)
    with pytest.raises(LayerError, match="fetch failed"):
        repo_layer(store, str(tmp_path), "0" * 40, AT)
    assert list((store.root / "tmp").iterdir()) == []


def test_names_that_are_not_text_and_links_are_kept(store, source) -> None:
    repo, _, _ = source
    (repo / os.fsdecode(b"\xff\n")).write_text("odd")
    (repo / "link").symlink_to("/etc/passwd")
    head = commit(repo, "more.txt", "more")
    place = repo_layer(store, str(repo), head, AT).path / "work/repo"
    assert (place / os.fsdecode(b"\xff\n")).read_text() == "odd"
    assert (place / "link").readlink() == Path("/etc/passwd")


def test_a_server_that_names_no_single_commits_is_asked_for_all_and_the_rest_forgotten(
    store, source
) -> None:
    repo, _, _ = source
    between = commit(repo, "between.txt", "between")
    commit(repo, "after.txt", SECRET)
    git.run("update-server-info", cwd=repo)
    handler = partial(SimpleHTTPRequestHandler, directory=str(repo))
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            address = f"http://127.0.0.1:{server.server_port}/.git"
            layer = repo_layer(store, address, between, AT)
        finally:
            server.shutdown()
            thread.join()
    place = layer.path / "work/repo"
    assert {p.name for p in place.parent.iterdir()} == {"repo"}
    assert (place / "between.txt").exists()
    past = set(git.text("rev-list", "--objects", "--no-object-names", between, cwd=repo).split())
    assert objects(place) == past
