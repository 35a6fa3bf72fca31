"""A task as its author writes it down: one TOML file, of ours or of a user's, and no third-party code.

Everything here is plain data; `load.py` finds and checks files, `forge.py` builds what they describe.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import msgspec


class Release(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One released source archive, named by version and full hash."""

    version: str
    sha256: str
    tree: str
    """The git tree id that the unpacked, restored release must have; the set-up fails on any other."""


class Check(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What one test file (or label, where a runner takes labels) gives before and after the fix."""

    path: str
    fail_to_pass: tuple[str, ...]
    pass_to_pass: int
    """How many tests pass before and after."""
    known_failing: tuple[str, ...] = ()
    """Tests that fail before and after."""


class Cycle(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of ten actions of a trajectory; see `workloads/trajectory.py`.

    Paths count from the repository's root, where every command is run.
    """

    list: str
    search: str
    """A pattern for grep, sought in the Python files below the task's `search_in`."""
    range: tuple[str, int, int]
    command: str
    test: str
    """What the runner is given: a test file, or a label."""
    read: str
    edit: str
    """A source file that gets a comment line on top; `gold` in the last cycle."""


class Task(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A bug fix between two releases of a package: base is buggy, fixed is not."""

    id: str
    package: str
    licence: str
    base: Release
    fixed: Release
    upstream_commit: str | None = None
    """The commit of the package's own repository whose tree `base` is."""
    origin: str | None = None
    """Where that repository is cloned from, for the history mode `origin`."""
    history: tuple[Release, ...] = ()
    """Older releases, oldest first: the commits below `base` in the history mode `releases`."""
    delete: tuple[str, ...] = ()
    """Paths that a source release adds to the repository it was made from."""
    restore: dict[str, str] = {}
    """Paths whose content a source release rewrites, with the repository's own content."""
    sources: tuple[str, ...]
    """Roots below which the difference of the two releases is the gold patch."""
    tests: tuple[str, ...]
    """Test files whose difference is the test patch."""
    python_path: str
    """PYTHONPATH of the runner and of every command, so that the sources are what is imported."""
    runner: str
    """The command that runs tests; `{python}` stands for the interpreter and `{test}` for files or ids."""
    results: Literal["pytest", "django"] = "pytest"
    """How the runner reports the outcome of each test; see `results.py`."""
    module: str
    """What a script imports to use the package."""
    search_in: tuple[str, ...]
    checks: tuple[Check, ...]
    requirements: tuple[str, ...]
    """Pinned dependencies of the tests, `name==version`; never the package itself."""
    inspect: Inspect
    cycles: tuple[Cycle, ...]
    golden: dict[str, Published] = {}


class Inspect(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The parameters of tier T1."""

    search: str
    """A pattern for grep, sought below `root`."""
    root: str
    names: str
    """The AST search parses every file below `root` and prints what has a name containing this."""
    file: str
    first: int
    last: int


class Published(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """The digest over all golden observations of one workload, and the Python minor it was taken with."""

    sha256: str
    python: str


@dataclass(frozen=True, slots=True)
class Prepared:
    """A task made ready on this host; every path is the same inside sandboxes that share or import it."""

    task: Task
    commit: str
    tree: str
    git_dir: Path
    """Bare repository, to be served."""
    checkout: Path
    """A clean clone at `commit`: what a preloaded sandbox holds."""
    venv: Path
    test_patch: bytes
    gold_patch: bytes
    history: str = "single"
    """How much history the repository has: `single`, `releases` or `origin`."""

    @property
    def python(self) -> str:
        return str(self.venv / "bin" / "python")
