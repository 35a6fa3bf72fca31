"""What the benchmarks of pools run on: a store of their own, the attrs task, and commits that nobody has seen."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from excise.tasks import forge, git, load
from excise.tasks.descriptor import Prepared
from excise.types import Deps, Limits, Repo, Spec

NAMED = ("-c", "user.name=bench", "-c", "user.email=bench@localhost")


@dataclass(frozen=True, slots=True)
class World:
    """A prepared task, a copy of its repository with further commits, and a folder for layers."""

    prepared: Prepared
    source: Path
    commits: tuple[str, ...]
    store: Path

    @property
    def deps(self) -> tuple[Deps, ...]:
        return (Deps(self.prepared.task.requirements),)

    def spec(self, commit: str | None = None) -> Spec:
        """The environment at one of the commits; without one, at the task's own."""
        if commit is None:
            repo = Repo(str(self.prepared.checkout), self.prepared.commit)
        else:
            repo = Repo(str(self.source), commit)
        return Spec(deps=self.deps, repo=repo, limits=Limits(memory_bytes=None))


@contextmanager
def world(commits: int) -> Iterator[World]:
    """One that is gone afterwards, but for the prepared task."""
    prepared = forge.prepare(load.task("attrs-1417"))
    with tempfile.TemporaryDirectory(prefix="excise-bench-") as folder:
        source = Path(folder, "source")
        shutil.copytree(prepared.checkout, source, symlinks=True)
        made = tuple(_commit(source, number) for number in range(commits))
        yield World(prepared, source, made, Path(folder, "store"))


def _commit(source: Path, number: int) -> str:
    file = source / "src" / "attr" / "_make.py"
    file.write_text(f"# Commit {number}.\n{file.read_text()}")
    git.run(*NAMED, "commit", "--quiet", "--all", "--message", f"{number}", cwd=source)
    return git.text("rev-parse", "HEAD", cwd=source)
