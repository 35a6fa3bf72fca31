"""The users of a sandbox, as its /etc/passwd has them: read, and one more written into it. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from excise.errors import InputError

_NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]{0,31}")
ROOT_HOME = "/root"
FIRST_UID = 1000
LAST_UID = 60_000


@dataclass(frozen=True, slots=True)
class Person:
    """One user of a sandbox."""

    name: str
    uid: int
    gid: int
    home: str
    shell: str = "/bin/bash"


ROOT = Person("root", 0, 0, ROOT_HOME)


def people(passwd: bytes) -> dict[str, Person]:
    """By name. Lines that make no sense are passed over, as the C library does."""
    found: dict[str, Person] = {}
    for line in passwd.decode("utf-8", "replace").splitlines():
        fields = line.split(":")
        if len(fields) < 7 or not (fields[2].isdigit() and fields[3].isdigit()):
            continue
        name, _, uid, gid, _, home, shell = fields[:7]
        found.setdefault(name, Person(name, int(uid), int(gid), home or "/", shell or "/bin/sh"))
    return found


def numbered(users: Iterable[Person]) -> dict[int, str]:
    """Names by number; of several with one number, the first."""
    found: dict[int, str] = {}
    for each in users:
        found.setdefault(each.uid, each.name)
    return found


def groups(group: bytes) -> dict[int, str]:
    """Names by number, as /etc/group has them."""
    found = {0: "root"}
    for line in group.decode("utf-8", "replace").splitlines():
        fields = line.split(":")
        if len(fields) >= 4 and fields[2].isdigit():
            found.setdefault(int(fields[2]), fields[0])
    return found


def newcomer(name: str, known: dict[str, Person]) -> Person:
    """A user that is not there yet, with the first number that is free; InputError for what is no name."""
    if not _NAME.fullmatch(name):
        raise InputError(f"{name[:40]!r} is no name for a user: letters, digits and . _ - are")
    taken = {each.uid for each in known.values()} | {each.gid for each in known.values()}
    uid = next(number for number in range(FIRST_UID, LAST_UID) if number not in taken)
    return Person(name, uid, uid, f"/home/{name}")


def entered(person: Person, passwd: bytes, group: bytes) -> tuple[bytes, bytes]:
    """Both files with that user and a group of the same name in them."""
    user = f"{person.name}:x:{person.uid}:{person.gid}::{person.home}:{person.shell}\n"
    its_group = f"{person.name}:x:{person.gid}:\n"
    return _with(passwd, user), _with(group, its_group)


def _with(lines: bytes, line: str) -> bytes:
    gap = b"" if not lines or lines.endswith(b"\n") else b"\n"
    return lines + gap + line.encode()
