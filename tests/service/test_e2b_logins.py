"""The login shell that the SDKs insist on, spared: commands see what they would see after it, and its cost is gone."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest

from excise.service.e2b.logins import Logins
from excise.service.people import Person
from excise.service.sandbox import Wanted
from excise.types import Action

USER = Person("user", 1000, 1000, "/home/user")
IDENTITY = {"HOME": "/home/user", "USER": "user", "LOGNAME": "user"}

SPARED = {
    "nothing": "",
    "variables": "export A='a b' B=$'line\\nline' PATH=$HOME/bin:$PATH; unset NOTHING",
    "what is not exported": "plain=1; declare -a list=(1 '2 3'); declare -A map=([k]='v w'); declare -i n=4",
    "functions": 'greet() { echo "hello $1"; }\nexport -f greet\nother () { cat <<< here; }',
    "umask and options": "umask 027; set -o noclobber; set -f; shopt -s nullglob",
    "aliases": "alias ll='ls -l'",
    "sourcing": ". ~/.more; [ -f ~/.none ] && . ~/.none",
    "quotes": "export Q=\"it's \\\"quoted\\\" \\\\ \\$x\"; q() { echo \"$Q\" 'it'\\''s'; }",
}
REAL = {
    "words": "echo welcome",
    "words of complaint": "echo welcome >&2",
    "another place": "cd /",
    "traps": "trap 'echo bye' EXIT",
    "a different thing every time": "export R=$RANDOM",
    "an early end": "exit 0",
    "expanded aliases": "shopt -s expand_aliases; alias hi='echo hi'",
    "limits": "ulimit -n 77",
    "other words between words": "IFS=:",
    "less of a variable": "unset LOGNAME",
    "a farewell": "echo 'echo bye' > ~/.bash_logout",
}
COMMANDS = (
    "echo $0 $LINENO $-; no-such-program; echo $LINENO\necho $LINENO",
    "env -u _ | sort",
    "umask; set +o; shopt -p | grep -v login_shell; alias; ulimit -n; pwd; trap",
    "declare -f; declare -p list map n plain 2>&1; greet you; other; q",
    "ll; hi; x=a:b; for i in $x; do echo $i; done; exit 3",
    "shopt login_shell; echo $SHLVL",
    "if",
    "# nothing",
    "cat",
    "echo ~ $RANDOM_THING; kill -9 $$",
)


def asked(command, env=None):
    return Action(
        ("/bin/bash", "-l", "-c", command), cwd="/home/user", env={**IDENTITY, **(env or {})}
    )


async def learned(logins, box, env=None):
    await logins.spared(box, USER, asked("true", env))
    await logins.learned()


async def is_spared(logins, box, env=None):
    return (await logins.spared(box, USER, asked("true", env))).argv[0] == "bash"


@pytest.mark.parametrize("profile", [*SPARED, *REAL])
def test_commands_see_what_they_would_see_after_the_profile(serve, profile):
    async def work():
        async with serve("jail") as served:
            cloud = served.cloud
            box = await cloud.create("alice", Wanted(person="user"))
            files = cloud.files(box)
            await files.write("/home/user/.more", b"export MORE=1\n")
            await files.write("/home/user/.profile", ({**SPARED, **REAL}[profile] + "\n").encode())
            logins = Logins(cloud)
            await learned(logins, box)
            assert await is_spared(logins, box) is (profile in SPARED)
            for command in COMMANDS:
                action = asked(command)
                spared = await logins.spared(box, USER, action)
                if spared is action:
                    continue
                real, found = await cloud.run(box, action), await cloud.run(box, spared)
                told = [(each.exit_code, each.stdout, _said(each.stderr)) for each in (real, found)]
                assert told[0] == told[1], command

    asyncio.run(work())


def _said(stderr: bytes) -> bytes:
    """Of a syntax error in its first line a shell speaks in other words when it was started ahead."""
    if b"syntax error" in stderr:
        return stderr.replace(b"eval: ", b"").replace(b"-c: ", b"").replace(b"/bin/bash", b"bash")
    return stderr


def test_a_changed_profile_is_read_at_once_and_learned_anew(serve):
    async def work():
        async with serve("jail") as served:
            cloud = served.cloud
            box = await cloud.create("alice", Wanted(person="user"))
            files, logins = cloud.files(box), Logins(cloud)
            profile, more = "/home/user/.profile", "/home/user/.more"

            async def says(command="echo $A$B"):
                action = await logins.spared(box, USER, asked(command))
                return (await cloud.run(box, action)).stdout.decode().strip()

            await files.write(profile, b"[ -f ~/.more ] && . ~/.more; export A=1\n")
            await learned(logins, box)
            assert await is_spared(logins, box)
            assert await says() == "1"
            for path, data, expected in (
                (profile, b"[ -f ~/.more ] && . ~/.more; export A=2\n", "2"),
                (more, b"export B=x\n", "2x"),
                (more, b"export B=y\n", "2y"),
            ):
                await files.write(path, data)
                assert await says() == expected, "at once"
                await logins.learned()
                assert await is_spared(logins, box)
                assert await says() == expected
            await files.remove(more)
            assert await says() == "2"
            await files.write("/etc/profile.d/zz.sh", b"export A=3\n")
            assert await says("echo $A") == "2", "the user's own comes last"
            assert not await is_spared(logins, box) or await says("echo $A") == "2"
            await files.write(profile, b"export PATH=$HOME/bin:$PATH A=4\n")
            await says()
            await logins.learned()
            assert await is_spared(logins, box)
            await files.write("/home/user/bin/bash", b"#!/bin/sh\n", mode=0o755)
            await logins.learned()
            assert await says("echo $A") == "4"
            await logins.learned()
            assert not await is_spared(logins, box), "another bash is in the way"

    asyncio.run(work())


def test_what_was_learned_in_one_sandbox_holds_in_its_like_and_not_for_others(serve):
    async def work():
        async with serve("jail") as served:
            cloud = served.cloud
            first, second = [await cloud.create("alice", Wanted(person="user")) for _ in range(2)]
            hers = await cloud.create("bob", Wanted(person="user"))
            logins = Logins(cloud)
            await learned(logins, first)
            assert await is_spared(logins, second)
            assert not await is_spared(logins, hers)
            assert not await is_spared(logins, first, {"OTHER": "1"}), (
                "other variables, other profile"
            )
            await logins.learned()
            assert await is_spared(logins, first, {"OTHER": "1"})
            terminal = await logins.spared(
                first, USER, replace(asked("x"), argv=("/bin/bash", "-i", "-l"))
            )
            assert terminal.argv == ("/bin/bash", "-i", "-l")

    asyncio.run(work())
