"""Finds a task's descriptor, ours by name or a user's by path, and checks it before anything is built."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from importlib.resources import files
from pathlib import Path, PurePosixPath

import msgspec

from excise.errors import InputError
from excise.tasks.descriptor import Release, Task

GOLD = "gold"
"""The edit of a trajectory's last cycle: the fix itself."""

_ID = re.compile(r"[a-z0-9][a-z0-9._-]*")
_PACKAGE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_VERSION = re.compile(r"[A-Za-z0-9][A-Za-z0-9.!+_-]*")
_SHA256 = re.compile(r"[0-9a-f]{64}")
_GIT_ID = re.compile(r"[0-9a-f]{40}")
_PUBLISHED = re.compile(r"(T1|T2|K[1-9][0-9]{0,5})(\+[a-z]+(=[0-9.]+)?)*")


def names() -> tuple[str, ...]:
    """The tasks that come with the package."""
    library = files("excise.tasks") / "library"
    return tuple(
        sorted(f.name.removesuffix(".toml") for f in library.iterdir() if f.name.endswith(".toml"))
    )


def task(name_or_path: str | Path) -> Task:
    """A task by its name, or from a descriptor file anywhere (a path, or whatever ends in `.toml`)."""
    name = str(name_or_path)
    if isinstance(name_or_path, Path) or name.endswith(".toml") or "/" in name:
        return parse(_read(Path(name)), where=name)
    if name not in names():
        raise InputError(
            f"no task {name!r}; there are {', '.join(names())}; "
            "or give the path of a descriptor file ending in .toml"
        )
    content = (files("excise.tasks") / "library" / f"{name}.toml").read_bytes()
    return parse(content, where=f"{name}.toml")


def parse(content: bytes, *, where: str) -> Task:
    """A checked task out of a descriptor's text; InputError names `where` and the first thing wrong."""
    try:
        found = msgspec.toml.decode(content, type=Task)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        said = " ".join(str(error).split())
        raise InputError(f"{where}: {said}; docs/tasks.md lists the fields") from error
    for problem in problems(found):
        raise InputError(f"{where}: {problem}")
    return found


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise InputError(f"cannot read the task {path}: {error.strerror}") from error


def problems(task: Task) -> Iterator[str]:
    """Everything that a type cannot say, in the order a reader would fix it."""
    if not _ID.fullmatch(task.id):
        yield f"id {task.id!r} must be lower-case letters, digits, '.', '_' and '-'"
    if not _PACKAGE.fullmatch(task.package):
        yield f"package {task.package!r} is not the name of a package"
    for field, release in _releases(task):
        yield from _release_problems(field, release)
    if task.upstream_commit is not None and not _GIT_ID.fullmatch(task.upstream_commit):
        yield f"upstream_commit {task.upstream_commit!r} must be 40 hex digits"
    for field, path in _paths(task):
        if (why := _escapes(path)) is not None:
            yield f"{field} {path!r} {why}; paths count from the repository's root and stay in it"
    for place in ("{python}", "{test}"):
        if place not in task.runner:
            yield f"runner must contain {place}"
    yield from _requirement_problems(task)
    yield from _check_problems(task)
    yield from _cycle_problems(task)
    yield from _golden_problems(task)


def _releases(task: Task) -> Iterator[tuple[str, Release]]:
    yield "base", task.base
    yield "fixed", task.fixed
    yield from ((f"history[{i}]", release) for i, release in enumerate(task.history))


def _release_problems(field: str, release: Release) -> Iterator[str]:
    if not _VERSION.fullmatch(release.version):
        yield f"{field}.version {release.version!r} is not a version"
    if not _SHA256.fullmatch(release.sha256):
        yield f"{field}.sha256 must be all 64 hex digits, in lower case, of the archive's sha256"
    if not _GIT_ID.fullmatch(release.tree):
        yield f"{field}.tree must be the 40 hex digits of a git tree id, in lower case"


def _paths(task: Task) -> Iterator[tuple[str, str]]:
    several: tuple[tuple[str, Iterable[str]], ...] = (
        ("delete", task.delete),
        ("restore", task.restore),
        ("sources", task.sources),
        ("tests", task.tests),
        ("search_in", task.search_in),
        ("python_path", task.python_path.split(":")),
        ("inspect.root", (task.inspect.root,)),
        ("inspect.file", (task.inspect.file,)),
    )
    for field, paths in several:
        yield from ((field, path) for path in paths)
    for number, cycle in enumerate(task.cycles, start=1):
        for path in (cycle.list, cycle.range[0], cycle.read, cycle.edit):
            yield f"cycles[{number}]", path


def _escapes(path: str) -> str | None:
    """Why `path` may not be used, or None."""
    if not path or "\0" in path or "\n" in path:
        return "is not a path"
    if path.startswith(("/", "~")):
        return "is absolute"
    if ".." in PurePosixPath(path).parts:
        return "leads out of the repository"
    if ".git" in PurePosixPath(path).parts:
        return "is inside git's own directory"
    return None


def _requirement_problems(task: Task) -> Iterator[str]:
    for requirement in task.requirements:
        name, pinned, version = requirement.partition("==")
        if not (pinned and _PACKAGE.fullmatch(name) and _VERSION.fullmatch(version)):
            yield f"requirement {requirement!r} must be NAME==VERSION"
        elif _normal(name) == _normal(task.package):
            yield f"requirement {requirement!r} is the package itself, which the sources must provide"


def _normal(package: str) -> str:
    return re.sub(r"[-_.]+", "-", package).lower()


def _check_problems(task: Task) -> Iterator[str]:
    if not task.checks:
        yield "checks is empty: name at least one test that fails before the fix and passes after it"
    for check in task.checks:
        if not check.fail_to_pass:
            yield f"the check {check.path!r} has no fail_to_pass"
        if check.pass_to_pass < 0:
            yield f"the check {check.path!r} has a negative pass_to_pass"
        if both := set(check.fail_to_pass) & set(check.known_failing):
            yield f"the check {check.path!r} has {min(both)} both fail_to_pass and known_failing"
    for field, values in (("sources", task.sources), ("tests", task.tests)):
        if not values:
            yield f"{field} is empty"


def _cycle_problems(task: Task) -> Iterator[str]:
    if not task.cycles or task.cycles[-1].edit != GOLD:
        yield f'the last of cycles must have edit = "{GOLD}"'
    if any(cycle.edit == GOLD for cycle in task.cycles[:-1]):
        yield f'only the last of cycles may have edit = "{GOLD}"'
    for number, cycle in enumerate(task.cycles, start=1):
        _, first, last = cycle.range
        if not 1 <= first <= last:
            yield f"cycles[{number}].range must have 1 <= first line <= last line"
    if not 1 <= task.inspect.first <= task.inspect.last:
        yield "inspect must have 1 <= first <= last"


def _golden_problems(task: Task) -> Iterator[str]:
    """A misspelt key would never be compared with anything, and nobody would know."""
    for key, published in task.golden.items():
        if not _PUBLISHED.fullmatch(key):
            yield f"golden.{key} is no workload; name it T1, T2 or K<length>, as in golden.K50"
        if not _SHA256.fullmatch(published.sha256):
            yield f"golden.{key}.sha256 must be 64 hex digits in lower case"
