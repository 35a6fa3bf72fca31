"""Rules of the repository that would otherwise be forgotten."""

from __future__ import annotations

import ast
import re
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
LINES_PER_FILE = 400
LINES_IN_README = 170


def tracked(*patterns: str) -> list[Path]:
    listing = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", *patterns],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    return [ROOT / line for line in listing.stdout.splitlines() if (ROOT / line).is_file()]


PYTHON = tracked("*.py")


@pytest.mark.parametrize("path", PYTHON, ids=lambda p: str(p.relative_to(ROOT)))
def test_a_file_has_one_concern_and_so_few_lines(path: Path) -> None:
    assert len(path.read_text().splitlines()) <= LINES_PER_FILE


@pytest.mark.parametrize(
    "path", [p for p in PYTHON if "excise" in p.parts], ids=lambda p: str(p.relative_to(ROOT))
)
def test_every_module_says_what_it_is_for(path: Path) -> None:
    assert ast.get_docstring(ast.parse(path.read_text())), "the first line of a module says why"


def test_public_names_have_a_docstring() -> None:
    import excise

    without = [
        name
        for name in excise.__all__
        if isinstance(value := getattr(excise, name), type) and not value.__doc__
    ]
    assert not without


def test_the_readme_tree_names_every_folder_and_only_folders_that_exist() -> None:
    readme = (ROOT / "README.md").read_text()
    block = re.search(r"```tree\n(.*?)```", readme, re.DOTALL)
    assert block, "the README carries the tree in a ```tree block"
    named, stack = set(), []
    for line in block[1].splitlines():
        depth = (len(line) - len(line.lstrip())) // 2
        entry = line.split()[0] if line.strip() else ""
        if entry.endswith("/"):
            stack = [*stack[:depth], entry.rstrip("/")]
            named.add("/".join(stack))
    wanted = {str(p.parent.relative_to(ROOT)) for p in tracked("excise/**/*.py", "excise/*.py")} | {
        p.relative_to(ROOT).parts[0] for p in tracked() if len(p.relative_to(ROOT).parts) > 1
    }
    wanted = {w for w in wanted if not w.startswith(".")}
    assert named - {"."} >= wanted, f"missing in the README: {sorted(wanted - named)}"
    absent = [n for n in named if not (ROOT / n).is_dir()]
    assert not absent, f"named in the README but not there: {absent}"


def test_the_readme_stays_short() -> None:
    assert len((ROOT / "README.md").read_text().splitlines()) <= LINES_IN_README


@pytest.mark.parametrize("path", sorted((ROOT / "changelog.d").glob("*.md")), ids=lambda p: p.name)
def test_a_changelog_fragment_has_a_known_kind(path: Path) -> None:
    assert path.suffixes[-2] in {".added", ".changed", ".fixed"}
    assert path.read_text().strip()


def test_the_lock_names_no_index() -> None:
    lock = (ROOT / "requirements.lock").read_text()
    assert "://" not in lock, "any mirror must serve: lock by name, version and hash"


def test_no_broad_handler_swallows() -> None:
    """A broad handler re-raises or says, in a comment on its line, where it records."""
    silent = []
    for path in tracked("excise/**/*.py", "excise/*.py"):
        lines = path.read_text().splitlines()
        for node in ast.walk(ast.parse("\n".join(lines))):
            if not isinstance(node, ast.ExceptHandler) or not _is_broad(node) or _raises(node):
                continue
            if "#" not in lines[node.lineno - 1]:
                silent.append(f"{path.relative_to(ROOT)}:{node.lineno}")
    assert not silent


def _is_broad(node: ast.ExceptHandler) -> bool:
    return node.type is None or (
        isinstance(node.type, ast.Name) and node.type.id in {"Exception", "BaseException"}
    )


def _raises(node: ast.ExceptHandler) -> bool:
    return any(isinstance(n, ast.Raise) for n in ast.walk(node))


def test_every_optional_ability_stands_in_the_concepts() -> None:
    from excise.substrates import base

    abilities = {
        name
        for name, found in vars(base).items()
        if getattr(found, "_is_runtime_protocol", False) and found.__module__ == base.__name__
    }
    assert len(abilities) > 10
    listed = (ROOT / "docs" / "concepts.md").read_text().partition("## Optional abilities")[2]
    assert {name for name in abilities if f"`{name}`" not in listed} == {"Substrate"}
