"""The real agent, placed into this machine, and both clients on it: a test here holds for each of them."""

import asyncio
import inspect
import os
import signal
import socket
import subprocess
import time
from contextlib import contextmanager
from pathlib import Path

import pytest

from excise.agent.async_connection import AsyncConnection
from excise.agent.async_running import AsyncRunning, AsyncShell
from excise.agent.binary import agent_binary
from excise.agent.connection import Connection
from excise.agent.messages import pack_env
from excise.errors import InputError

ENV = pack_env({"PATH": "/usr/sbin:/usr/bin:/sbin:/bin", "LC_ALL": "C"})


@pytest.fixture(scope="session")
def program():
    """The native program, or the reason to skip."""
    try:
        return agent_binary()
    except InputError as error:
        if "agent" in os.environ.get("EXCISE_REQUIRE", "").split(","):
            pytest.fail(str(error), pytrace=False)
        pytest.skip(str(error))


class Agent:
    """One process of it, and our end of its socket."""

    def __init__(self, program):
        self.sock, theirs = socket.socketpair()
        with theirs:
            self.process = subprocess.Popen(
                [program, "agent", "--stdio"], stdin=theirs, stdout=theirs, stderr=subprocess.PIPE
            )
        self.pid = self.process.pid

    def end(self):
        """It goes when its client goes, by itself, and without a complaint."""
        self.sock.close()
        try:
            _, complaints = self.process.communicate(timeout=20)
        finally:
            self.process.kill()
        assert complaints == b""

    @contextmanager
    def stopped(self):
        """Hung, as far as anybody can tell."""
        self.process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self.process.send_signal(signal.SIGCONT)


@pytest.fixture
def agent(program):
    agent = Agent(program)
    yield agent
    agent.end()


class Blocking:
    """What an asyncio object offers, for tests that are written for both."""

    def __init__(self, run, inner):
        self._run = run
        self._inner = inner

    def __getattr__(self, name):
        found = getattr(self._inner, name)
        if not inspect.iscoroutinefunction(found):
            return found

        def call(*args, **kwargs):
            got = self._run(found(*args, **kwargs))
            if isinstance(got, AsyncRunning | AsyncShell):
                return Blocking(self._run, got)
            return got

        return call

    def __enter__(self):
        self._run(self._inner.__aenter__())
        return self

    def __exit__(self, *exc):
        self._run(self._inner.__aexit__(*exc))

    def __iter__(self):
        return self

    def __next__(self):
        try:
            return self._run(anext(self._inner))
        except StopAsyncIteration:
            raise StopIteration from None


@pytest.fixture(params=["blocking", "asyncio"])
def box(request, agent):
    """A connection to a fresh agent."""
    if request.param == "blocking":
        with Connection(agent.sock) as connection:
            yield connection
        return
    with asyncio.Runner() as runner:

        async def step(awaitable):
            return await awaitable

        def run(awaitable):
            return runner.run(step(awaitable))

        with Blocking(run, run(AsyncConnection.over(agent.sock))) as connection:
            yield connection


def holding(marker):
    """Processes that have `marker` among their arguments, and are not merely waiting to be reaped."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            words = (entry / "cmdline").read_bytes().split(b"\0")
        except (FileNotFoundError, ProcessLookupError):
            continue
        if marker.encode() in words:
            found.append(int(entry.name))
    return found


def until(wanted, limit_s=20.0):
    """Look again until it is so: what another process does takes as long as it takes."""
    for _ in range(int(limit_s / 0.02)):
        if found := wanted():
            return found
        time.sleep(0.02)
    pytest.fail("it did not come to be")


@pytest.fixture
def marker():
    """An argument for `sleep` that nobody else uses; nothing that has it may be left."""
    name = f"{10_000 + os.getpid() % 10_000}.{int.from_bytes(os.urandom(4), 'big')}"
    yield name
    left = holding(name)
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left
