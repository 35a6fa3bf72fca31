"""Commands and terminals."""

from __future__ import annotations

import asyncio
from typing import Any

import e2b
from calling import Sdk, exercise, member


@exercise
async def output_and_exit_code(sdk: Sdk, box: Any) -> None:
    found = await sdk(box.commands.run, "echo out; echo err >&2; echo $MORE", envs={"MORE": "x"})
    assert (found.stdout, found.stderr, found.exit_code) == ("out\nx\n", "err\n", 0)
    failed = await sdk.fails("CommandExitException", box.commands.run, "echo so; exit 3")
    assert (failed.exit_code, failed.stdout) == (3, "so\n")
    killed = await sdk.fails("CommandExitException", box.commands.run, "kill -9 $$")
    assert killed.exit_code == 137


@exercise
async def users_and_directories(sdk: Sdk, box: Any) -> None:
    assert (await sdk(box.commands.run, "id -un; pwd")).stdout == "user\n/home/user\n"
    found = await sdk(box.commands.run, "id -un; echo $HOME; pwd", user="root", cwd="/usr")
    assert found.stdout == "root\n/root\n/usr\n"


@exercise
async def output_as_it_comes(sdk: Sdk, box: Any) -> None:
    seen: list[str] = []
    await sdk(box.commands.run, "echo one; sleep 0.05; echo two", on_stdout=seen.append)
    assert "".join(seen) == "one\ntwo\n"


@exercise
async def time_limits(sdk: Sdk, box: Any) -> None:
    await sdk.fails("TimeoutException", box.commands.run, "sleep 60", timeout=0.6)
    assert (await sdk(box.commands.run, "pgrep -x sleep || echo none")).stdout == "none\n"


@exercise
async def long_commands(sdk: Sdk, box: Any) -> None:
    found = await sdk(box.commands.run, "echo '" + "x" * 200_000 + "' | wc -c")
    assert found.stdout.strip() == "200001"


@exercise
async def background_list_and_kill(sdk: Sdk, box: Any) -> None:
    handle = await sdk(box.commands.run, "sleep 300", background=True)
    assert [each.pid for each in await sdk(box.commands.list)] == [handle.pid]
    assert await sdk(box.commands.kill, handle.pid) is True
    assert (await sdk.fails("CommandExitException", handle.wait)).exit_code == 137
    assert await sdk(box.commands.kill, handle.pid) is False


@exercise
async def connecting_to_a_command(sdk: Sdk, box: Any) -> None:
    handle = await sdk(box.commands.run, "read line; echo got $line", background=True, stdin=True)
    await sdk(handle.disconnect)
    again = await sdk(box.commands.connect, handle.pid)
    await sdk(box.commands.send_stdin, handle.pid, "it\n")
    assert (await sdk(again.wait)).stdout == "got it\n"


@exercise
async def input_and_its_end(sdk: Sdk, box: Any) -> None:
    close = member(box.commands, "close_stdin")
    handle = await sdk(box.commands.run, "cat; echo end", background=True, stdin=True)
    await sdk(box.commands.send_stdin, handle.pid, "one\n")
    await sdk(close, handle.pid)
    assert (await sdk(handle.wait)).stdout == "one\nend\n"


@exercise
async def terminals(sdk: Sdk, box: Any) -> None:
    said = bytearray()
    size = e2b.PtySize(rows=20, cols=60)
    if sdk.blocking:
        terminal = await sdk(box.pty.create, size)
        waiting = asyncio.create_task(sdk(terminal.wait, on_pty=said.extend))
    else:
        terminal = await sdk(box.pty.create, size, on_data=said.extend)
        waiting = asyncio.create_task(sdk(terminal.wait))
    await sdk(box.pty.resize, terminal.pid, e2b.PtySize(rows=31, cols=77))
    await sdk(box.pty.send_stdin, terminal.pid, b"stty size; exit\n")
    await waiting
    assert b"31 77" in said
