"""A substrate whose latencies are written down: `sleep 0.25` takes exactly 0.25 s on its clock.

With a `FakeClock` it drives a whole program through written-down time, to the nanosecond; with the real
clock it is a stand-in for a substrate that one does not have. It understands `true`, `false`, `:`, `exit N`,
`sleep S`, `echo WORDS` and `cat` (of stdin), as argv or as lines of a `bash -c`; everything else is asked of
`answers`, and is a missing program where that knows nothing. It runs nothing, ever.
"""

from __future__ import annotations

import asyncio
import itertools
import shlex
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from excise.clock import Clock, SystemClock
from excise.errors import InputError, Phase, SandboxGone
from excise.substrates.base import Availability, Shell
from excise.types import Action, Fault, Handle, Isolation, Observation, Spec

Answers: TypeAlias = Mapping[str, Observation] | Callable[[Action], Observation | None]
"""By the script (of a `bash -c`) or the joined argv; or a function of the action. An answer takes as long as its `inside_ns` says."""
Failures: TypeAlias = Mapping[Phase, BaseException] | Callable[[Phase, int], BaseException | None]
"""What to raise in a phase: always, or as a function of the phase and of how often it was entered before."""


@dataclass(frozen=True, slots=True)
class Latencies:
    """How long each verb takes, in seconds. `run_s` is added to what the command itself takes."""

    create_s: float = 0.0
    ready_s: float = 0.0
    run_s: float = 0.0
    reset_s: float = 0.0
    destroy_s: float = 0.0


@dataclass(slots=True)
class _Box:
    files: dict[str, bytes] = field(default_factory=dict)


class Fake:
    """`Fake(Latencies(create_s=0.8), clock=FakeClock())`; failures and hangs are injected by phase."""

    isolation = Isolation.NONE
    times_inside = True

    def __init__(
        self,
        latencies: Latencies = Latencies(),
        *,
        clock: Clock | None = None,
        answers: Answers | None = None,
        fail: Failures | None = None,
        hang: Collection[Phase] = (),
        name: str = "fake",
    ) -> None:
        self.name = name
        self.latencies = latencies
        self._clock = clock or SystemClock()
        self._answers = answers or {}
        self._fail = fail or {}
        self._hang = frozenset(hang)
        self._boxes: dict[Handle, _Box] = {}
        self._numbers = itertools.count(1)
        self._entered = dict.fromkeys(Phase, 0)

    def __repr__(self) -> str:
        return f"<Fake {self.name} with {len(self._boxes)} sandboxes>"

    @property
    def boxes(self) -> tuple[Handle, ...]:
        """The sandboxes that exist: empty after everything was destroyed."""
        return tuple(self._boxes)

    async def create(self, spec: Spec) -> Handle:
        del spec
        await self._spend(Phase.CREATE, self.latencies.create_s)
        box = Handle(f"{self.name}-{next(self._numbers)}")
        self._boxes[box] = _Box()
        return box

    async def ready(self, box: Handle) -> None:
        self._find(box, Phase.READY)
        await self._spend(Phase.READY, self.latencies.ready_s)

    async def run(self, box: Handle, action: Action) -> Observation:
        self._find(box, Phase.RUN)
        await self._spend(Phase.RUN, self.latencies.run_s)
        return await self.answer(action)

    async def reset(self, box: Handle) -> None:
        self._find(box, Phase.RESET)
        await self._spend(Phase.RESET, self.latencies.reset_s)
        self._find(box, Phase.RESET).files.clear()

    async def destroy(self, box: Handle) -> None:
        if box in self._boxes:
            await self._spend(Phase.DESTROY, self.latencies.destroy_s)
            self._boxes.pop(box, None)

    async def read(self, box: Handle, path: str) -> bytes:
        try:
            return self._find(box, Phase.RUN).files[path]
        except KeyError:
            raise FileNotFoundError(path) from None

    async def write(self, box: Handle, path: str, data: bytes) -> None:
        self._find(box, Phase.RUN).files[path] = data

    async def open_shell(self, box: Handle) -> Shell:
        self._find(box, Phase.RUN)
        return FakeShell(self, box)

    async def answer(self, action: Action) -> Observation:
        """What comes of an action, after the time it takes; the sandbox plays no part in it."""
        if not action.argv:
            raise InputError("an action needs a program: argv is empty")
        canned = self._canned(action)
        done = canned or interpret(action)
        takes_s = _seconds(done)
        limit_s = action.timeout_s
        if limit_s is not None and takes_s > limit_s:
            await self._clock.sleep(limit_s)
            return Observation(
                137, timed_out=True, inside_ns=round(limit_s * 1e9), stdout_bytes=0, stderr_bytes=0
            )
        if takes_s:
            await self._clock.sleep(takes_s)
        return done

    def _canned(self, action: Action) -> Observation | None:
        if callable(self._answers):
            canned = self._answers(action)
        else:
            canned = self._answers.get(script_of(action))
        if canned is None:
            return None
        return replace(
            canned,
            inside_ns=canned.inside_ns or 0,
            stdout_bytes=len(canned.stdout),
            stderr_bytes=len(canned.stderr),
        )

    async def _spend(self, phase: Phase, seconds: float) -> None:
        before = self._entered[phase]
        self._entered[phase] += 1
        if phase in self._hang:
            await asyncio.Event().wait()
        if seconds:
            await self._clock.sleep(seconds)
        failure = self._fail(phase, before) if callable(self._fail) else self._fail.get(phase)
        if failure is not None:
            raise failure

    def _find(self, box: Handle, phase: Phase) -> _Box:
        try:
            return self._boxes[box]
        except KeyError:
            text = f"there is no sandbox {box}"
            raise SandboxGone(text, substrate=self.name, phase=phase) from None


class FakeShell:
    """A persistent shell that answers like its substrate, and ends with `exit`."""

    def __init__(self, substrate: Fake, box: Handle) -> None:
        self._substrate = substrate
        self._box = box
        self._ended = False

    async def run(self, script: str, *, timeout_s: float | None = 60.0) -> Observation:
        if self._ended:
            text = "the shell has ended; open another"
            raise SandboxGone(text, substrate=self._substrate.name, phase=Phase.RUN)
        action = Action.shell(script, timeout_s=timeout_s)
        observation = await self._substrate.run(self._box, action)
        self._ended = observation.timed_out or "exit" in script.split()
        return observation

    async def close(self) -> None:
        self._ended = True


def null() -> Fake:
    """Nothing, at once: every action succeeds and says nothing. What is left is the harness's own cost."""
    silent = Observation(0, inside_ns=0, stdout_bytes=0, stderr_bytes=0)
    return Fake(answers=lambda _: silent, name="null")


def script_of(action: Action) -> str:
    """What an action says: the script of a `bash -c` without the merging of its streams, or argv joined."""
    argv = action.argv
    if len(argv) >= 3 and argv[0] in {"bash", "sh"} and argv[1] == "-c":
        return argv[2].removeprefix("exec 2>&1\n")
    return shlex.join(argv)


def interpret(action: Action) -> Observation:
    """Work out what the few known commands would do, including how long they would take."""
    out, code, seconds = b"", 0, 0.0
    for line in script_of(action).replace(";", "\n").splitlines():
        words = _words(line)
        if words is None:
            return _failed(2, f"syntax error: {line}", seconds)
        if not words:
            continue
        if words[0] == "exit":
            code = int(words[1]) & 0xFF if len(words) > 1 else code
            break
        done = _one(words, action.stdin)
        if done is None:
            missing = _failed(127, f"{words[0]}: not known to this fake", seconds)
            return replace(missing, fault=Fault.MISSING_PROGRAM)
        code, out, seconds = done[0], out + done[1], seconds + done[2]
    return Observation(
        code, stdout=out, inside_ns=round(seconds * 1e9), stdout_bytes=len(out), stderr_bytes=0
    )


def _one(words: list[str], stdin: bytes) -> tuple[int, bytes, float] | None:
    """Exit code, output and seconds of one command; None if it is not known."""
    match words:
        case ["true" | ":"]:
            return 0, b"", 0.0
        case ["false"]:
            return 1, b"", 0.0
        case ["sleep", number]:
            return 0, b"", float(number)
        case ["echo", *rest]:
            return 0, " ".join(rest).encode() + b"\n", 0.0
        case ["cat"]:
            return 0, stdin, 0.0
        case _:
            return None


def open_substrate(**options: str) -> Fake:
    """`create_s`, `ready_s`, `run_s`, `reset_s`, `destroy_s`: seconds that each verb takes."""
    known = Latencies.__slots__
    if unknown := sorted(set(options) - set(known)):
        raise InputError(f"fake has no option {', '.join(unknown)}; it has: {', '.join(known)}")
    try:
        latencies = Latencies(**{name: float(value) for name, value in options.items()})
    except ValueError as error:
        raise InputError(f"fake's options are seconds: {error}") from error
    return Fake(latencies)


async def availability(**options: str) -> Availability:
    """Always usable: it runs nothing."""
    open_substrate(**options)
    return Availability(True, "written-down latencies; runs nothing")


def _seconds(observation: Observation) -> float:
    return (observation.inside_ns or 0) / 1e9


def _words(line: str) -> list[str] | None:
    try:
        return shlex.split(line)
    except ValueError:
        return None


def _failed(code: int, message: str, seconds: float) -> Observation:
    text = f"{message}\n".encode()
    return Observation(
        code,
        stderr=text,
        inside_ns=round(seconds * 1e9),
        stdout_bytes=0,
        stderr_bytes=len(text),
    )
