"""What a command gets, and what comes back of it."""

from __future__ import annotations

import asyncio
import os
import secrets
from dataclasses import replace

from excise.substrates.conformance.rig import Rig, check, expect, fail
from excise.types import MIB, Action, Fault


@check()
async def runs_once_ready(rig: Rig) -> None:
    """After `ready` a command runs, at once and without a retry."""
    async with rig.box() as box:
        expect((await box.act(Action(("true",)))).exit_code, 0, "exit code of true")


@check()
async def exit_codes(rig: Rig) -> None:
    """Exit codes come back as they were, from a shell and from a program alone."""
    async with rig.box() as box:
        for code in (0, 1, 7, 255):
            expect((await box.sh(f"exit {code}")).exit_code, code, f"exit code of exit {code}")
        expect((await box.act(Action(("false",)))).exit_code, 1, "exit code of false")


@check()
async def exit_codes_of_signals(rig: Rig) -> None:
    """A command that dies of signal N ends with 128+N."""
    async with rig.box() as box:
        for signal in (9, 15):
            found = await box.sh(f"kill -{signal} $$")
            expect(found.exit_code, 128 + signal, f"exit code after signal {signal}")
            expect(found.timed_out, False, "timed_out of a command that was killed by a signal")


@check()
async def echo_is_echoed(rig: Rig) -> None:
    """Output comes back exactly, without what a terminal would add."""
    async with rig.box() as box:
        await box.says("echo one two", "one two\n")


@check()
async def argv_is_exact(rig: Rig) -> None:
    """Arguments reach the program as they are: no shell touches them."""
    words = ("a b", "", "$HOME", "*", "'\"", "\\n", "käse", "-n")
    async with rig.box() as box:
        found = await box.act(Action(("printf", "%s|", *words)))
        expect(found.stdout, "".join(f"{w}|" for w in words).encode(), "arguments as received")


@check()
async def streams_are_apart(rig: Rig) -> None:
    """Stdout and stderr come back apart; merged by the script, they come in order."""
    async with rig.box() as box:
        found = await box.sh("echo out; echo err >&2; echo out2")
        expect((found.stdout, found.stderr), (b"out\nout2\n", b"err\n"), "the two streams")
        merged = await box.sh("echo 1; echo 2 >&2; echo 3", merge=True)
        expect((merged.stdout, merged.stderr), (b"1\n2\n3\n", b""), "the merged stream")


@check()
async def binary_output(rig: Rig) -> None:
    """All 256 byte values survive on both streams."""
    every = bytes(range(256))
    escaped = "".join(f"\\{b:03o}" for b in every)
    async with rig.box() as box:
        found = await box.sh(f"printf '{escaped}'; printf '{escaped}' >&2")
        expect((found.stdout, found.stderr), (every, every), "the bytes 0 to 255 on both streams")


@check()
async def large_output(rig: Rig) -> None:
    """Ten megabytes on both streams at once: nothing is lost, nothing deadlocks."""
    async with rig.box() as box:
        script = "head -c 10485760 /dev/zero | tr '\\0' e >&2 & head -c 10485760 /dev/zero | tr '\\0' o; wait"
        found = await box.sh(script)
        expect(found.exit_code, 0, "exit code")
        expect(found.stdout == b"o" * 10 * MIB, True, "ten megabytes of stdout came back exactly")
        expect(found.stderr == b"e" * 10 * MIB, True, "ten megabytes of stderr came back exactly")
        expect(found.truncated, False, "truncated")


@check()
async def output_limit(rig: Rig) -> None:
    """Output over the limit keeps its head and tail, says so, and counts every byte."""
    script = "for c in a b c d; do head -c 50000 /dev/zero | tr '\\0' $c; done; echo -n err >&2"
    async with rig.box() as box:
        found = await box.act(Action(("bash", "-c", script), output_limit_bytes=1000))
        expect(found.truncated, True, "truncated")
        expect(found.stdout_bytes, 200_000, "stdout_bytes")
        expect(found.stderr_bytes, 3, "stderr_bytes")
        expect(found.stdout, b"a" * 500 + b"d" * 500, "head and tail")
        exact = await box.act(Action(("printf", "12345678"), output_limit_bytes=8))
        expect((exact.stdout, exact.truncated), (b"12345678", False), "output exactly at the limit")


@check()
async def stdin(rig: Rig) -> None:
    """Stdin arrives byte for byte and ends; without any, it is empty and not a terminal."""
    async with rig.box() as box:
        found = await box.act(Action(("cat",), stdin=b"a\0b\xff\n"))
        expect(found.stdout, b"a\0b\xff\n", "stdin, echoed")
        await box.says("cat; [ -t 0 ] || echo end", "end\n")


@check()
async def large_stdin(rig: Rig) -> None:
    """Megabytes of stdin arrive, whether they are read, echoed or ignored."""
    data = bytes(range(256)) * 16 * 1024
    async with rig.box() as box:
        echoed = await box.act(Action(("cat",), stdin=data))
        expect(echoed.stdout == data, True, "four megabytes went in and came back")
        ignored = await box.act(Action(("true",), stdin=data))
        expect(ignored.exit_code, 0, "exit code of a command that ignores its stdin")


@check()
async def environment(rig: Rig) -> None:
    """A command sees the spec's and the action's variables, the action's first, and none of ours."""
    spec = rig.spec
    odd = "a b'\"$x\nü"
    env = {**spec.env, "EXCISE_A": "spec", "EXCISE_B": "spec"}
    wanted = replace(spec, env=env)
    os.environ["EXCISE_LEAK"] = "leaked"
    try:
        async with rig.box(wanted) as box:
            script = 'printf "%s|" "$EXCISE_A" "$EXCISE_B" "$EXCISE_C" "$EXCISE_LEAK"'
            await box.says(
                script, f"spec|action|{odd}||", env={"EXCISE_B": "action", "EXCISE_C": odd}
            )
            await box.says(script, "spec|spec|||")
            await box.says('[ -d "$HOME" ] && [ -n "$PATH" ] && echo home', "home\n")
    finally:
        del os.environ["EXCISE_LEAK"]


@check()
async def working_directory(rig: Rig) -> None:
    """The default is a writable workspace; a relative directory counts from it, an absolute one does not."""
    async with rig.box() as box:
        where = (await box.sh("pwd -P")).stdout.decode().strip()
        expect(where.startswith("/"), True, f"the workspace {where!r} is an absolute path")
        await box.says("mkdir -p sub/deeper && echo here > sub/deeper/file && echo made", "made\n")
        await box.says("cat file", "here\n", cwd="sub/deeper")
        await box.says("pwd -P", f"{where}/sub\n", cwd="sub")
        await box.says("pwd -P", f"{where}/sub\n", cwd=f"{where}/sub")
        await box.says("pwd -P", "/\n", cwd="/")


@check()
async def files_last(rig: Rig) -> None:
    """What one action writes, the next one finds."""
    async with rig.box() as box:
        await box.says("echo kept > kept && echo written", "written\n")
        await box.says("cat kept", "kept\n")


@check()
async def missing_program(rig: Rig) -> None:
    """A program that does not exist is 127 and a fault of its own."""
    async with rig.box() as box:
        for program in ("no-such-program-here", "/no/such/program", "./nothing"):
            found = await box.act(Action((program,)))
            expect(found.exit_code, 127, f"exit code of {program}")
            expect(found.fault, Fault.MISSING_PROGRAM, f"fault of {program}")


@check()
async def missing_directory(rig: Rig) -> None:
    """A working directory that does not exist is 126 and not mistaken for a missing program."""
    async with rig.box() as box:
        await box.sh("touch file")
        for cwd in ("no/such/directory", "/no/such/directory", "file"):
            found = await box.act(Action(("true",), cwd=cwd))
            expect(found.exit_code, 126, f"exit code in {cwd}")
            expect(found.fault, Fault.MISSING_CWD, f"fault in {cwd}")


@check()
async def not_executable(rig: Rig) -> None:
    """A file that cannot be executed is 126."""
    async with rig.box() as box:
        await box.sh("echo text > plain; chmod 644 plain")
        found = await box.act(Action(("./plain",)))
        expect(found.exit_code, 126, "exit code of a file that is not executable")
        expect(found.fault, Fault.NOT_EXECUTABLE, "fault of a file that is not executable")


@check()
async def long_commands(rig: Rig) -> None:
    """A script over 128 KiB runs as it is: with its stdin, its name and its exit code."""
    padding = "# a comment that fills lines\n" * 10_000
    async with rig.box() as box:
        script = f'{padding}read line; echo "$0 $1 $line"; exit 7'
        found = await box.act(Action(("bash", "-c", script, "name", "one"), stdin=b"line\n"))
        expect((found.exit_code, found.stdout), (7, b"name one line\n"), "of a long script")
        await box.says(f"text='{'x' * 200_000}'; echo ${{#text}}", "200000\n")


@check()
async def apart_from_each_other(rig: Rig) -> None:
    """Two sandboxes have workspaces of their own under the same relative names."""
    async with rig.box() as one, rig.box() as other:
        if one.handle == other.handle:
            fail(f"two sandboxes have one handle: {one.handle}")
        await one.says("echo mine > file && echo written", "written\n")
        await other.says("[ -e file ] || echo nothing", "nothing\n")
        await other.says("echo theirs > file && cat file", "theirs\n")
        await one.says("cat file", "mine\n")


@check()
async def out_of_each_others_reach(rig: Rig) -> None:
    """A sandbox cannot see another one's files, not by absolute path and not in /tmp."""
    async with rig.box() as one, rig.box() as other:
        name = f"secret-{secrets.token_hex(8)}"
        await one.sh(f'echo secret > "{name}"; echo secret > "/tmp/{name}"')
        path = (await one.sh(f'echo "$PWD/{name}"')).stdout.decode().strip()
        try:
            await other.says(f'cat "{path}" "/tmp/{name}" 2>/dev/null; echo end', "end\n")
        finally:
            await one.sh(f'rm -f "/tmp/{name}"')


@check()
async def at_the_same_time(rig: Rig) -> None:
    """Several sandboxes live and act at once and do not mix up their answers."""

    async def one(number: int) -> None:
        async with rig.box() as box:
            for turn in range(3):
                await box.says(
                    f"echo {number}.{turn} >> log; sleep 0.05; tail -1 log", f"{number}.{turn}\n"
                )

    await asyncio.gather(*(one(n) for n in range(4)))
