"""Operations on processes: commands that go on by themselves, followed as lines from any point on."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import aclosing

from aiohttp import web

from excise.service.beat import beating
from excise.service.cloud import Cloud
from excise.service.native.lines import Lines
from excise.service.native.operation import Call, Operation, Query, body_of
from excise.service.native.refusal import told_of
from excise.service.processes import Process
from excise.substrates.base import Terminal
from excise.substrates.remote import wire
from excise.substrates.remote.convert import action_of, wire_of
from excise.types import MIB

BEAT_S = 10.0
INPUT_BYTES = 4 * MIB

SINCE = Query("since", int, "From which byte on; 0 is the start.", least=0, most=2**53)
FOLLOW = Query("follow", bool, "Answer with the process, then its output as it comes.")
LAST = Query("last", bool, "Nothing follows: close its input after this.")


async def start_process(call: Call) -> wire.ProcessWire | web.StreamResponse:
    cloud, sandbox, asked = call.desk.cloud, call.sandbox(), call.body
    terminal = None
    if asked.terminal is not None:
        terminal = Terminal(asked.terminal.rows, asked.terminal.columns)
    follow = call.flag("follow")
    process = await cloud.start(
        sandbox,
        action_of(asked),
        tag=asked.tag,
        terminal=terminal,
        awaited=follow or asked.awaited,
        input_open=asked.input_open or terminal is not None,
    )
    if not follow:
        return told(cloud, process)
    return await _follow(call, process, 0, first=told(cloud, process))


async def list_processes(call: Call) -> wire.ProcessesWire:
    found = call.sandbox().processes.all()
    return wire.ProcessesWire([told(call.desk.cloud, each) for each in found])


async def get_process(call: Call) -> wire.ProcessWire:
    return told(call.desk.cloud, _process(call))


async def follow_process(call: Call) -> web.StreamResponse:
    return await _follow(call, _process(call), call.number("since") or 0)


async def write_input(call: Call) -> None:
    process = _process(call)
    data = await body_of(call.request, INPUT_BYTES)
    if data:
        await process.write(data)
    if call.flag("last"):
        await process.end_of_input()


async def signal_process(call: Call) -> None:
    await _process(call).signal(call.body.number)


async def resize_process(call: Call) -> None:
    await _process(call).resize(call.body.rows, call.body.columns)


async def end_process(call: Call) -> None:
    await _process(call).end()


def told(cloud: Cloud, process: Process) -> wire.ProcessWire:
    """A process as its owner sees it."""
    return wire.ProcessWire(
        number=process.number,
        argv=list(process.action.argv),
        running=process.running,
        started_s=cloud.wall_s(process.started_ns),
        tag=process.tag,
        written=process.written,
        exit=None if process.exit is None else wire_of(process.exit),
    )


async def _follow(
    call: Call, process: Process, since: int, first: wire.ProcessWire | None = None
) -> web.StreamResponse:
    async with Lines(call) as lines:
        if first is not None:
            await lines.say(first)
        async with aclosing(beating(_pieces(call, process, since), BEAT_S)) as pieces:
            async for piece in pieces:
                await (lines.beat() if piece is None else lines.say(piece))
    return lines.response


async def _pieces(call: Call, process: Process, since: int) -> AsyncGenerator[wire.PieceWire, None]:
    """What it wrote and writes; at last how it ended, or why nobody knows."""
    try:
        async with aclosing(process.follow(since)) as pieces:
            async for piece in pieces:
                yield wire.PieceWire(piece.at, piece.stream, piece.data)
    except Exception as error:  # noqa: BLE001  # told to the client as the last line
        yield wire.PieceWire(error=told_of(call.request, error))
        return
    assert process.exit is not None
    yield wire.PieceWire(process.written, exit=wire_of(process.exit))


def _process(call: Call) -> Process:
    text = call.request.match_info["number"]
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None
    if number is None:
        raise FileNotFoundError(2, "no such process", text[:40])
    return call.sandbox().processes.find(number)


ALL = "/sandboxes/{id}/processes"
ONE = f"{ALL}/{{number}}"
OPERATIONS = (
    Operation(
        "POST", ALL, "Start a command that goes on by itself.",
        start_process, wire.StartWire, wire.ProcessWire, query=(FOLLOW,),
    ),
    Operation("GET", ALL, "Those under way or ended lately.", list_processes, None, wire.ProcessesWire),
    Operation("GET", ONE, "One process.", get_process, None, wire.ProcessWire),
    Operation(
        "GET", f"{ONE}/output", "What it wrote and writes, line by line, and at last how it ended.",
        follow_process, None, wire.PieceWire, query=(SINCE,), lines=True,
    ),
    Operation("POST", f"{ONE}/input", "Write to its input.", write_input, bytes, status=204, query=(LAST,)),
    Operation("POST", f"{ONE}/signal", "Signal all it started.", signal_process, wire.SignalWire, status=204),
    Operation("POST", f"{ONE}/resize", "Resize its terminal.", resize_process, wire.TerminalWire, status=204),
    Operation("DELETE", ONE, "Kill it, if it still runs.", end_process, status=204),
)  # fmt: skip
