"""What a login shell's profile comes to, written down once, so that it need not be read for every command. Pure.

The SDKs run every command as `bash -l -c COMMAND`. Three shells report on themselves: one without a profile and two
with it. What differs between the first and the second is what the profile does; if the second and the third differ,
it does not do the same twice. A fourth, traced, tells what it looked at. A `Memo` is made of that, or nothing is,
where there is any doubt: then the real login shell runs, as it does whenever something that was looked at changed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from excise.substrates.base import EntryKind

LOGIN = ("/bin/bash", "-l", "-c")
MARK = "excise-login-report"
LONGEST_PRELUDE = 64 * 1024
LONGEST_COMMAND = 32 * 1024
MOST_PATHS = 200

_SECTIONS = ("environment", "variables", "functions", "aliases", "options", "status", "rest")

REPORT = rf"""(
__excise_status=$? __excise_ifs=$IFS IFS=$' \t\n'
__excise_cut() {{ builtin printf '\0{MARK}\0'; }}
__excise_cut; env -0
__excise_cut; for __excise_v in $(compgen -v); do declare -p "$__excise_v" 2>/dev/null; builtin printf '\0'; done
__excise_cut; for __excise_v in $(compgen -A function); do declare -f "$__excise_v"; builtin printf '\0'; done
__excise_cut; alias -p
__excise_cut; umask -p; shopt -p; set +o
__excise_cut; builtin printf %s "$__excise_status"
__excise_cut; trap -p; set +f; shopt -u nullglob failglob
for __excise_v in c d e f i l m n q r s t u v; do ulimit -S -$__excise_v; ulimit -H -$__excise_v; done 2>&1
builtin printf '%s\n' "$PWD" "$__excise_ifs" "$(jobs)" /proc/self/fd/*
[ "$(type -P bash)" -ef /bin/bash ] && builtin printf 'the same bash\n'
__excise_cut
)"""
"""What a shell says of itself."""

WATCHED_ALWAYS = ("/etc/profile", "/etc/profile.d", "/etc/passwd")
WATCHED_AT_HOME = (".bash_profile", ".bash_login", ".profile", ".bash_logout")
FAREWELLS = ("/etc/bash.bash_logout", "/etc/bash_logout")
"""Read by some shells when they exit. Where there is one, the real login shell runs."""

_DOUBTFUL = re.compile(
    rb"login_shell|\blogout\b|BASH_|\bLINENO=|\bcaller\b|\bhistory\b|__excise|\bSHLVL\b"
)
_OWN = re.compile(
    r"(BASH(OPTS|PID|_ALIASES|_ARG[CV]|_ARGV0|_CMDS|_COMMAND|_EXECUTION_STRING|_LINENO|_REMATCH|_SOURCE"
    r"|_SUBSHELL|_VERSINFO|_VERSION)?|PPID|S?RANDOM|SECONDS|LINENO|SHLVL|PWD|OLDPWD|OPTIND|FUNCNAME|GROUPS"
    r"|DIRSTACK|EPOCH(REALTIME|SECONDS)|PIPESTATUS|COMP_\w*|HISTCMD|SHELLOPTS|_|IFS|__excise\w*)"
)
"""Variables that a shell keeps itself."""

_STATUS = {"0": "", "1": "! :;"}
_DECLARED = re.compile(r"declare -([-a-zA-Z]+) (\w+)")
_GLOB = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Report:
    """One shell's report, in parts."""

    environment: Mapping[str, str]
    variables: Mapping[str, str]
    """`declare` words by name."""
    functions: Sequence[str]
    aliases: Sequence[str]
    options: Sequence[str]
    status: str
    """Of the last thing that the profile did: what a command finds in `$?`."""
    rest: str


def report_of(output: bytes) -> Report | None:
    """The report; None where the profile wrote something, or the shell has other tools than are needed."""
    parts = output.split(f"\0{MARK}\0".encode())
    if len(parts) != len(_SECTIONS) + 2 or parts[0] or parts[-1]:
        return None
    environment, variables, functions, aliases, options, status, rest = (
        part.decode("utf-8", "surrogateescape") for part in parts[1:-1]
    )
    known = (_DECLARED.match(each) for each in variables.split("\0"))
    return Report(
        {
            name: value
            for name, equals, value in (each.partition("=") for each in environment.split("\0"))
            if equals and not _OWN.fullmatch(name)
        },
        {
            found[2]: found.string.rstrip("\n")
            for found in known
            if found is not None and not _OWN.fullmatch(found[2])
        },
        [each.rstrip("\n") for each in functions.split("\0") if each and "__excise" not in each],
        aliases.splitlines(),
        options.splitlines(),
        status,
        rest,
    )


@dataclass(frozen=True, slots=True)
class Seen:
    """Paths that a login shell looked at; `listed` are the directories whose entries count."""

    paths: tuple[str, ...]
    listed: frozenset[str]

    def watched(self, there: Mapping[str, EntryKind]) -> Watched:
        """What of them must look the same. Of a directory that was not listed counts only that it is one."""
        kinds = tuple(
            path
            for path in self.paths
            if there.get(path) is EntryKind.DIRECTORY and path not in self.listed
        )
        return Watched(tuple(path for path in self.paths if path not in kinds), kinds)


@dataclass(frozen=True, slots=True)
class Watched:
    """Paths that a profile depends on; of `kinds` only what they are."""

    paths: tuple[str, ...]
    kinds: tuple[str, ...] = ()


def seen_in(trace: bytes, home: str, path: str) -> Seen | None:
    """What a traced login shell looked at, besides what every login shell does. None: the trace is not whole."""
    text = trace.decode("utf-8", "surrogateescape")
    if not text.endswith(f"+ : {MARK}\n"):
        return None
    paths = dict.fromkeys((*WATCHED_ALWAYS, *(f"{home}/{name}" for name in WATCHED_AT_HOME)))
    paths |= dict.fromkeys(FAREWELLS)
    listed = {"/etc/profile.d"}
    asks_path = False
    for line in text.splitlines():
        words = _words(line.lstrip("+ "))
        asks_path |= bool({"command", "type", "which", "hash"} & set(words[:1]))
        for word in words:
            for each in _paths_in(word):
                above = each.rpartition("/")[0] or "/"
                if _GLOB.search(each):
                    listed.add(above)
                    each = above  # noqa: PLW2901  # what decides is the directory
                paths[each] = None
    for folder in path.split(":"):
        if folder.startswith("/"):
            paths[f"{folder}/bash"] = None
            if asks_path:
                paths[folder] = None
                listed.add(folder)
    if len(paths) > MOST_PATHS:
        return None
    return Seen(tuple(paths), frozenset(listed))


def _words(line: str) -> list[str]:
    try:
        return shlex.split(line)
    except ValueError:
        return line.split()


def _paths_in(word: str) -> Iterable[str]:
    """A path, by itself; a list of them, as in PATH, is no question that was asked of the file system."""
    if word.startswith("/") and ":" not in word and "\n" not in word and len(word) < 1000:
        yield "/" + word.strip("/") if word.strip("/") else "/"


@dataclass(frozen=True, slots=True)
class Memo:
    """What the profile does, as long as what it looked at looks like that. Not `usable`: only that it is in doubt."""

    watched: Watched
    look: bytes
    usable: bool = False
    environment: Mapping[str, str] = field(default_factory=dict)
    prelude: str = ""

    def script(self, command: str) -> str:
        """The command after all that the profile did, on the same line, so that its lines keep their numbers."""
        return f"BASH_ARGV0=/bin/bash;{self.prelude}{command}"


def memo_of(
    watched: Watched,
    look: bytes,
    there: Collection[str],
    plain: Report | None,
    login: Report | None,
    again: Report | None,
) -> Memo:
    """What three shells' reports come to; `there` are the paths that lead somewhere."""
    doubt = Memo(watched, look)
    if plain is None or login is None or login != again or plain.rest != login.rest:
        return doubt
    farewells = [each for each in there if each in FAREWELLS or each.endswith("/.bash_logout")]
    if farewells or "the same bash\n" not in login.rest:
        return doubt
    if "BASH_ENV" in login.environment or plain.environment.keys() - login.environment.keys():
        return doubt
    environment = {
        name: value
        for name, value in login.environment.items()
        if plain.environment.get(name) != value
    }
    prelude = _prelude(plain, login)
    if prelude is None or any("\0" in value for value in environment.values()):
        return doubt
    return Memo(watched, look, True, environment, prelude)


def _prelude(plain: Report, login: Report) -> str | None:
    """One line that sets everything else that the profile set. None: there is more to it than that."""
    if plain.variables.keys() - login.variables.keys():
        return None
    if set(plain.functions) - set(login.functions):
        return None
    lines = []
    for name, words in login.variables.items():
        if plain.variables.get(name) == words:
            continue
        found = _DECLARED.match(words)
        if found is None or "n" in found[1]:
            return None
        if found[1] != "x":
            lines.append(words)
    lines += [each for each in login.functions if each not in plain.functions]
    lines += [each for each in login.aliases if each not in plain.aliases]
    options = [each for each in login.options if each not in plain.options]
    if "shopt -s expand_aliases" in options:
        return None
    lines += [each for each in options if each != "shopt -s login_shell"]
    if login.status not in _STATUS:
        return None
    line = f"eval {ansi_c(chr(10).join(lines))};" if lines else ""
    line += _STATUS[login.status]
    return line if len(line) <= LONGEST_PRELUDE else None


def ansi_c(text: str) -> str:
    """Text as one word on one line, whatever is in it, as bash reads it."""
    found = []
    for byte in text.encode("utf-8", "surrogateescape"):
        char = chr(byte)
        found.append(char if 32 <= byte < 127 and char not in "\\'" else f"\\{byte:03o}")
    return "$'" + "".join(found) + "'"


def can_be_spared(argv: Sequence[str], env: Mapping[str, str]) -> bool:
    """Whether this is a login shell for one command, and nothing in the command asks what kind of shell it is in."""
    if len(argv) != 4 or tuple(argv[:3]) != LOGIN or "BASH_ENV" in env:
        return False
    command = argv[3].encode("utf-8", "surrogateescape")
    return len(command) <= LONGEST_COMMAND and _DOUBTFUL.search(command) is None
