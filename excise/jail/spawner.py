"""The process that makes jails, and how to ask it: `excise-agent spawner`, one per driver, gone with it.

Everything is numbers and open files: a stack of layers, a box that stands on one, a snapshot that a dead box
leaves. A box lives while the spawner, this process and somebody at the other end of its socket do.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import socket
import subprocess
import threading
import weakref
from collections import OrderedDict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import TracebackType

from excise.agent.binary import agent_binary
from excise.errors import DeadlineExceeded, Phase, SubstrateError
from excise.jail import cgroups, control, lease, rootless
from excise.jail.control import Answer, Bind, BoxLimits, Created, Fact, Failed, Gone, Ok, Op
from excise.jail.ids import first_id
from excise.jail.lease import Lease
from excise.jail.line import Line, LineClosed, Ordered, Reply, in_child
from excise.jail.phase import NAME, failed, unavailable
from excise.jail.reasons import explain
from excise.jail.sweep import clear_if_dead
from excise.jail.usage import Usage

_ANSWER_S = 30.0
_END_S = 20.0
_REMEMBERED = 4096


@dataclass(frozen=True, slots=True)
class Box:
    """A jail that was made. `pid` is its first process as we number it, `socket` the agent's other end."""

    number: int
    stack: int
    pid: int
    kit: int
    socket: socket.socket


@dataclass(frozen=True, slots=True)
class Coming:
    """A jail that is being made while its driver does something else."""

    number: int
    stack: int
    ordered: Ordered


@dataclass(frozen=True, slots=True)
class Frozen:
    """What a box leaves: its written files, and a stack of them upon what the box stood on."""

    snapshot: int
    stack: int


@dataclass(eq=False)
class Spawner:
    """A running spawner. All verbs may be used by several threads; those ending in _async by event loops."""

    lease: Lease
    layout: cgroups.Layout
    places: tuple[cgroups.Place, ...]
    process: subprocess.Popen[bytes]
    line: Line
    facts: Fact = field(default_factory=lambda: Fact(0))
    _pid: int = field(default_factory=os.getpid)
    _alive: dict[int, int] = field(default_factory=dict)
    _ends: OrderedDict[int, Gone] = field(default_factory=OrderedDict)
    _numbers: Iterator[int] = field(default_factory=lambda: itertools.count(1))
    _lock: threading.Lock = field(default_factory=threading.Lock)

    @classmethod
    def start(
        cls,
        *,
        layout: cgroups.Layout | None = None,
        leases: Path | None = None,
        attached: bool = False,
    ) -> Spawner:
        """Start one for this process. It is up, and knows its kernel, when this returns.

        `attached` has it mount as it must before Linux 6.15, which it finds out by itself.
        """
        program = agent_binary()
        found = layout or (cgroups.discover() if os.geteuid() == 0 else cgroups.NONE)
        held = lease.take(leases)
        try:
            held.note(found)
            places = cgroups.make(found, held.name)
            self = cls._launch(program, held, found, places, attached=attached)
        except BaseException:
            lease.remove(held.folder)
            held.let_go()
            raise
        _all.add(self)
        try:
            self.facts = control.hello(self._ok(self._ask(Op.HELLO, b"")).body)
        except BaseException:
            self.close()
            raise
        return self

    @classmethod
    def _launch(
        cls,
        program: Path,
        held: Lease,
        layout: cgroups.Layout,
        places: tuple[cgroups.Place, ...],
        *,
        attached: bool,
    ) -> Spawner:
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with theirs:
            words = [str(program), "spawner", "--control", str(theirs.fileno())]
            words += ["--driver", str(os.getpid()), "--lease", str(held.folder)]
            words += ["--first-id", str(first_id(Path("/proc/self/uid_map").read_text()))]
            words += ["--mounts", "attached"] if attached else []
            words += rootless.words()
            words += [part for p in places for part in ("--cgroup", f"{p.kind}:{p.path}")]
            try:
                process = subprocess.Popen(
                    words, pass_fds=(theirs.fileno(), held.lock), start_new_session=True, env={},
                    cwd="/", stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                )  # fmt: skip
            except OSError as error:
                ours.close()
                cgroups.remove(places)
                raise unavailable(f"cannot start {program}: {error.strerror}") from error
        self = cls(held, layout, places, process, Line(ours, lambda _: None))
        self.line.on_gone = self._note_gone
        return self

    @property
    def usable(self) -> bool:
        """It lives, and is this process's own: a child of fork needs another."""
        return self._pid == os.getpid() and self.process.poll() is None

    def stack(self, lowers: Sequence[str | int], binds: Sequence[Bind] = ()) -> int:
        """Remember what jails may stand on: paths of layers or numbers of snapshots, top first."""
        number = next(self._numbers)
        self._ok(self._ask(Op.STACK, control.stack(number, lowers, binds)))
        return number

    def unstack(self, stack: int) -> None:
        """Forget it; boxes that stand on it are not touched."""
        self._ok(self._ask(Op.UNSTACK, control.number(stack)))

    def create(self, stack: int, limits: BoxLimits, *, hostname: str = "jail") -> Box:
        """Make a jail, and return when its agent is about to listen."""
        number, body = self._order(stack, limits, hostname)
        try:
            return self._made(number, stack, self._ask(Op.CREATE, body, box=number))
        except BaseException:
            self._alive.pop(number, None)
            raise

    async def create_async(self, stack: int, limits: BoxLimits, *, hostname: str = "jail") -> Box:
        """The same from an event loop; cancelled, it leaves no jail."""
        number, body = self._order(stack, limits, hostname)
        try:
            return self._made(number, stack, await self._ask_async(Op.CREATE, body, box=number))
        except BaseException:
            self._alive.pop(number, None)
            raise

    def order(
        self, stack: int, limits: BoxLimits, *, hostname: str = "jail", in_place_of: int = 0
    ) -> Coming:
        """Have one made when there is time, and go on: not at once, or it would slow whoever orders it ahead.

        A box whose place was taken is destroyed with the same message.
        """
        number, body = self._order(stack, limits, hostname)
        before = control.number(in_place_of)
        self._check(Phase.CREATE)
        with _Errors(Phase.CREATE):
            return Coming(
                number, stack, self.line.order(Op.CREATE_LATER, before + body, box=number)
            )

    def collect(self, coming: Coming) -> Box:
        """Take it over, once it is made."""
        with _Errors(Phase.CREATE):
            reply = self.line.collect(coming.ordered, _ANSWER_S)
        return self._made(coming.number, coming.stack, reply)

    async def collect_async(self, coming: Coming) -> Box:
        """The same from an event loop."""
        with _Errors(Phase.CREATE):
            reply = await self.line.collect_async(coming.ordered, _ANSWER_S)
        return self._made(coming.number, coming.stack, reply)

    def cancel(self, coming: Coming) -> None:
        """It is not wanted any more."""
        self.line.cancel(coming.ordered)
        self.destroy(coming.number)

    def is_made(self, coming: Coming) -> bool:
        """Whether it can be collected without waiting; `lives` has heard what there is to hear."""
        return coming.ordered.waiting.reply is not None

    def lives(self, box: int) -> bool:
        """Whether we have not heard of its end, with all that has come by now heard."""
        self._check(Phase.RUN)
        self.line.look()
        return box in self._alive

    def destroy(self, box: int) -> None:
        """Have it killed, and return at once. Of one that is dead already there is nothing to do."""
        self._check(Phase.DESTROY)
        with contextlib.suppress(LineClosed):  # then all are dead
            self.line.tell(Op.DESTROY, control.number(box))

    def snapshot(self, box: int) -> Frozen:
        """End the box, and keep what it wrote."""
        left, body = self._left_by(box)
        self._ok(self._ask(Op.SNAPSHOT, body, Phase.RESET), Phase.RESET)
        return left

    async def snapshot_async(self, box: int) -> Frozen:
        """The same from an event loop."""
        left, body = self._left_by(box)
        self._ok(await self._ask_async(Op.SNAPSHOT, body, Phase.RESET), Phase.RESET)
        return left

    def forget(self, snapshot: int) -> None:
        """Let go of a snapshot; stacks that have it keep it."""
        self._ok(self._ask(Op.FORGET, control.number(snapshot)))

    def upper(self, box: int) -> int:
        """The folder that a live box writes to, open, for reading."""
        return self._folder(Op.UPPER, box)

    def frozen(self, snapshot: int) -> int:
        """The folder of a snapshot, open."""
        return self._folder(Op.FROZEN, snapshot)

    def end_of(self, box: int) -> Gone | None:
        """How a box ended, if it has and we have heard."""
        self._check(Phase.RUN)
        return self._ends.get(box)

    def wait_gone(self, box: int, timeout_s: float = _ANSWER_S) -> Gone | None:
        """Wait until it is dead; None for one that never lived, or ended long ago."""
        self._check(Phase.DESTROY)
        with _Errors(Phase.DESTROY):
            self.line.wait(lambda: box not in self._alive, timeout_s)
        return self._ends.get(box)

    def usage(self, kit: int) -> Usage:
        """The cgroups of the box that was made with that kit."""
        return Usage.of(self.places, kit)

    def close(self) -> None:
        """End it: every jail dies, every trace of the lease goes. Idempotent."""
        if self._pid != os.getpid():
            return
        _all.discard(self)
        self.line.close()
        self._alive.clear()
        try:
            self.process.wait(_END_S)
        except subprocess.TimeoutExpired:
            self.process.kill()  # its burial process goes on clearing
            self.process.wait()
        self.lease.let_go()
        clear_if_dead(self.lease.folder)

    def _order(self, stack: int, limits: BoxLimits, hostname: str) -> tuple[int, bytes]:
        number = next(self._numbers)
        body = control.box(number, stack, limits, hostname)
        self._alive[number] = stack
        return number, body

    def _left_by(self, box: int) -> tuple[Frozen, bytes]:
        left = Frozen(next(self._numbers), next(self._numbers))
        return left, control.number(box, left.snapshot, left.stack)

    def _made(self, number: int, stack: int, reply: Reply) -> Box:
        answer = reply.answer
        if isinstance(answer, Created) and reply.fd is not None:
            end = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM, 0, reply.fd)
            return Box(number, stack, answer.pid, answer.kit, end)
        if isinstance(answer, Gone):
            raise failed(f"it died while it was made: {_ending(answer)}", retryable=True)
        raise _refused(answer, Phase.CREATE)

    def _folder(self, op: Op, number: int) -> int:
        reply = self._ask(op, control.number(number), Phase.RUN)
        self._ok(reply, Phase.RUN)
        if reply.fd is None:
            raise failed("the spawner sent no folder", Phase.RUN)
        return reply.fd

    def _ok(self, reply: Reply, phase: Phase = Phase.CREATE) -> Ok:
        if isinstance(reply.answer, Ok):
            return reply.answer
        raise _refused(reply.answer, phase)

    def _ask(
        self, op: Op, body: bytes, phase: Phase = Phase.CREATE, *, box: int | None = None
    ) -> Reply:
        self._check(phase)
        with _Errors(phase):
            return self.line.ask(op, body, box=box, timeout_s=_ANSWER_S)

    async def _ask_async(
        self, op: Op, body: bytes, phase: Phase = Phase.CREATE, *, box: int | None = None
    ) -> Reply:
        self._check(phase)
        with _Errors(phase):
            return await self.line.ask_async(op, body, box=box, timeout_s=_ANSWER_S)

    def _check(self, phase: Phase) -> None:
        if self._pid != os.getpid():
            raise failed("this spawner is another process's: after a fork, start your own", phase)

    def _note_gone(self, end: Gone) -> None:
        self._alive.pop(end.box, None)
        self._ends[end.box] = end
        while len(self._ends) > _REMEMBERED:
            self._ends.popitem(last=False)


@dataclass(frozen=True, slots=True)
class _Errors:
    """What an error of the line means in this phase."""

    phase: Phase

    def __enter__(self) -> None:
        pass

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if isinstance(error, LineClosed):
            text = "the spawner has ended, and with it every jail"
            raise failed(text, self.phase, retryable=True) from error
        if isinstance(error, TimeoutError):
            text = "the spawner does not answer"
            raise DeadlineExceeded(text, substrate=NAME, phase=self.phase) from error


def _ending(end: Gone) -> str:
    if end.oom_kills:
        return "it ran out of memory"
    return f"signal {-end.end}" if end.end < 0 else f"exit code {end.end}"


def _refused(answer: Answer, phase: Phase) -> SubstrateError:
    if not isinstance(answer, Failed):
        return failed(f"the spawner answered {answer!r}", phase)
    return explain(answer, phase)


_all: weakref.WeakSet[Spawner] = weakref.WeakSet()


def _leave_to_the_parent() -> None:
    for spawner in tuple(_all):
        in_child(spawner.line)
        spawner.lease.let_go()
    _all.clear()


os.register_at_fork(after_in_child=_leave_to_the_parent)
