"""The bare process on the real system: what it leaves, what it finds again, what it refuses."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from excise import Action, Handle, InputError, Limits, Repo, SandboxGone, Session, Spec
from excise.substrates.local import Local, open_substrate

OWNER = """
import asyncio, sys
from pathlib import Path
from excise import Action, Local, Session

async def main():
    async with Session(Local(Path(sys.argv[1]))) as s:
        await s.act(Action.shell("(setsid sleep 1234 &); sleep 1234 & echo started"))
        print(s.box, flush=True)
        await s.act(Action.shell("setsid sleep 1234 & sleep 1234", timeout_s=None))

asyncio.run(main())
"""


@pytest.fixture
def local(tmp_path):
    return Local(tmp_path / "state")


def alive(mark):
    """The processes of any user that still carry the mark, without the dead that nobody has reaped."""
    found = []
    for entry in Path("/proc").iterdir():
        with contextlib.suppress(OSError):
            if entry.name.isdigit() and mark.encode() in (entry / "environ").read_bytes():
                found.append(entry.name)
    return found


def open_files():
    return sorted(p.name for p in Path("/proc/self/fd").iterdir())


def until(true):
    for _ in range(500):
        if true():
            return
        time.sleep(0.02)
    pytest.fail("waited in vain")


def test_after_kill_9_of_the_owner_a_sweep_leaves_no_process_and_no_file(local, tmp_path):
    state = tmp_path / "state"
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(state)], stdout=subprocess.PIPE, text=True
    )
    box = owner.stdout.readline().strip()
    until(lambda: len(alive(box)) >= 4)
    assert asyncio.run(local.sweep()) == 0  # its owner lives
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()
    assert alive(box)
    assert asyncio.run(local.sweep()) == 1
    assert alive(box) == []
    assert list(state.iterdir()) == []


def test_a_sweep_leaves_alone_what_it_does_not_know(local, tmp_path):
    stranger = tmp_path / "state" / "local-notes"
    stranger.mkdir(parents=True)
    assert asyncio.run(local.sweep()) == 0
    assert stranger.exists()


def test_destroy_kills_what_left_its_parents_and_sessions(local):
    async def scenario():
        async with Session(local) as s:
            await s.act(Action.shell("(setsid sleep 1234 &); nohup sleep 1234 & sleep 1234 &"))
            until(lambda: len(alive(s.box)) == 3)  # a process has no environment while it execs
            return s.box

    assert alive(asyncio.run(scenario())) == []


def test_a_background_server_lives_on_and_may_keep_printing(local):
    async def scenario():
        async with Session(local) as s:
            loop = "while :; do echo noise; echo x >> alive; sleep 0.02; done & echo up"
            assert b"up" in (await s.act(Action.shell(loop))).stdout.split()
            grows = "a=$(wc -c <alive); sleep 0.3; [ $(wc -c <alive) -gt $a ] && echo grows"
            await asyncio.sleep(0.1)
            assert (await s.act(Action.shell(grows))).stdout == b"grows\n"

    asyncio.run(scenario())


def test_a_time_out_spares_what_earlier_actions_started(local):
    async def scenario():
        async with Session(local) as s:
            await s.act(Action.shell("sleep 1234 & echo $! > pid"))
            assert (await s.act(Action.shell("sleep 1234", timeout_s=0.2))).timed_out
            assert (await s.act(Action.shell("kill -0 $(cat pid)"))).exit_code == 0

    asyncio.run(scenario())


def test_no_descriptor_is_left_open(local):
    async def scenario():
        async with Session(local) as s:
            before = open_files()
            for action in (
                Action(("true",)),
                Action(("nonesuch",)),
                Action(("cat",), stdin=b"x" * 100_000),
                Action.shell("sleep 1234", timeout_s=0.05),
            ):
                await s.act(action)
            assert open_files() == before

    asyncio.run(scenario())


def test_a_handle_works_in_another_process_that_knows_the_state(local, tmp_path):
    async def scenario():
        box = await local.create(Spec(env={"KEPT": "yes"}))
        other = Local(tmp_path / "state")
        seen = await other.run(box, Action.shell("echo $KEPT > file; cat file"))
        await other.destroy(box)
        with pytest.raises(SandboxGone):
            await local.run(box, Action(("true",)))
        return seen.stdout

    assert asyncio.run(scenario()) == b"yes\n"


def test_what_a_command_has_locked_away_from_itself_is_removed(local, tmp_path):
    async def scenario():
        async with Session(local) as s:
            await s.act(Action.shell("mkdir -p a/b && touch a/b/c && chmod 000 a/b a"))

    asyncio.run(scenario())
    assert list((tmp_path / "state").iterdir()) == []


def test_the_repository_is_copied_in_and_comes_back_with_a_reset(local, tmp_path):
    source = tmp_path / "checkout"
    (source / "src").mkdir(parents=True)
    (source / "src" / "file").write_text("as committed\n")
    spec = Spec(repo=Repo(str(source), "0" * 40, "repo/deep"))

    async def scenario():
        async with Session(local, spec) as s:
            await s.act(Action.shell("echo changed > repo/deep/src/file"))
            await local.reset(s.box)
            return (await s.act(Action(("cat", "repo/deep/src/file")))).stdout

    assert asyncio.run(scenario()) == b"as committed\n"
    assert (source / "src" / "file").read_text() == "as committed\n"


def test_the_environment_is_clean(local, monkeypatch):
    monkeypatch.setenv("HARNESS_SECRET", "1")

    async def scenario():
        async with Session(local) as s:
            return (await s.act(Action(("env",)))).stdout.decode()

    names = {line.partition("=")[0] for line in asyncio.run(scenario()).splitlines()}
    assert names == {"PATH", "HOME", "TMPDIR", "LANG", "EXCISE_SANDBOX"}


def test_the_cpuset_is_what_a_command_runs_on(local):
    cpu = min(os.sched_getaffinity(0))
    spec = Spec(limits=Limits(cpuset=(cpu,)))

    async def scenario():
        async with Session(local, spec) as s:
            return (await s.act(Action.shell("grep Cpus_allowed_list /proc/self/status"))).stdout

    assert asyncio.run(scenario()).split()[1] == str(cpu).encode()


@pytest.mark.parametrize(
    "spec",
    [
        Spec(image="debian"),
        Spec(user="nobody"),
        Spec(limits=Limits(cpuset=(4096,))),
        Spec(repo=Repo("/", "0", "../outside")),
        Spec(repo=Repo("/", "0", "/absolute")),
        Spec(repo=Repo("/no/such/checkout", "0")),
    ],
)
def test_what_cannot_be_is_refused_and_leaves_nothing(local, tmp_path, spec):
    with pytest.raises(InputError):
        asyncio.run(local.create(spec))
    assert not (tmp_path / "state").exists()


@pytest.mark.parametrize(
    "handle", ["", "..", "local-1-2-../..", "local-1-2-zz/../../x", "docker-1"]
)
def test_a_handle_that_points_elsewhere_removes_nothing(local, tmp_path, handle):
    (tmp_path / "state").mkdir()
    (tmp_path / "kept").touch()
    with pytest.raises(SandboxGone):
        asyncio.run(local.destroy(Handle(handle)))
    assert (tmp_path / "kept").exists()


def test_the_state_directory_is_an_option(tmp_path):
    local = open_substrate(state=str(tmp_path / "here"))

    async def scenario():
        async with Session(local) as s:
            assert (tmp_path / "here" / s.box / "work").is_dir()

    asyncio.run(scenario())
