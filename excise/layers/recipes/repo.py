"""A repository at one commit, with nothing in it that came later: what is not fetched cannot be read.

The repository is a new one into which exactly the commit and its ancestors were fetched. There is no remote, tag,
note, stash, reflog, alternate or packed ref, and every object that is there is reachable from the commit: that is
counted each time one is made. Submodules stay empty folders and large-file pointers stay pointers; the layer's
notes name both.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from excise.errors import InputError, LayerError, TaskError
from excise.layers.key import key_of
from excise.layers.lay import place_in
from excise.layers.recipe import repo_recipe
from excise.layers.recipes import index
from excise.layers.store import Layer, Store
from excise.tasks import git

BRANCH = "main"
_UPLOAD = "git -c safe.directory=* -c uploadpack.allowAnySHA1InWant=true upload-pack"
_GITLINK = b"160000 "
_UNSYNCED = ("core.fsync=none",)
"""Nothing of a layer is synced while it is made: one that loses bytes is made anew."""

_NOT_THERE = ("not our ref", "no such remote ref", "find remote ref")
_SURELY_BEFORE_S = 10


def repo_layer(store: Store, source: str, commit: str, at: str) -> Layer:
    """The repository of `source` (a path or an address that git can fetch) at `commit`, standing at `at`."""
    recipe = repo_recipe(commit, at)
    if source.startswith(("/", ".", "-")) and not Path(source).is_dir():
        raise InputError(f"{source} is no folder: name a repository's folder or its address")

    def make(tree: Path) -> Mapping[str, object]:
        return _check_out(source, commit, place_in(tree, at))

    return store.build(key_of(recipe), recipe, make)


def _check_out(source: str, commit: str, place: Path) -> Mapping[str, object]:
    place.mkdir(parents=True, exist_ok=True)
    kind = "sha1" if len(commit) == 40 else "sha256"
    options = (f"--initial-branch={BRANCH}", f"--object-format={kind}")
    try:
        git.run("init", "--quiet", *options, ".", cwd=place)
        packed = _pack(source, commit, place)
        if not packed:
            _fetch(source, commit, place)
        git.run("reset", "--quiet", "--hard", commit, cwd=place)
        _forget(place, packed=packed)
        with ThreadPoolExecutor(max_workers=3) as pool:
            only_ancestors = pool.submit(_expect_only_ancestors, commit, place)
            left_alone = pool.submit(_left_alone, place)
            _settle_times(place, len(commit) // 2)
            only_ancestors.result()
            return {"source": source, **left_alone.result()}
    except TaskError as error:
        if any(sign in str(error).lower() for sign in _NOT_THERE):
            raise InputError(f"{source} has no commit {commit}; look for it there") from error
        raise LayerError(f"{source} at {commit}: {error}") from error


def _pack(source: str, commit: str, place: Path) -> bool:
    """Write one pack of exactly the commit and its ancestors, where they are at hand; else do nothing."""
    folder = Path(source)
    if not folder.is_dir() or any((folder / at / "shallow").exists() for at in (".", ".git")):
        return False
    into = place.absolute() / ".git" / "objects" / "pack" / "pack"
    words = ("--no-replace-objects", "pack-objects", "--revs", "--quiet")
    try:
        git.run(
            *words, "--delta-base-offset", into, cwd=folder, stdin=f"{commit}\n".encode(),
            settings=_UNSYNCED,
        )  # fmt: skip
    except TaskError:
        return False  # asked for in the usual way, git says better why not
    return True


def _fetch(source: str, commit: str, place: Path) -> None:
    """Exactly the commit and its ancestors; over a server that names no single commits, all in a scratch first."""
    local = Path(source).exists()
    address = Path(source).absolute().as_uri() if local else source
    upload = (f"--upload-pack={_UPLOAD}",) if local else ()
    fetch = ("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", *upload, "--")
    try:
        git.run(*fetch, address, commit, cwd=place, settings=_UNSYNCED)
    except TaskError:
        if local:
            raise
        scratch = place.parent / f".{place.name}.all"
        try:
            git.run("clone", "--quiet", "--mirror", "--", address, scratch, cwd=place)
            _fetch(str(scratch), commit, place)
        finally:
            shutil.rmtree(scratch, ignore_errors=True)


def _forget(place: Path, *, packed: bool) -> None:
    """Keep one ref and one pack of what it reaches; servers may send more than they were asked for."""
    if not packed:
        git.run("repack", "-a", "-d", "--quiet", cwd=place, settings=_UNSYNCED)
        git.run("prune", "--expire=now", cwd=place)
    folder = place / ".git"
    for name in ("FETCH_HEAD", "ORIG_HEAD", "description", "COMMIT_EDITMSG"):
        (folder / name).unlink(missing_ok=True)
    for name in ("logs", "branches", "hooks"):
        shutil.rmtree(folder / name, ignore_errors=True)


def _expect_only_ancestors(commit: str, place: Path) -> None:
    listing = ("cat-file", "--batch-all-objects", "--batch-check=%(objectname)", "--unordered")
    there = set(git.run(*listing, cwd=place).split())
    reached = set(_lines("rev-list", "--objects", "--no-object-names", commit, place=place))
    refs = _lines("for-each-ref", "--format=%(objectname)", place=place)
    if there != reached or refs != [commit.encode()]:
        more = len(there - reached)
        raise LayerError(f"{commit}: {more} objects came along that are not of its history")


def _lines(*arguments: str, place: Path) -> list[bytes]:
    return git.run(*arguments, cwd=place).splitlines()


def _settle_times(place: Path, id_bytes: int) -> None:
    """Give each file the time of its commit and let the index know, or the first `git status` reads all of them."""
    said = int(git.text("log", "-1", "--format=%ct", cwd=place))
    when = max(0, min(said, int(time.time()) - _SURELY_BEFORE_S))
    top = os.fsencode(place)
    for folder, folders, files in os.walk(top):
        if folder == top:
            folders.remove(b".git")
        for name in (*folders, *files):
            path = folder + b"/" + name
            os.utime(path, (when, when), follow_symlinks=False)
    try:
        index.restat(place, id_bytes)
    except index.NotUnderstood:
        git.run("update-index", "-q", "--really-refresh", cwd=place)


def _left_alone(place: Path) -> Mapping[str, object]:
    staged = git.run("ls-files", "--stage", "-z", cwd=place).split(b"\0")
    modules = [entry.partition(b"\t")[2] for entry in staged if entry.startswith(_GITLINK)]
    pointers = git.run("ls-files", "-z", ":(attr:filter=lfs)", cwd=place).split(b"\0")
    return {"submodules": _shown(modules), "pointers": _shown(pointers)}


def _shown(names: Iterable[bytes]) -> list[str]:
    return [name.decode("utf-8", "replace") for name in names if name]
