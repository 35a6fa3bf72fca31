"""Rebuilds a task from the package's own released sources and proves that it is the one described.

Nothing of the package is in this repository: the base repository, the test patch and the gold patch are
made here, on the user's host. The tree ids in the descriptor are the proof; any other value is refused.
"""

from __future__ import annotations

import json
import shutil
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Literal, get_args

import msgspec

from excise.errors import InputError, TaskError
from excise.tasks import cache, git, venv
from excise.tasks.descriptor import Prepared, Release, Task
from excise.tasks.fetch import fetch
from excise.tasks.unpack import lay_out

History = Literal["single", "releases", "origin"]
"""`single`: one commit. `releases`: one per older release below it. `origin`: the package's own."""

_FORMAT = "1"
_EXPORT = "git-daemon-export-ok"
_MANIFEST = "manifest.json"


def prepare(task: Task, cache_dir: Path | None = None, *, history: History = "single") -> Prepared:
    """Everything a trial needs of the task, built once per host and checked each time it is asked for."""
    if history not in get_args(History):
        raise InputError(f"no history mode {history!r}; there are {', '.join(get_args(History))}")
    store = cache_dir or cache.root()
    entry = store / "tasks" / f"{task.id}-{_identity(task, history)}"
    with ThreadPoolExecutor(max_workers=1) as pool:
        environment = pool.submit(venv.ensure, task.requirements, store)
        cache.ensure(entry, partial(_build, task, store, history), _sound)
    commit = json.loads((entry / _MANIFEST).read_text())["commit"]
    return Prepared(
        task=task,
        commit=commit,
        tree=task.base.tree,
        git_dir=entry / "repo.git",
        checkout=entry / "checkout",
        venv=environment.result(),
        test_patch=(entry / "test.patch").read_bytes(),
        gold_patch=(entry / "gold.patch").read_bytes(),
        history=history,
    )


def _identity(task: Task, history: History) -> str:
    """A digest of what decides the built files; other fields of a descriptor may change freely."""
    deciding = (task.package, task.base, task.fixed, task.delete, sorted(task.restore.items()))
    more = (task.sources, task.tests, history)
    releases = task.history if history == "releases" else ()
    real = (task.origin, task.upstream_commit) if history == "origin" else ()
    return cache.digest(_FORMAT, msgspec.json.encode((deciding, more, releases, real)).decode())


def _build(task: Task, store: Path, history: History, entry: Path) -> None:
    older = task.history if history == "releases" else ()
    releases = (*older, task.base, task.fixed)
    with ThreadPoolExecutor(max_workers=2) as pool:
        archives = list(pool.map(lambda r: fetch(task.package, r, store), releases))
    work = entry / "work"
    git.run("init", "--quiet", "--initial-branch=main", work, cwd=entry)
    for release, archive in zip(releases[:-1], archives[:-1], strict=True):
        _check_out(task, release, archive, work)
        message = "base" if release is task.base else f"{task.package} {release.version}"
        git.run("commit", "--quiet", "--allow-empty", "-m", message, cwd=work)
    if history == "origin":
        _fetch_origin(task, work)
    git.run("repack", "-a", "-d", "--quiet", cwd=work)
    commit = _publish(entry)
    _check_out(task, task.fixed, archives[-1], work)
    for name, paths in (("gold.patch", task.sources), ("test.patch", task.tests)):
        (entry / name).write_bytes(_difference(task, name, paths, work))
    shutil.rmtree(work)
    _write_manifest(entry, commit)


def _check_out(task: Task, release: Release, archive: Path, work: Path) -> None:
    """Make the work tree and the index the release's, and refuse any tree but the described one."""
    for child in work.iterdir():
        if child.name != ".git":
            shutil.rmtree(child) if child.is_dir() and not child.is_symlink() else child.unlink()
    unpacked = work.parent / "unpacked"
    unpacked.mkdir()
    lay_out(archive, task, unpacked)
    for child in unpacked.iterdir():
        child.rename(work / child.name)
    unpacked.rmdir()
    git.run("add", "--all", "--force", ".", cwd=work)
    tree = git.text("write-tree", cwd=work)
    if tree != release.tree:
        raise InputError(
            f"{task.id}: {task.package} {release.version} unpacks to the git tree {tree}, "
            f"but the descriptor says {release.tree}; check its tree, delete and restore"
        )


def _fetch_origin(task: Task, work: Path) -> None:
    """Put the package's own history up to the base commit in place of ours; nothing later comes along."""
    if task.origin is None or task.upstream_commit is None:
        raise InputError(
            f"{task.id} names no origin and upstream_commit, which history=origin needs"
        )
    try:
        git.run("fetch", "--quiet", "--no-tags", "--", task.origin, task.upstream_commit, cwd=work)
    except TaskError as error:
        raise TaskError(
            f"{task.origin} cannot be fetched ({error}); use history=single or releases, "
            "which need the package index only"
        ) from error
    tree = git.text("rev-parse", f"{task.upstream_commit}^{{tree}}", cwd=work)
    if tree != task.base.tree:
        raise InputError(f"{task.id}: {task.upstream_commit} has the tree {tree}, not base.tree")
    git.run("reset", "--quiet", "--soft", task.upstream_commit, cwd=work)


def _publish(entry: Path) -> str:
    """A bare copy of `work` to be served, and a clean clone of it that remembers no remote."""
    git.run("clone", "--quiet", "--bare", "--no-hardlinks", "work", "repo.git", cwd=entry)
    git.run("remote", "remove", "origin", cwd=entry / "repo.git")
    (entry / "repo.git" / _EXPORT).touch()
    git.run("clone", "--quiet", "--no-hardlinks", "repo.git", "checkout", cwd=entry)
    git.run("remote", "remove", "origin", cwd=entry / "checkout")
    return git.text("rev-parse", "HEAD", cwd=entry / "checkout")


def _difference(task: Task, name: str, paths: tuple[str, ...], work: Path) -> bytes:
    options = ("--binary", "--full-index", "--no-renames", "--no-color", "--no-ext-diff")
    patch = git.run("diff", "--cached", *options, "HEAD", "--", *paths, cwd=work)
    if not patch:
        raise InputError(
            f"{task.id}: the two releases do not differ in {', '.join(paths)} ({name})"
        )
    return patch


def _write_manifest(entry: Path, commit: str) -> None:
    files = {str(f.relative_to(entry)): cache.file_sha256(f) for f in _kept(entry)}
    (entry / _MANIFEST).write_text(json.dumps({"commit": commit, "files": files}, indent=1))


def _kept(entry: Path) -> list[Path]:
    served = (f for f in (entry / "repo.git").rglob("*") if f.is_file())
    return sorted([*served, entry / "gold.patch", entry / "test.patch"])


def _sound(entry: Path) -> bool:
    """Whether every byte that is served, and the checkout, are still as they were built."""
    try:
        manifest = json.loads((entry / _MANIFEST).read_text())
        found = {str(f.relative_to(entry)): cache.file_sha256(f) for f in _kept(entry)}
        head = git.text("rev-parse", "HEAD", cwd=entry / "checkout")
        status = ("status", "--porcelain", "--ignored", "--untracked-files=all")
        clean = not git.run(*status, cwd=entry / "checkout")
    except (OSError, ValueError, TaskError):
        return False
    return bool(clean and found == manifest["files"] and head == manifest["commit"])
