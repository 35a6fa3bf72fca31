"""What git says, in the words of the SDK: states of files, branches, and which error it was. Pure."""

from __future__ import annotations

import re

from excise.service.daytona.errors import Told

_STATES = {
    ".": "Unmodified",
    "?": "Untracked",
    "M": "Modified",
    "T": "Modified",
    "A": "Added",
    "D": "Deleted",
    "R": "Renamed",
    "C": "Copied",
    "U": "Updated but unmerged",
}

_ERRORS: tuple[tuple[str, int, str], ...] = (
    (
        (
            r"authentication failed|could not read (username|password)|permission denied \(publickey"
            r"|terminal prompts disabled|invalid username or"
        ),
        401,
        "GIT_AUTH_FAILED",
    ),
    (
        (
            r"not a git repository|repository .* (not found|does not exist)|repository not found"
            r"|does not appear to be a git repository"
        ),
        404,
        "GIT_REPO_NOT_FOUND",
    ),
    (
        (
            r"remote branch .* not found|pathspec .* did not match any file|branch .* not found"
            r"|couldn't find remote ref|not a valid object name|unknown revision|invalid reference"
        ),
        404,
        "GIT_BRANCH_NOT_FOUND",
    ),
    (r"a branch named .* already exists", 409, "GIT_BRANCH_EXISTS"),
    (r"\[rejected\]|non-fast-forward|fetch first", 409, "GIT_PUSH_REJECTED"),
    (r"\[remote rejected\]|pre-receive hook declined", 422, "GIT_REMOTE_REJECTED"),
    (r"would be overwritten|commit your changes or stash", 409, "GIT_DIRTY_WORKTREE"),
    (
        r"conflict \(|fix conflicts|unmerged files|not possible to fast-forward",
        409,
        "GIT_MERGE_CONFLICT",
    ),
    (
        (
            r"could not resolve host|failed to connect|connection (refused|timed out)|unable to access"
            r"|network is unreachable|could not read from remote"
        ),
        502,
        "GIT_TRANSPORT_FAILED",
    ),
    (r"already exists and is not an empty directory", 409, "CONFLICT"),
)


def refused(said: str, exit_code: int) -> Told:
    """The error that git's last words mean."""
    text = said.strip() or f"git ended with {exit_code}"
    if exit_code == 127:
        return Told(400, "BAD_REQUEST", "git is not installed in this sandbox")
    for pattern, status, code in _ERRORS:
        if re.search(pattern, text, re.IGNORECASE):
            return Told(status, code, text[-2000:])
    return Told(400, "BAD_REQUEST", text[-2000:])


def status(said: bytes) -> dict[str, object]:
    """`git status --porcelain=v2 --branch -z` as the SDK reads it."""
    head, upstream, published = "", None, False
    ahead = behind = 0
    files: list[dict[str, str]] = []
    lines = iter(said.decode("utf-8", "replace").split("\0"))
    for line in lines:
        kind, _, rest = line.partition(" ")
        if line.startswith("# branch.head "):
            head = line.removeprefix("# branch.head ")
        elif line.startswith("# branch.upstream "):
            upstream, published = line.removeprefix("# branch.upstream "), True
        elif found := re.fullmatch(r"# branch\.ab \+(\d+) -(\d+)", line):
            ahead, behind = int(found[1]), int(found[2])
        elif kind in {"1", "u"}:
            states, name = rest[:2], rest.split(" ", 7 if kind == "1" else 9)[-1]
            files.append(_file(name, states if kind == "1" else "UU", ""))
        elif kind == "2":
            files.append(_file(rest.split(" ", 8)[-1], rest[:2], next(lines, "")))
        elif kind == "?":
            files.append(_file(rest, "??", ""))
    return {
        "currentBranch": "" if head == "(detached)" else head,
        "detached": head == "(detached)",
        "upstream": upstream,
        "branchPublished": published,
        "ahead": ahead,
        "behind": behind,
        "fileStatus": files,
    }


def _file(name: str, states: str, extra: str) -> dict[str, str]:
    staging, worktree = (_STATES.get(letter, "Unmodified") for letter in f"{states}.."[:2])
    return {"name": name, "staging": staging, "worktree": worktree, "extra": extra}


def history(said: bytes) -> list[dict[str, str]]:
    """`git log` with `LOG_FORM`."""
    fields = said.decode("utf-8", "replace").split("\0")
    names = ("hash", "author", "email", "timestamp", "message")
    rows = (
        fields[at : at + len(names)] for at in range(0, len(fields) - len(names) + 1, len(names))
    )
    return [dict(zip(names, row, strict=True)) | {"hash": row[0].strip()} for row in rows]


LOG_FORM = "--format=%H%x00%an%x00%ae%x00%aI%x00%B%x00"


def remotes(said: bytes) -> list[dict[str, str]]:
    """`git config --get-regexp` over the addresses of remotes, with `-z`."""
    found = []
    for line in said.decode("utf-8", "replace").split("\0"):
        key, newline, url = line.partition("\n")
        if newline and key.startswith("remote.") and key.endswith(".url"):
            found.append({"name": key[len("remote.") : -len(".url")], "url": url})
    return found
