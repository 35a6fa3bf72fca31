"""An environment as options of a command: image, repository at a commit, dependencies."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from excise.types import Deps, Repo, Spec


def spec_of(image: str, repo: str, deps: Sequence[Path]) -> Spec:
    """The spec, or an InputError that names the option."""
    from excise.types import Spec

    return Spec(image=image, repo=repo_of(repo), deps=deps_of(deps))


def repo_of(text: str) -> Repo | None:
    """`SOURCE@COMMIT`; a source may hold an `@` itself."""
    from excise.errors import InputError
    from excise.types import Repo

    if not text:
        return None
    source, at, commit = text.rpartition("@")
    if not at or not source or not commit:
        raise InputError(f"--repo takes SOURCE@COMMIT, with a full commit id, not {text!r}")
    local = Path(source)
    return Repo(str(local.absolute()) if local.is_dir() else source, commit)


def deps_of(files: Sequence[Path]) -> tuple[Deps, ...]:
    """One virtual environment for each file of exact versions; further ones beside the first."""
    from excise.errors import InputError
    from excise.layers.recipes.requirements import pinned
    from excise.types import Deps

    found = []
    for number, file in enumerate(files):
        try:
            text = file.read_text(encoding="utf-8")
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"--deps {file} cannot be read: name a requirements file") from error
        found.append(Deps(pinned(text), path=f"/opt/environment{number or ''}"))
    return tuple(found)
