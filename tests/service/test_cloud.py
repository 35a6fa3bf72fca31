"""The cloud's verbs on real jails and on bare processes, as a door calls them."""

from __future__ import annotations

import asyncio
import json

import msgspec
import pytest

from excise.errors import (
    InputError,
    LifecycleError,
    Overloaded,
    Phase,
    SandboxGone,
    SubstrateError,
)
from excise.measure.record import TrialRecord
from excise.measure.store import read_study
from excise.report.summary import summarise
from excise.service.as_study import write
from excise.service.errors import Conflict, Unsupported
from excise.service.sandbox import State, Wanted
from excise.service.taxes import PARTS
from excise.service.templates import Do, Step, Template
from excise.substrates.base import Terminal
from excise.substrates.fake import Fake, Latencies
from excise.types import Action


def run(work):
    return asyncio.run(work)


@pytest.mark.parametrize("kind", ["jail+pool", "jail", "local"])
def test_a_sandbox_runs_commands_and_is_gone_after_its_end(serve, kind):
    async def work():
        async with serve(kind) as served:
            cloud = served.cloud
            box = await cloud.create("alice", Wanted(env={"A": "1"}, labels={"x": "y"}))
            found = await cloud.run(box, Action.shell("echo $A; exit 3"))
            assert (found.exit_code, found.stdout) == (3, b"1\n")
            assert cloud.find("alice", box.id) is box
            assert [b.id for b in cloud.page("alice", labels={"x": "y"}).items] == [box.id]
            assert not cloud.page("alice", labels={"x": "z"}).items
            await cloud.destroy(box)
            await cloud.destroy(box)
            with pytest.raises(SandboxGone, match="destroyed"):
                cloud.find("alice", box.id)
            with pytest.raises(SandboxGone):
                await cloud.run(box, Action(("true",)))

    run(work())


def test_nobody_finds_what_is_somebody_elses(serve):
    async def work():
        async with serve("fake") as served:
            cloud = served.cloud
            box = await cloud.create("alice", Wanted(name="mine"))
            for name in (box.id, "mine"):
                with pytest.raises(SandboxGone, match="there is no sandbox"):
                    cloud.find("bob", name)
            assert not cloud.page("bob").items
            await cloud.destroy(box)
            with pytest.raises(SandboxGone, match="there is no sandbox"):
                cloud.find("bob", box.id)

    run(work())


def test_what_is_asked_for_twice_under_one_key_is_made_once(serve):
    async def work():
        async with serve("fake") as served:
            cloud = served.cloud
            wanted = Wanted(labels={"a": "b"})
            made = await asyncio.gather(*(cloud.create("alice", wanted, key="k") for _ in range(5)))
            assert len({each.id for each in made}) == 1
            other = await cloud.create("bob", wanted, key="k")
            assert other.id != made[0].id
            with pytest.raises(Conflict):
                await cloud.create("alice", Wanted(labels={"a": "c"}), key="k")

    run(work())


@pytest.mark.parametrize("kind", ["jail+pool", "local"])
def test_a_process_outlives_its_followers_and_tells_all_of_them(serve, kind):
    async def work():
        async with serve(kind) as served:
            cloud = served.cloud
            box = await cloud.create("alice", Wanted())
            script = "for i in 1 2 3 4 5; do echo $i; sleep 0.05; done; echo err >&2; exit 7"
            process = await cloud.start(box, Action.shell(script), tag="t")
            async for _ in process.follow():
                break
            again = [piece async for piece in box.processes.find(tag="t").follow()]
            assert b"".join(p.data for p in again if p.stream == 1) == b"1\n2\n3\n4\n5\n"
            assert b"".join(p.data for p in again if p.stream == 2) == b"err\n"
            assert (await process.wait()).exit_code == 7
            rest = [piece async for piece in process.follow(again[1].at)] if len(again) > 2 else []
            assert b"".join(p.data for p in rest).endswith(b"err\n") or not rest

    run(work())


def test_a_follower_that_was_announced_misses_nothing_and_an_unheard_process_goes_on(serve):
    async def work():
        async with serve("jail") as served:
            box = await served.cloud.create("alice", Wanted())
            much = Action.shell("head -c 5000000 /dev/zero; echo end >&2")
            process = await served.cloud.start(box, much, awaited=True)
            await asyncio.sleep(0.3)
            size = 0
            async for piece in process.follow():
                size += len(piece.data)
            assert size == 5_000_004
            unheard = await served.cloud.start(box, much)
            assert (await unheard.wait()).exit_code == 0
            late = [piece async for piece in unheard.follow()]
            assert late[0].stream == 0, "a gap is told"
            assert late[-1].data == b"end\n"

    run(work())


def test_processes_take_input_signals_and_terminals(serve):
    async def work():
        async with serve("jail") as served:
            box = await served.cloud.create("alice", Wanted())
            cat = await served.cloud.start(box, Action(("cat",)))
            await cat.write(b"in\n")
            await cat.end_of_input()
            assert b"".join([p.data async for p in cat.follow()]) == b"in\n"
            sleep = await served.cloud.start(box, Action(("sleep", "100"), timeout_s=None))
            await sleep.signal(15)
            assert (await sleep.wait()).exit_code == 143
            tty = await served.cloud.start(
                box, Action.shell("stty size"), terminal=Terminal(10, 20)
            )
            assert b"10 20" in b"".join([p.data async for p in tty.follow()])
            with pytest.raises(InputError):
                await cat.write(b"more")

    run(work())


def test_files_belong_to_whom_they_were_written_for(serve):
    async def work():
        async with serve("jail") as served:
            cloud = served.cloud
            box = await cloud.create("alice", Wanted())
            files = cloud.files(box)
            person = await files.add_person("user")
            assert person.home == "/home/user"
            await files.write("/home/user/a/b/c.txt", b"text", person=person)
            found = await cloud.run(
                box, Action.shell("stat -c %U /home/user/a /home/user/a/b/c.txt")
            )
            assert found.stdout == b"user\nuser\n"
            assert await files.read("/home/user/a/b/c.txt") == b"text"
            below = await files.walk("/home/user", depth=5)
            assert [each.path for each in below] == [
                "/home/user/a", "/home/user/a/b", "/home/user/a/b/c.txt",
            ]  # fmt: skip
            moved = await files.rename("/home/user/a/b/c.txt", "/home/user/new/d.txt")
            assert moved.size == 4
            await files.remove("/home/user/a")
            assert not await files.exists("/home/user/a")
            with pytest.raises(FileExistsError):
                await files.make_directory("/home/user/new")
            with pytest.raises(FileNotFoundError):
                await files.read("/home/user/none")
            with pytest.raises(InputError):
                await files.read("relative")

    run(work())


def test_without_operations_of_its_own_a_substrates_files_are_handled_by_commands(serve, tmp_path):
    async def work():
        async with serve("local") as served:
            box = await served.cloud.create("alice", Wanted())
            files = served.cloud.files(box)
            top = str(tmp_path / "place")
            await files.write(f"{top}/a/b.txt", b"text", mode=0o600)
            entry = await files.stat(f"{top}/a/b.txt")
            assert (entry.name, entry.size, entry.mode) == ("b.txt", 4, 0o600)
            assert [e.name for e in await files.entries(f"{top}/a")] == ["b.txt"]
            await files.rename(f"{top}/a/b.txt", f"{top}/c.txt")
            assert b"".join([part async for part in files.parts(f"{top}/c.txt")]) == b"text"
            with pytest.raises(FileNotFoundError):
                await files.stat(f"{top}/a/b.txt")
            with pytest.raises(NotADirectoryError):
                await files.entries(f"{top}/c.txt")
            with pytest.raises(FileExistsError):
                await files.make_directory(f"{top}/a")
            await files.remove(f"{top}/a")
            assert not await files.exists(f"{top}/a")

    run(work())


@pytest.mark.parametrize("kind", ["jail+pool", "jail"])
def test_pausing_stopping_snapshots_and_forks(serve, kind):
    async def work():
        async with serve(kind) as served:
            cloud = served.cloud
            box = await cloud.create("alice", Wanted())
            await cloud.run(box, Action.shell("echo kept > file"))
            await cloud.pause(box)
            with pytest.raises(LifecycleError):
                await cloud.run(box, Action(("true",)))
            await cloud.resume(box)
            await cloud.stop(box)
            assert box.state is State.STOPPED
            await cloud.resume(box)
            kept = await cloud.snapshot(box, "mine")
            (fork,) = await cloud.fork(box)
            made = await cloud.create("alice", Wanted(template="mine"))
            for each in (box, fork, made):
                assert (await cloud.run(each, Action.shell("cat file"))).stdout == b"kept\n"
            with pytest.raises(InputError):
                await cloud.create("bob", Wanted(template=kept.name))
            await cloud.templates.remove("alice", "mine")

    run(work())


def test_what_a_substrate_cannot_do_is_said_before_anything_is_done(serve):
    async def work():
        async with serve("fake") as served:
            box = await served.cloud.create("alice", Wanted())
            for verb in (served.cloud.pause, served.cloud.snapshot, served.cloud.fork):
                with pytest.raises(Unsupported):
                    await verb(box)
            assert box.state is State.RUNNING

    run(work())


@pytest.mark.parametrize("kind", ["jail+pool"])
def test_a_template_is_built_once_and_its_user_place_and_variables_hold(serve, kind):
    async def work():
        async with serve(kind) as served:
            cloud = served.cloud
            steps = (
                Step(Do.USER, ("user",)),
                Step(Do.WORKDIR, ("/app",)),
                Step(Do.ENV, ("GREETING", "hello")),
                Step(Do.RUN, ('echo "$GREETING $(id -un) $PWD" > made',)),
            )
            await cloud.templates.put(Template("app", "alice", steps=steps))
            boxes = await asyncio.gather(
                *(cloud.create("alice", Wanted(template="app")) for _ in range(3))
            )
            for box in boxes:
                found = await cloud.run(box, Action.shell("cat /app/made; echo $GREETING; id -un"))
                assert found.stdout == b"hello user /app\nhello\nuser\n"
            assert (boxes[0].user, boxes[0].workdir) == ("user", "/app")
            assert len({box.spec.image for box in boxes}) == 1

    run(work())


def test_deadlines_and_leases_are_kept(serve):
    async def work():
        async with serve("fake") as served:
            cloud = served.cloud
            short = await cloud.create("alice", Wanted(lifetime_s=0.05))
            idle = await cloud.create("alice", Wanted(idle_s=0.05))
            longer = await cloud.create("alice", Wanted(lifetime_s=0.05))
            cloud.extend(longer, 60)
            async with asyncio.timeout(20):
                while State.RUNNING in {short.state, idle.state}:  # noqa: ASYNC110
                    await asyncio.sleep(0.02)
            assert short.ended == "its deadline passed"
            assert "lease" in (idle.ended or "")
            assert longer.state is State.RUNNING

    run(work())


def test_a_creation_that_fails_is_a_rollout_that_failed_and_its_groups_loss(serve, tmp_path):
    def broken(phase: Phase, before: int) -> BaseException | None:
        dead = SubstrateError("no room", substrate="fake", phase=phase)
        return {Phase.CREATE: {1: dead}, Phase.READY: {1: dead}}.get(phase, {}).get(before)

    async def work():
        kept = []
        async with serve(Fake(Latencies(create_s=0.01, ready_s=0.01), fail=broken)) as served:
            cloud = served.cloud
            cloud.taxes.keep = kept.append
            fine = await cloud.create("alice", Wanted(labels={"group": "g"}))
            for phase in ("create", "ready"):
                with pytest.raises(SubstrateError, match="no room"):
                    await cloud.create("alice", Wanted(labels={"group": "g"}, door="e2b"))
                assert json.loads(kept[-1])["error"]["phase"] == phase
            cloud.draining = True
            with pytest.raises(Overloaded):
                await cloud.create("alice", Wanted())
            assert len(kept) == 2, "who is refused for now has lost nothing"
            await cloud.destroy(fine)
        told = [msgspec.json.decode(line, type=TrialRecord) for line in kept]
        assert [t.outcome for t in told] == ["substrate_error", "substrate_error", "ok"]
        assert {t.cell for t in told} == {"e2b/live:host", "native/live:host"}
        spent = cloud.taxes.spent_ns
        assert spent["failed"] == sum(t.marks["gone"] - t.marks["due"] for t in told[:2])
        assert spent["lost_groups"] == sum(t.marks["gone"] - t.marks["due"] for t in told)
        assert sum(spent[part] for part in PARTS) == spent["lost_groups"]
        assert [r.outcome for r in cloud.taxes.recent] == [t.outcome for t in told]
        assert write(tmp_path / "study", kept, "fake") == 3

    run(work())
    study = read_study(tmp_path / "study")
    failed = summarise(study.record, study.trials).failures
    assert sorted((f.phase, f.message) for f in failed) == [
        ("create", "SubstrateError: fake: create failed: no room"),
        ("ready", "SubstrateError: fake: ready failed: no room"),
    ]


def test_what_a_service_never_gives_is_refused_before_anything_is_made(serve):
    async def work():
        async with serve("fake") as served:
            with pytest.raises(InputError, match="lifetime"):
                await served.cloud.create("alice", Wanted(lifetime_s=-1))
            assert not served.cloud.substrate.boxes

    run(work())


def test_a_sandbox_whose_program_cannot_be_started_is_not_left_behind(serve):
    async def work():
        async with serve("fake") as served:
            cloud = served.cloud
            await cloud.templates.put(Template("t", "alice", start="sleep 9", ready="false"))

            async def gone(*_: object) -> None:
                raise SubstrateError("no", substrate="fake", phase=Phase.RUN)

            cloud.substrate.run = gone
            with pytest.raises(SubstrateError):
                await cloud.create("alice", Wanted(template="t"))
            assert len(cloud.census) == 0

    run(work())
