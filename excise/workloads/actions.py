"""What an agent does in a repository, one step each: look, search, read, write, patch, test.

Every step is self-contained: its directory, its environment and its expected exit code come with it.
"""

from __future__ import annotations

import base64
import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from excise.tasks.descriptor import Task
from excise.workloads.base import Site, Step

TEST_TIMEOUT_S = 300.0
"""Whole test files of the large tasks take 20 s alone, and a multiple on a busy machine."""

ENVIRONMENT: Mapping[str, str] = MappingProxyType(
    {
        "PYTHONHASHSEED": "0",
        "LC_ALL": "C.UTF-8",
        "TZ": "UTC",
        "COLUMNS": "80",
        "GIT_PAGER": "cat",
        "GIT_CONFIG_GLOBAL": "/dev/null",
        "GIT_CONFIG_NOSYSTEM": "1",
        # A checkout that another user id owns (a shared layer) is as good as one's own.
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "safe.directory",
        "GIT_CONFIG_VALUE_0": "*",
    }
)

AST_SEARCH = """\
import ast, pathlib, sys
root, part = sys.argv[1:]
count = 0
for path in sorted(pathlib.Path(root).rglob("*.py")):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        named = isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef))
        if named and part in node.name:
            count += 1
            print(path, node.lineno, node.end_lineno, node.name)
print(count)
"""

REPRODUCTION = '''\
"""Does the package import, and what does it offer? Number {number}."""
import {module} as package

names = [name for name in dir(package) if not name.startswith("_")]
print({number}, package.__name__, len(names))
'''


@dataclass(frozen=True, slots=True)
class Desk:
    """A task's repository as one site sees it, and the steps one can take there."""

    task: Task
    site: Site

    @property
    def path(self) -> str:
        return self.site.repo.path if self.site.repo else "repo"

    @property
    def env(self) -> dict[str, str]:
        return {**ENVIRONMENT, "PYTHONPATH": self.task.python_path}

    def step(self, kind: str, what: str, script: str, exit_code: int | None = 0) -> Step:
        return Step(kind, script, what=what, exit_code=exit_code, cwd=self.path, env=self.env)

    def list_files(self, path: str) -> Step:
        return self.step("inspect", "list", f"ls -la {shlex.quote(path)}")

    def search(self, pattern: str, *roots: str) -> Step:
        """Sorted, because the order of `grep -r` is the file system's and `head` would cut by it."""
        where = shlex.join(roots)
        found = f"grep -rn -e {shlex.quote(pattern)} --include='*.py' {where}"
        return self.step("inspect", "search", f"{found} | sort | head -50")

    def search_syntax(self) -> Step:
        look = self.task.inspect
        arguments = shlex.join((look.root, look.names))
        script = f"{self._python} - {arguments} {here_document(AST_SEARCH)}"
        return self.step("inspect", "search-syntax", script)

    def read_range(self, path: str, first: int, last: int) -> Step:
        return self.step("inspect", "read-range", f"sed -n '{first},{last}p' {shlex.quote(path)}")

    def read_full(self, path: str) -> Step:
        return self.step("inspect", "read-full", f"cat {shlex.quote(path)}")

    def command(self, command: str) -> Step:
        return self.step("command", "command", command.replace("{python}", self._python))

    def reproduce(self, number: int) -> Step:
        return self.command(f"{{python}} repro_{number}.py")

    def write_reproduction(self, number: int) -> Step:
        text = REPRODUCTION.format(number=number, module=self.task.module)
        return self.step("edit", "create", f"cat > repro_{number}.py {here_document(text)}")

    def comment(self, path: str, number: int) -> Step:
        line = f"# Looked at in cycle {number}."
        return self.step("edit", "comment", f"sed -i '1i {line}' {shlex.quote(path)}")

    def apply(self, what: str, patch: bytes) -> Step:
        return self.step("edit", what, patching(patch))

    def test(self, what: str, *tests: str, exit_code: int) -> Step:
        given = shlex.join(tests)
        script = self.task.runner.replace("{python}", self._python).replace("{test}", given)
        return Step(
            "test",
            script,
            what=what,
            exit_code=exit_code,
            timeout_s=TEST_TIMEOUT_S,
            cwd=self.path,
            env=self.env,
        )

    def test_fix(self, *, fixed: bool) -> Step:
        """The tests that the fix makes pass."""
        tests = [test for check in self.task.checks for test in check.fail_to_pass]
        return self.test("test-fix", *tests, exit_code=0 if fixed else 1)

    def clone(self) -> Step:
        script = f"git clone -q {shlex.quote(self.site.git_url)} {shlex.quote(self.path)}"
        return Step("set_up", script, what="clone", timeout_s=600.0, env=dict(ENVIRONMENT))

    @property
    def _python(self) -> str:
        return shlex.quote(self.site.python)


def here_document(text: str, then: str = "") -> str:
    """Text as a command's standard input, with a delimiter that is no line of it; `then` may pipe on."""
    delimiter, lines = "END", set(text.splitlines())
    while delimiter in lines:
        delimiter += "_"
    end = "" if text.endswith("\n") else "\n"
    return f"<<'{delimiter}'{then}\n{text}{end}{delimiter}"


def patching(patch: bytes) -> str:
    """The script that applies a patch: readable where it is plain text, base64 where it is not."""
    try:
        text = patch.decode("utf-8")
    except UnicodeDecodeError:
        text = ""
    if text.endswith("\n") and not set(text) & {"\0", "\r"}:
        return f"git apply - {here_document(text)}"
    coded = base64.encodebytes(patch).decode("ascii")
    return f"base64 -d {here_document(coded, ' | git apply -')}"
