"""The substrate itself: it ties directories, processes and shells to the verbs of the contract."""

from __future__ import annotations

import contextlib
import itertools
import os
import platform
import tempfile
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import msgspec

from excise.errors import InputError, Phase, SandboxGone, SubstrateError
from excise.substrates.base import Shell
from excise.substrates.capture import Capture
from excise.substrates.ending import to_the_end
from excise.substrates.local.directory import (
    NAME,
    PARTS,
    PATH,
    RECORD,
    Sandbox,
    environment,
    new_handle,
    owner,
    permit,
    refuse_other_user,
    refuse_what_cannot_be,
    remove_if_empty,
)
from excise.substrates.local.process import Child, Command, NotStarted, Stream
from excise.substrates.local.proctree import kill_all, started
from excise.substrates.local.shell import LocalShell
from excise.substrates.script import check, spill
from excise.substrates.shell import ARGV
from excise.types import Action, Egress, Handle, Isolation, Observation, Spec

MARK = "EXCISE_SANDBOX"


def _nothing(sandbox: Sandbox, command: Command) -> Command:
    del sandbox
    return command


class Directories:
    """Runs every command as a process of its own, in a directory per sandbox; `_command` says with what around it."""

    name: str
    isolation: Isolation
    spawns_itself = True

    def __init__(self, state: Path | None = None) -> None:
        self._state = state or Path(tempfile.gettempdir()) / f"excise-{os.getuid()}" / self.name
        self._known: dict[Handle, Sandbox] = {}
        self._numbers = itertools.count()
        self._held: defaultdict[Handle, list[Stream]] = defaultdict(list)
        self._shells: defaultdict[Handle, list[LocalShell]] = defaultdict(list)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} in {self._state}>"

    async def create(self, spec: Spec) -> Handle:
        refuse_what_cannot_be(spec, self.name)
        box = new_handle(self.name)
        root = str(self._state / box)
        env = environment(root) | dict(spec.env)
        network = spec.egress is not Egress.NONE
        sandbox = Sandbox(root, env, spec.limits.cpuset, spec.repo, network)
        try:
            self._make_state()
            os.mkdir(root, 0o700)
            Path(root, RECORD).write_bytes(msgspec.json.encode(sandbox))
            await self._fill(box, sandbox, Phase.CREATE)
        except BaseException as error:
            await to_the_end(self._remove(box, root))
            if isinstance(error, OSError):
                raise self._broken(Phase.CREATE, error) from error
            raise
        self._known[box] = sandbox
        return box

    async def ready(self, box: Handle) -> None:
        self._find(box, Phase.READY)

    async def run(self, box: Handle, action: Action) -> Observation:
        sandbox = self._find(box, Phase.RUN)
        check(action.argv)
        refuse_other_user(action.user, self.name)
        ident = f"{box}:{os.getpid()}.{next(self._numbers)}"
        path = f"{sandbox.root}/{ident}"
        spilled = spill(action.argv, path)
        if spilled is None:
            return await self._run(box, sandbox, action, action.argv, ident, self._command)
        Path(path).write_bytes(spilled.data)
        try:
            return await self._run(box, sandbox, action, spilled.argv, ident, self._command)
        finally:
            Path(path).unlink(missing_ok=True)

    async def reset(self, box: Handle) -> None:
        sandbox = self._find(box, Phase.RESET)
        await self._quieten(box, Phase.RESET)
        await to_the_end(self._delete([f"{sandbox.root}/{p}" for p in PARTS], Phase.RESET))
        await self._fill(box, sandbox, Phase.RESET)

    async def destroy(self, box: Handle) -> None:
        root = self._root(box, Phase.DESTROY)
        self._known.pop(box, None)
        if os.path.isdir(root):
            await to_the_end(self._remove(box, root))

    async def open_shell(self, box: Handle) -> Shell:
        sandbox = self._find(box, Phase.RUN)
        ident = f"{box}:{os.getpid()}.{next(self._numbers)}"
        env = {**sandbox.env, MARK: ident}
        how = self._command(sandbox, Command(ARGV, sandbox.work, env, cpuset=sandbox.cpuset))
        shell = LocalShell(self.name, how.cwd, env, how.cpuset, _whole(ident), how.argv)
        self._shells[box].append(shell)
        return shell

    async def read(self, box: Handle, path: str) -> bytes:
        return self._path(box, path).read_bytes()

    async def write(self, box: Handle, path: str, data: bytes) -> None:
        target = self._path(box, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(data)

    async def sweep(self) -> int:
        """Remove the sandboxes whose owner, by process id and start time, is no more."""
        swept = 0
        with contextlib.suppress(FileNotFoundError):
            for entry in os.listdir(self._state):
                who = owner(entry, self.name)
                if who is not None and started(who[0]) != who[1]:
                    await self.destroy(Handle(entry))
                    swept += 1
        return swept

    async def describe(self) -> dict[str, str]:
        return {
            "kernel": platform.release(),
            "egress": "not limited",
            "limits": "cpuset only",
            "start": "vfork, exec; pidfd",
        }

    async def close(self) -> None:
        """Let go of shells and pipes; the sandboxes stay."""
        for box in {*self._shells, *self._held}:
            await self._let_go(box)

    def _command(self, sandbox: Sandbox, command: Command) -> Command:
        """How a command is really started, where a variant puts something around it."""
        return _nothing(sandbox, command)

    async def _run(
        self,
        box: Handle,
        sandbox: Sandbox,
        action: Action,
        argv: tuple[str, ...],
        ident: str,
        around: Callable[[Sandbox, Command], Command] = _nothing,
    ) -> Observation:
        out, err = Capture(action.output_limit_bytes), Capture(action.output_limit_bytes)
        cwd = os.path.join(sandbox.work, action.cwd or "")
        env = {**sandbox.env, **action.env, MARK: ident}
        command = around(sandbox, Command(argv, cwd, env, action.stdin, sandbox.cpuset))
        try:
            child = Child(command, out.add, err.add)
        except NotStarted as why:
            self._find(box, Phase.RUN)
            text = f"{why.message}\n".encode()
            return _not_started(why, text)
        except OSError as error:
            raise self._broken(Phase.RUN, error, retryable=True) from error
        timed_out = await self._end(child, action.timeout_s, _whole(ident))
        if held := child.held:
            self._held[box] = [s for s in self._held[box] if not s.closed] + held
        exit_ = child.exit
        assert exit_ is not None
        return Observation(
            exit_code=exit_.code,
            stdout=out.kept,
            stderr=err.kept,
            timed_out=timed_out,
            truncated=out.truncated or err.truncated,
            inside_ns=exit_.duration_ns,
            cpu_ns=exit_.cpu_ns,
            stdout_bytes=out.total_bytes,
            stderr_bytes=err.total_bytes,
        )

    async def _end(self, child: Child, timeout_s: float | None, mark: bytes) -> bool:
        """Wait for the end, or bring it about; returns whether it took too long."""
        try:
            await child.wait(timeout_s)
        except BaseException:
            await to_the_end(self._kill(child, mark))
            raise
        if child.exit is not None:
            return False
        await to_the_end(self._kill(child, mark))
        return True

    async def _kill(self, child: Child, mark: bytes) -> None:
        killed = await kill_all(mark, None if child.exit else child.pid)
        await child.wait(1.0)
        for stream in child.held:
            stream.close()
        if not killed or child.exit is None:
            raise self._broken(Phase.RUN, "the command's processes would not die")

    async def _fill(self, box: Handle, sandbox: Sandbox, phase: Phase) -> None:
        for part in PARTS:
            os.mkdir(f"{sandbox.root}/{part}")
        if sandbox.repo is None:
            return
        target = os.path.join(sandbox.work, sandbox.repo.path)
        os.makedirs(os.path.dirname(target), exist_ok=True)
        copy = Action(("cp", "-a", "--reflink=auto", "--", sandbox.repo.source, target))
        copied = await self._run(box, sandbox, copy, copy.argv, f"{box}:copy")
        if not copied.ok:
            first, *more = copied.text.strip().splitlines() or ["cp said nothing"]
            also = f" (and {len(more)} more complaints)" if more else ""
            raise self._broken(phase, f"cannot copy the repository: {first}{also}")

    async def _quieten(self, box: Handle, phase: Phase) -> None:
        """Kill everything the sandbox has started, and let go of its pipes."""
        dead = await kill_all(f"{MARK}={box}:".encode())
        await self._let_go(box)
        if not dead:
            raise self._broken(phase, "the sandbox's processes would not die")

    async def _remove(self, box: Handle, root: str) -> None:
        await self._quieten(box, Phase.DESTROY)
        if not remove_if_empty(root):
            await self._delete([root], Phase.DESTROY)

    async def _delete(self, paths: list[str], phase: Phase) -> None:
        """By `rm`, which neither blocks the event loop nor minds what has gone already."""
        command = Command(("rm", "-rf", "--", *paths), "/", {"PATH": PATH})
        for attempt in range(2):
            said = Capture(1024)
            child = Child(command, said.add, said.add)
            await child.wait(None)
            if child.exit is not None and child.exit.code == 0:
                return
            for path in paths if attempt == 0 else ():
                permit(path)
        raise self._broken(phase, said.kept.decode("utf-8", "replace").strip())

    async def _let_go(self, box: Handle) -> None:
        for stream in self._held.pop(box, ()):
            stream.close()
        for shell in self._shells.pop(box, ()):
            await shell.close()

    def _find(self, box: Handle, phase: Phase) -> Sandbox:
        sandbox = self._known.get(box)
        root = self._root(box, phase)
        if not os.path.isdir(root):
            raise SandboxGone(f"there is no sandbox {box}", substrate=self.name, phase=phase)
        if sandbox is None:
            try:
                stored = Path(root, RECORD).read_bytes()
                sandbox = msgspec.json.decode(stored, type=Sandbox)
            except (OSError, msgspec.MsgspecError) as error:
                text = f"sandbox {box} is damaged: {error}"
                raise SandboxGone(text, substrate=self.name, phase=phase) from error
            self._known[box] = sandbox
        return sandbox

    def _root(self, box: Handle, phase: Phase) -> str:
        if owner(box, self.name) is None:
            raise SandboxGone(f"{box!r} is no handle of mine", substrate=self.name, phase=phase)
        return f"{self._state}/{box}"

    def _path(self, box: Handle, path: str) -> Path:
        return Path(self._find(box, Phase.RUN).work, path)

    def _make_state(self) -> None:
        self._state.mkdir(parents=True, exist_ok=True, mode=0o700)
        if self._state.stat().st_uid != os.getuid():
            raise InputError(
                f"{self._state} belongs to somebody else; set TMPDIR to a place of yours"
            )

    def _broken(
        self, phase: Phase, why: OSError | str, *, retryable: bool = False
    ) -> SubstrateError:
        return SubstrateError(str(why), substrate=self.name, phase=phase, retryable=retryable)


class Local(Directories):
    """Every command a plain process of the calling user."""

    name = NAME
    isolation = Isolation.NONE
    times_inside = True


def _whole(ident: str) -> bytes:
    return f"{MARK}={ident}\0".encode()


def _not_started(why: NotStarted, text: bytes) -> Observation:
    return Observation(
        exit_code=why.code,
        stderr=text,
        fault=why.fault,
        inside_ns=0,
        cpu_ns=0,
        stdout_bytes=0,
        stderr_bytes=len(text),
    )
