"""How things end: time-outs, background processes, cancellation, destruction."""

from __future__ import annotations

import asyncio
import contextlib

from excise.errors import SandboxGone
from excise.substrates.conformance.rig import Rig, check, expect, fail, heart
from excise.types import Action, Handle

_NOTHING = Action(("true",))


@check()
async def time_out(rig: Rig) -> None:
    """A command that takes too long is an observation, and the sandbox goes on."""
    async with rig.box() as box:
        found = await box.sh("echo before; sleep 300", timeout_s=1.0)
        expect(found.timed_out, True, "timed_out")
        expect(found.exit_code, 137, "exit code of a command that was killed")
        expect(found.ok, False, "ok")
        expect(found.stdout, b"before\n", "what was printed before the time-out")
        await box.says("echo after", "after\n")


@check()
async def time_out_kills_the_tree(rig: Rig) -> None:
    """On time-out everything the command started is dead: also what has left its session and its parent."""
    beating = heart("plain") + heart("session", "setsid") + f"( {heart('orphan', 'setsid')} ) &\n"
    files = ("plain", "session", "orphan")
    async with rig.box() as box:
        waiting = "; ".join(f"until [ -s {f} ]; do sleep 0.02; done" for f in files)
        found = await box.sh(f"{beating}{waiting}; sleep 300", timeout_s=3.0)
        expect(found.timed_out, True, "timed_out")
        for file in files:
            await box.wait_for_heart(file)
        await box.has_stopped(*files)


@check()
async def background_child_holds_nothing_up(rig: Rig) -> None:
    """An action ends when its command does, though a background child keeps its output open."""
    async with rig.box() as box:
        found = await box.sh("sleep 30 & echo started", timeout_s=10.0)
        expect(found.timed_out, False, "timed_out, with a background child that holds the pipe")
        expect((found.exit_code, found.stdout), (0, b"started\n"), "exit code and output")


@check()
async def cancellation(rig: Rig) -> None:
    """Cancelling an action leaves none of its processes running."""
    async with rig.box() as box:
        async with box.acting(heart("beats", "setsid") + "sleep 300") as task:
            await box.wait_for_heart("beats")
            task.cancel()
            await asyncio.wait([task])
            expect(task.cancelled(), True, "the action was cancelled")
        with contextlib.suppress(SandboxGone):  # removing all of it is allowed
            await box.has_stopped("beats")


@check()
async def destroy_twice(rig: Rig) -> None:
    """Destroying is idempotent, one after the other and at the same time."""
    async with rig.box() as box:
        await rig.substrate.destroy(box.handle)
        await rig.substrate.destroy(box.handle)
    async with rig.box() as box:
        destroy = rig.substrate.destroy
        await asyncio.gather(destroy(box.handle), destroy(box.handle))


@check()
async def destroy_while_acting(rig: Rig) -> None:
    """Destroying ends a running action, in an observation or in an error, but does not hang."""
    async with rig.box() as box, box.acting("echo up > up; sleep 300") as task:
        await box.wait_for_heart("up")
        await rig.substrate.destroy(box.handle)
        ended = (await asyncio.gather(task, return_exceptions=True))[0]
        if not isinstance(ended, BaseException) and ended.exit_code == 0:
            fail("an action in a destroyed sandbox ended well")


@check()
async def use_after_destroy(rig: Rig) -> None:
    """Whoever uses a sandbox that is gone, or that never was, gets SandboxGone."""
    async with rig.box() as box:
        await rig.substrate.destroy(box.handle)
        for handle in (box.handle, Handle("never-made-0"), Handle("../escape")):
            try:
                await rig.substrate.run(handle, _NOTHING)
            except SandboxGone:
                continue
            fail(f"running in the sandbox {handle!r}, which is not there, raised no SandboxGone")


@check()
async def names_are_not_reused(rig: Rig) -> None:
    """A new sandbox never has the name of an old one."""
    async with rig.box() as first:
        pass
    async with rig.box() as second:
        expect(
            first.handle != second.handle, True, "two sandboxes after each other, handles differ"
        )
