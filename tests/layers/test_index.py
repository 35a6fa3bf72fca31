"""git's index after its files got other times: git itself finds nothing changed, and reads nothing again."""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.layers.recipes import index
from excise.layers.recipes.index import NotUnderstood, entries, restat
from excise.tasks import git


@pytest.fixture(params=["sha1", "sha256"])
def repository(request, tmp_path):
    """Names of every length that changes the padding, a link, and a program."""
    git.run("init", "--quiet", f"--object-format={request.param}", ".", cwd=tmp_path)
    for length in range(1, 20):
        (tmp_path / ("n" * length)).write_text("x" * length)
    deep = tmp_path / "folder" / ("d" * 200) / ("e" * 200)
    deep.mkdir(parents=True)
    (deep / "file").touch()
    (tmp_path / "link").symlink_to("n")
    (tmp_path / "n").chmod(0o755)
    git.run("add", "--all", cwd=tmp_path)
    for path in tmp_path.rglob("*"):
        if ".git" not in path.parts and not path.is_dir():
            os.utime(path, (1e9, 1e9), follow_symlinks=False)
    return tmp_path, 20 if request.param == "sha1" else 32


def shown(place):
    """Every entry as git reads it, with its times."""
    return git.run("ls-files", "--debug", "--stage", cwd=place)


def test_it_is_what_git_would_have_written(repository) -> None:
    place, id_bytes = repository
    before = (place / ".git" / "index").read_bytes()
    git.run("update-index", "-q", "--really-refresh", cwd=place)
    wanted = shown(place)
    (place / ".git" / "index").write_bytes(before)
    assert shown(place) != wanted
    restat(place, id_bytes)
    assert shown(place) == wanted
    git.run("diff-files", "--quiet", cwd=place)
    git.run("fsck", cwd=place)


def test_whoever_reads_meanwhile_reads_a_whole_index(repository) -> None:
    place, id_bytes = repository
    file = place / ".git" / "index"
    size, sizes = file.stat().st_size, set()
    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(lambda: [restat(place, id_bytes) for _ in range(300)])
        while not writing.done():
            sizes.add(len(file.read_bytes()))
        writing.result()
    assert sizes == {size}
    assert not file.with_suffix(".lock").exists()


def test_an_index_of_another_version_is_left_alone(repository) -> None:
    place, id_bytes = repository
    git.run("update-index", "--index-version=4", cwd=place)
    before = (place / ".git" / "index").read_bytes()
    with pytest.raises(NotUnderstood):
        restat(place, id_bytes)
    assert (place / ".git" / "index").read_bytes() == before


@given(st.binary(max_size=300), st.sampled_from([20, 32]))
def test_what_is_no_index_is_not_understood(data, id_bytes) -> None:
    for text in (data, b"DIRC\0\0\0\2\0\0\0\1" + data):
        try:
            entries(text, id_bytes)
        except NotUnderstood:
            continue


def test_the_times_of_long_after_and_long_before_fit() -> None:
    assert index._split(2**32 * 10**9 + 5) == (0, 5)
    assert index._split(-1) == (2**32 - 1, 999_999_999)
