"""A stand-in for SWE-agent's editor and search commands, for replays: `editor.py STATE VERB ARGUMENTS...`.

This file is put into the sandbox as it is, so it needs nothing but Python 3.8 there. It keeps the open file,
its window and the texts before edits in the file STATE. Its observations have the layout of the originals, so that
a replay can be compared with its recording; their linting is reduced to Python's own syntax check.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path
from typing import Callable, NoReturn  # noqa: UP035 - Python 3.8

WINDOW = 100
SNIPPET = 4
CLIPPED_AT = 16000
CLIPPED = "<response clipped>"
UPDATED = (
    "File updated. Please review the changes and make sure they are correct"
    " (correct indentation, no duplicate lines, etc). Edit the file again if necessary."
)
REPLACED = "Text replaced. Please review the changes and make sure they are correct:"
REVIEW = "Review the changes and make sure they are as expected. Edit the file again if necessary."


def say(text: str) -> None:
    sys.stdout.write(text.rstrip("\n") + "\n")


def stop(text: str, code: int = 1) -> NoReturn:
    say(text)
    raise SystemExit(code)


class Desk:
    """What is remembered from one command to the next."""

    def __init__(self, path: Path) -> None:
        self.path = path
        kept = json.loads(path.read_text("utf-8")) if path.exists() else {}
        self.file: str | None = kept.get("file")
        self.first: int = kept.get("first", 0)
        self.before: dict[str, list[str]] = kept.get("before", {})

    def keep(self) -> None:
        kept = {"file": self.file, "first": self.first, "before": self.before}
        self.path.write_text(json.dumps(kept), "utf-8")

    def open_file(self) -> Path:
        if not self.file:
            stop("No file open. Use the open command first.")
        return Path(self.file)

    def go_to(self, line: int) -> None:
        """Put a line (from 1) a sixth below the top of the window."""
        lines = len(read(self.open_file()).splitlines())
        self.first = max(0, min(int(line - 1 - WINDOW / 6), lines - WINDOW))

    def show(self) -> None:
        path = self.open_file()
        text = read(path)
        lines, total = text.split("\n"), len(text.splitlines())
        shown = lines[self.first : min(self.first + WINDOW, max(total, 1))]
        say(f"[File: {path} ({total} lines total)]")
        if self.first > 0:
            say(f"({self.first} more lines above)")
        for number, line in enumerate(shown, start=self.first + 1):
            sys.stdout.write(f"{number}:{line}\n")
        if total > self.first + WINDOW:
            say(f"({total - self.first - WINDOW} more lines below)")

    def replace(self, path: Path, text: str) -> None:
        """Write a new text, unless it breaks a Python file that was whole."""
        old = read(path)
        fault = syntax_fault(path, text)
        if fault and not syntax_fault(path, old):
            stop(f"Your proposed edit has introduced new syntax error(s).\n\nERRORS:\n{fault}\n")
        self.before.setdefault(str(path), []).append(old)
        path.write_text(text, "utf-8")


def read(path: Path) -> str:
    return path.read_bytes().decode("utf-8", "replace")


def syntax_fault(path: Path, text: str) -> str:
    if path.suffix != ".py":
        return ""
    try:
        compile(text, str(path), "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as error:
        return f"- E999 {type(error).__name__}: {error}"
    return ""


def numbered(text: str, of: str, first: int = 1) -> str:
    if len(text) > CLIPPED_AT:
        text = text[:CLIPPED_AT] + CLIPPED
    lines = [f"{n:6}\t{line}" for n, line in enumerate(text.expandtabs().split("\n"), start=first)]
    return f"Here's the result of running `cat -n` on {of}:\n" + "\n".join(lines) + "\n"


def open_(desk: Desk, args: list[str]) -> None:
    if not args:
        stop('Usage: open "<file>" [<line>]')
    path = Path(args[0])
    if not path.is_file():
        stop(f"Error: File {args[0]} not found")
    desk.file, desk.first = str(path.resolve()), 0
    if len(args) > 1:
        desk.go_to(int(args[1]))
    desk.show()


def go_to(desk: Desk, args: list[str]) -> None:
    desk.open_file()
    desk.go_to(int(args[0]))
    desk.show()


def scroll(desk: Desk, by: int) -> None:
    lines = len(read(desk.open_file()).splitlines())
    desk.first = max(0, min(desk.first + by, lines - WINDOW))
    desk.show()


def create(desk: Desk, args: list[str]) -> None:
    path = Path(args[0])
    if path.exists():
        stop(f"Error: File '{args[0]}' already exists.")
    path.write_text("\n", "utf-8")
    desk.file, desk.first = str(path.resolve()), 0
    desk.show()


def edit(desk: Desk, args: list[str]) -> None:
    """`edit N:M` with the text on stdin, or `edit SEARCH REPLACEMENT [all]`."""
    path = desk.open_file()
    span = re.fullmatch(r"(\d+):(\d+)", args[0]) if args else None
    text = read(path)
    if span:
        first, last = int(span[1]), int(span[2])
        new = args[1] if len(args) > 1 else sys.stdin.read()
        lines = text.split("\n")
        lines[first - 1 : last] = new.rstrip("\n").split("\n") if new else []
        desk.replace(path, "\n".join(lines))
        desk.go_to(first)
        said = UPDATED
    elif len(args) >= 2:
        search, new = args[0], args[1]
        window = "\n".join(text.split("\n")[desk.first : desk.first + WINDOW])
        everywhere = len(args) > 2 and args[2].lower() not in ("", "false")
        found = text.count(search) if everywhere else window.count(search)
        if not search or not found:
            stop(f"Your edit was not applied (file not modified): Text {search!r} not found.", 3)
        if found > 1 and not everywhere:
            stop(
                "Your edit was not applied (file not modified): Found more than one occurrence.", 4
            )
        at = text.index(search) if everywhere else text.index(search, _offset(text, desk.first))
        whole = (
            text.replace(search, new) if everywhere else text[:at] + new + text[at + len(search) :]
        )
        desk.replace(path, whole)
        desk.go_to(text[:at].count("\n") + 1)
        said = REPLACED
    else:
        stop("Usage: edit <first>:<last>, or edit <search> <replacement>")
    say(said)
    desk.show()


def _offset(text: str, line: int) -> int:
    return sum(len(part) + 1 for part in text.split("\n")[:line])


def insert(desk: Desk, args: list[str]) -> None:
    path = desk.open_file()
    lines = read(path).split("\n")
    at = int(args[1]) if len(args) > 1 else len(lines) - (lines[-1] == "")
    lines[at:at] = args[0].split("\n")
    desk.replace(path, "\n".join(lines))
    desk.go_to(at + 1)
    desk.show()


def find_file(_: Desk, args: list[str]) -> None:
    where = Path(args[1] if len(args) > 1 else ".").resolve()
    if not where.is_dir():
        stop(f"Directory {args[1]} not found", 0)
    found = sorted(str(p) for p in where.rglob(args[0]) if p.is_file())
    if not found:
        stop(f'No matches found for "{args[0]}" in {where}', 0)
    say(f'Found {len(found)} matches for "{args[0]}" in {where}:\n' + "\n".join(found))


def search_file(desk: Desk, args: list[str]) -> None:
    path = Path(args[1]).resolve() if len(args) > 1 else desk.open_file()
    if not path.is_file():
        stop(f"Error: File name {args[1]} not found. Please provide a valid file name.", 0)
    found = [(n, line) for n, line in enumerate(read(path).splitlines(), 1) if args[0] in line]
    if not found:
        stop(f'No matches found for "{args[0]}" in {path}', 0)
    say(f'Found {len(found)} matches for "{args[0]}" in {path}:')
    for number, line in found:
        say(f"Line {number}:{line}")
    say(f'End of matches for "{args[0]}" in {path}')


def search_dir(_: Desk, args: list[str]) -> None:
    where = Path(args[1] if len(args) > 1 else ".").resolve()
    counts = {}
    for path in sorted(p for p in where.rglob("*") if p.is_file()):
        if not any(part.startswith(".") for part in path.relative_to(where).parts):
            data = path.read_bytes()
            lines = [] if b"\0" in data else data.decode("utf-8", "replace").splitlines()
            counts[path] = sum(args[0] in line for line in lines)
    found = {path: count for path, count in counts.items() if count}
    if not found:
        stop(f'No matches found for "{args[0]}" in {where}', 0)
    say(f'Found {sum(found.values())} matches for "{args[0]}" in {where}:')
    for path, count in found.items():
        say(f"{path} ({count} matches)")
    say(f'End of matches for "{args[0]}" in {where}')


def str_replace_editor(desk: Desk, args: list[str]) -> None:
    """`view PATH [--view_range A B]`, `create`, `str_replace`, `insert`, `undo_edit`."""
    command, path, options = args[0], Path(args[1]), _options(args[2:])
    if command != "create" and not path.exists():
        stop(f"The path {path} does not exist. Please provide a valid path.", 7)
    if command == "create":
        if path.exists():
            stop(
                f"File already exists at: {path}. Cannot overwrite files using command `create`.", 8
            )
        path.write_text(options.get("file_text", [""])[0], "utf-8")
        say(f"File created successfully at: {path}")
    elif command == "view":
        _view(path, [int(n) for n in options.get("view_range", [])])
    elif command == "str_replace":
        _swap(desk, path, options.get("old_str", [""])[0], options.get("new_str", [""])[0])
    elif command == "insert":
        new, at = options["new_str"][0].split("\n"), int(options["insert_line"][0])
        lines = read(path).split("\n")
        _write(desk, path, "\n".join([*lines[:at], *new, *lines[at:]]))
        near = [*lines[max(0, at - SNIPPET) : at], *new, *lines[at : at + SNIPPET]]
        _edited(path, "\n".join(near), "a snippet of the edited file", max(1, at - SNIPPET + 1))
    elif command == "undo_edit":
        if not desk.before.get(str(path)):
            stop(f"No edit history found for {path}.", 18)
        old = desk.before[str(path)].pop()
        path.write_text(old, "utf-8")
        say(f"Last edit to {path} undone successfully. {numbered(old, str(path))}")
    else:
        stop(f"Unrecognized command {command}.", 5)


def _options(args: list[str]) -> dict[str, list[str]]:
    options: dict[str, list[str]] = {}
    key = ""
    for word in args:
        if re.fullmatch(r"--(file_text|view_range|old_str|new_str|insert_line)", word):
            key = word[2:]
            options[key] = []
        else:
            options.setdefault(key, []).append(word)
    return {key: values or [""] for key, values in options.items()}


def _view(path: Path, span: list[int]) -> None:
    if path.is_dir():
        deep = sorted(str(p) for p in [*path.glob("*"), *path.glob("*/*")] if "/." not in str(p))
        listing = "\n".join([str(path), *deep])
        say(
            f"Here's the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        )
        say(listing + "\n")
        return
    lines = read(path).split("\n")
    first, last = (span[0], span[1]) if span else (1, -1)
    last = len(lines) if last == -1 else last
    if not 1 <= first <= last <= len(lines):
        stop(f"Invalid `view_range`: {span}.", 12)
    say(numbered("\n".join(lines[first - 1 : last]), str(path), first))


def _swap(desk: Desk, path: Path, old: str, new: str) -> None:
    text = read(path).expandtabs()
    old, new = old.expandtabs(), new.expandtabs()
    found = text.count(old) if old else 0
    if found == 0:
        stop(
            f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.", 15
        )
    if found > 1:
        stop(f"No replacement was performed. Multiple occurrences of old_str `{old}`.", 16)
    whole = text.replace(old, new)
    _write(desk, path, whole)
    at = text.split(old)[0].count("\n")
    first, last = max(1, at - SNIPPET), at + SNIPPET + new.count("\n")
    near = "\n".join(whole.split("\n")[first - 1 : last])
    _edited(path, near, f"a snippet of {path}", first)


def _write(desk: Desk, path: Path, text: str) -> None:
    desk.before.setdefault(str(path), []).append(read(path))
    path.write_text(text, "utf-8")


def _edited(path: Path, near: str, of: str, first: int) -> None:
    say(f"The file {path} has been edited. {numbered(near, of, first)}{REVIEW}")


VERBS: dict[str, Callable[[Desk, list[str]], None]] = {
    "open": open_,
    "goto": go_to,
    "scroll_down": lambda desk, _: scroll(desk, WINDOW),
    "scroll_up": lambda desk, _: scroll(desk, -WINDOW),
    "create": create,
    "edit": edit,
    "insert": insert,
    "find_file": find_file,
    "search_file": search_file,
    "search_dir": search_dir,
    "str_replace_editor": str_replace_editor,
}


def main(arguments: list[str]) -> None:
    desk = Desk(Path(arguments[0]))
    try:
        VERBS[arguments[1]](desk, arguments[2:])
    except (IndexError, ValueError, KeyError) as error:
        stop(f"{arguments[1]}: arguments not understood ({error})", 2)
    except OSError as error:
        stop(f"{arguments[1]}: {error}", 1)
    desk.keep()


if __name__ == "__main__":
    main(sys.argv[1:])
