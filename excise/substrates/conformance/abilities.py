"""The optional abilities: checked only where a substrate has them."""

from __future__ import annotations

from excise.errors import SandboxGone
from excise.substrates.base import Describes, Files, Resettable, Shells, Sweeps, TimesInside
from excise.substrates.conformance.rig import Rig, check, expect, fail, heart
from excise.types import MIB


@check(TimesInside)
async def times_inside(rig: Rig) -> None:
    """Commands are timed where they run."""
    async with rig.box() as box:
        found = await box.sh("sleep 0.2")
        if found.inside_ns is None:
            fail("inside_ns is None, though the substrate says that it times inside")
        if found.inside_ns < 200_000_000:
            fail(f"sleep 0.2 was timed inside with {found.inside_ns} ns")


@check(Files)
async def files(rig: Rig) -> None:
    """Files are written and read byte for byte, from the workspace, and commands see them."""
    data = bytes(range(256)) * 4096
    async with rig.box() as box:
        for path in ("file", "new/directory/file", "with space"):
            await rig.substrate.write(box.handle, path, data)
            expect(await rig.substrate.read(box.handle, path) == data, True, f"{path} as written")
            await box.says(f"wc -c < '{path}'", f"{MIB}\n")
        await box.sh("echo command > from-command; echo -n > empty")
        expect(await rig.substrate.read(box.handle, "from-command"), b"command\n", "its file")
        expect(await rig.substrate.read(box.handle, "empty"), b"", "an empty file")
        try:
            await rig.substrate.read(box.handle, "missing")
        except FileNotFoundError:
            return
        fail("reading a missing file raised no FileNotFoundError")


@check(Resettable)
async def reset(rig: Rig) -> None:
    """After a reset the sandbox is as `create` gave it: no files, no processes, and it still works."""
    async with rig.box() as box:
        listing = 'sleep 0.3; find . "$HOME" | LC_ALL=C sort | cksum'
        before = await box.sh(listing)
        dirt = 'mkdir -p a/b; echo x > a/b/c; echo x > "$HOME/.mark"\n'
        await box.sh(dirt + heart('"$PWD/beats"', "setsid"))
        await box.wait_for_heart("beats")
        await rig.substrate.reset(box.handle)
        expect((await box.sh(listing)).stdout, before.stdout, "digest of workspace and home")
        await box.says("echo works", "works\n")


@check(Shells)
async def shell_keeps_state(rig: Rig) -> None:
    """In a persistent shell directory, variables and functions survive from script to script."""
    async with rig.box() as box:
        shell = await rig.substrate.open_shell(box.handle)
        await shell.run("mkdir -p sub; cd sub; x=5; export y=6; f() { echo called $1; }")
        found = await shell.run("basename $PWD; echo $x; bash -c 'echo $y'; f here")
        expect(found.stdout, b"sub\n5\n6\ncalled here\n", "directory, variables, function")
        await shell.close()


@check(Shells)
async def shell_observations(rig: Rig) -> None:
    """A persistent shell gives each script's own code and streams, byte for byte."""
    async with rig.box() as box:
        shell = await rig.substrate.open_shell(box.handle)
        found = await shell.run("printf out; printf err >&2; (exit 42)")
        expect((found.exit_code, found.stdout, found.stderr), (42, b"out", b"err"), "of a script")
        quiet = await shell.run("true")
        expect((quiet.exit_code, quiet.stdout, quiet.stderr), (0, b"", b""), "of true")
        expect((await shell.run("echo 'unclosed")).exit_code != 0, True, "a syntax error fails")
        every = "".join(f"\\{b:03o}" for b in range(256))
        expect((await shell.run(f"printf '{every}'")).stdout, bytes(range(256)), "binary output")
        expect((await shell.run("cat; echo end")).stdout, b"end\n", "stdin is empty")
        large = await shell.run("head -c 10485760 /dev/zero")
        expect(large.stdout == bytes(10 * MIB), True, "ten megabytes came back")
        long = await shell.run(f"x='{'y' * 200_000}'; echo ${{#x}}")
        expect(long.stdout, b"200000\n", "output of a script over 128 KiB")
        await shell.close()


@check(Shells)
async def shell_time_out(rig: Rig) -> None:
    """A script that takes too long ends the shell and all it started; a new shell works."""
    async with rig.box() as box:
        shell = await rig.substrate.open_shell(box.handle)
        beats = heart("beats", "setsid")
        beating = "until [ -s beats ]; do sleep 0.02; done"
        found = await shell.run(f"{beats} {beating}; echo before; sleep 300", timeout_s=3.0)
        expect((found.timed_out, found.stdout), (True, b"before\n"), "of a script that hangs")
        await box.has_stopped("beats")
        await _expect_ended(shell)
        again = await rig.substrate.open_shell(box.handle)
        expect((await again.run("echo again")).stdout, b"again\n", "output of a new shell")
        await again.close()


@check(Shells)
async def shell_that_exits(rig: Rig) -> None:
    """A script that ends the shell is an observation; scripts after it raise SandboxGone."""
    async with rig.box() as box:
        shell = await rig.substrate.open_shell(box.handle)
        found = await shell.run("echo last; exit 9")
        expect((found.exit_code, found.stdout), (9, b"last\n"), "of a script that exits")
        await _expect_ended(shell)
        await shell.close()


@check(Sweeps)
async def sweep_spares_the_living(rig: Rig) -> None:
    """A sweep removes nothing that a living owner still uses."""
    async with rig.box() as box:
        await rig.substrate.sweep()
        await box.says("echo alive", "alive\n")


@check(Describes)
async def describes_itself(rig: Rig) -> None:
    """The facts are plain text, and there are some."""
    facts = await rig.substrate.describe()
    if not facts or any(not isinstance(x, str) for pair in facts.items() for x in pair):
        fail(f"describe() gave {facts!r}")


async def _expect_ended(shell: object) -> None:
    try:
        await shell.run("true")  # type: ignore[attr-defined]
    except SandboxGone:
        return
    fail("a shell that has ended took another script")
