"""Pools of real jails when things break: a typed error or a clean fallback, and nobody gets a wrong environment."""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from excise.errors import InputError, SandboxGone, SubstrateError
from excise.jail import sweep
from excise.layers.host import build_rootfs
from excise.pools.counts import Got
from excise.pools.failures import Retries
from excise.pools.fitness import Trust
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.session import Session
from excise.types import Action, Deps, Egress, Spec

LAZY = Rules(budget=Budget(4), ahead=False)
DOUBTING = Rules(budget=Budget(4), ahead=False, trust=Trust(proof_s=0))
NO_REST = Rules(budget=Budget(4), ahead=False, trust=Trust(proof_s=3600))


async def idle(pool, count=1):
    """Wait until so many idle, and nothing else goes on."""
    while pool.status()["idle"] < count or pool.status()["leaving"]:  # noqa: ASYNC110
        await asyncio.sleep(0.005)


def pid_of(jail, pool, box):
    return jail._boxes[pool.lease(box, None).box.handle].box.pid


def test_a_worker_that_dies_while_held_is_a_gone_sandbox_and_the_next_rollout_gets_another(inside):
    async def trial(jail):
        async with pooled(jail, LAZY) as pool:
            box = await pool.create(Spec())
            os.kill(pid_of(jail, pool, box), signal.SIGKILL)
            with pytest.raises(SandboxGone):
                await pool.run(box, Action.shell("sleep 5"))
            await pool.destroy(box)
            async with Session(pool) as session:
                said = await session.act(Action.shell("echo works"))
                return said.text, pool.got(session.box).got, pool.counts.reset

    assert inside(trial) == ("works\n", Got.MISS, 0)


def test_a_worker_that_died_while_idle_is_handed_to_nobody(inside):
    async def trial(jail):
        async with pooled(jail, NO_REST) as pool:
            await pool.destroy(await pool.create(Spec()))
            await idle(pool)
            [inner] = jail._boxes
            os.kill(jail._boxes[inner].box.pid, signal.SIGKILL)
            while jail._boxes[inner].agent.alive:  # noqa: ASYNC110
                await asyncio.sleep(0.001)
            async with Session(pool) as session:
                said = await session.act(Action.shell("echo works"))
                return said.text, pool.got(session.box).got, pool.unfit()

    text, got, [unfit] = inside(trial)
    assert (text, got) == ("works\n", Got.MISS)
    assert "has ended" in unfit.why


def test_one_that_is_not_what_it_should_be_is_quarantined_with_a_report(inside):
    async def trial(jail):
        async with pooled(jail, DOUBTING) as pool:
            await pool.destroy(await pool.create(Spec()))
            await idle(pool)
            [inner] = jail._boxes
            await jail.write(inner, "/etc/passwd", b"evil:x:0:0::/:/bin/sh\n")
            async with Session(pool) as session:
                seen = await session.act(Action.shell("grep -c evil /etc/passwd"))
                got = pool.got(session.box)
            return (
                seen.text,
                got.got,
                got.attempts,
                inner in jail._boxes,
                pool.unfit(),
                pool.metrics(),
            )

    text, got, attempts, lives, [unfit], metrics = inside(trial)
    assert (text, got, attempts, lives) == ("0\n", Got.MISS, 2, False)
    assert "files: /etc, /etc/passwd" in unfit.why
    assert unfit.stage.startswith("base ")
    assert 'excise_pool_doubted_total{pool="jail+pool"} 1' in metrics


def test_when_the_spawner_dies_all_are_gone_and_the_pool_goes_on(inside):
    async def trial(jail):
        async with pooled(jail, LAZY) as pool:
            held = await pool.create(Spec())
            await pool.destroy(await pool.create(Spec()))
            await idle(pool)
            jail._yard.spawner.process.kill()
            jail._yard.spawner.process.wait()
            with pytest.raises(SubstrateError):
                await pool.run(held, Action.shell("true"))
            await pool.destroy(held)
            said = []
            for _ in range(3):
                async with Session(pool) as session:
                    said.append((await session.act(Action.shell("echo works"))).text)
            return said

    assert inside(trial) == ["works\n"] * 3


@pytest.mark.timeout(120)
def test_a_recipe_that_fails_to_build_is_tried_once_told_to_all_and_blocks_nobody(inside, tmp_path):
    marks = tmp_path / "marks"
    broken = tmp_path / "python"
    broken.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo broken && exit\n'
        f"echo tried >> {marks}; echo 'error: no such module' >&2; exit 1\n"
    )
    broken.chmod(0o755)
    wanted = Spec(deps=(Deps(("alpha==1.0",), python=str(broken)),))

    async def trial(jail):
        rules = Rules(budget=Budget(8), retries=Retries(poison_s=600.0))
        async with pooled(jail, rules) as pool:
            pool.expect(wanted, 4)
            errors = await asyncio.gather(
                *(pool.create(wanted) for _ in range(20)), return_exceptions=True
            )
            async with Session(pool) as session:
                works = await session.act(Action.shell("echo works"))
            await asyncio.sleep(2.5)
            with pytest.raises(SubstrateError) as later:
                await pool.create(wanted)
            return errors, works.text, later.value, pool.explain(wanted)

    errors, works, later, explained = inside(trial, tmp_path / "store")
    assert works == "works\n"
    assert marks.read_text() == "tried\n"
    assert {str(error) for error in [*errors, later]} == {str(errors[0])}
    assert "error: no such module" in str(later)
    assert "no such module" in Path(str(later).rpartition("its log: ")[2]).read_text()
    assert any("refused for now" in line for line in explained)


def test_an_image_that_is_not_here_is_said_so_and_tried_again_when_it_may_be(inside, tmp_path):
    async def trial(jail):
        async with pooled(jail, LAZY) as pool:
            for _ in range(3):
                with pytest.raises(InputError, match="excise image pull nobody/knows"):
                    await pool.create(Spec(image="nobody/knows"))
            return pool.counts.failures.total()

    assert inside(trial, tmp_path / "store") == 1


@pytest.mark.timeout(180)
def test_an_image_that_vanishes_under_idle_jails_gives_nobody_a_broken_one(inside, tmp_path):
    built = build_rootfs(out=tmp_path / "image")
    wanted = Spec(image=built.reference)

    async def trial(jail):
        await jail.import_image(built.reference, built.archive)
        async with pooled(jail, DOUBTING) as pool:
            box = await pool.create(wanted)
            [layer] = jail._boxes[pool.lease(box, None).box.handle].origin.ground.image
            with pytest.raises(InputError, match="in use"):
                jail._yard.store.remove(layer)
            await pool.destroy(box)
            await idle(pool)
            shutil.rmtree(layer.path.parent)
            with pytest.raises(InputError, match="excise image pull"):
                await pool.create(wanted)
            async with Session(pool) as session:
                return (await session.act(Action.shell("echo works"))).text

    assert inside(trial, tmp_path / "store") == "works\n"


def test_egress_that_cannot_be_had_is_refused_and_the_jail_serves_the_next(inside, monkeypatch):
    monkeypatch.setattr("excise.jail.route.shutil.which", lambda *a, **k: None)

    async def trial(jail):
        async with pooled(jail, LAZY) as pool:
            with pytest.raises(SubstrateError, match="egress needs tools"):
                await pool.create(Spec(egress=Egress.FULL))
            async with Session(pool) as session:
                return (await session.act(Action.shell("echo works"))).text

    assert inside(trial) == "works\n"


OWNER = """
import asyncio, sys
from pathlib import Path
from excise import Action, Budget, Rules, Session, Spec, pooled
from excise.jail.substrate import Jail

async def main():
    jail = Jail(Path(sys.argv[1]), leases=Path(sys.argv[2]))
    async with pooled(jail, Rules(budget=Budget(4))) as pool:
        pool.pin(Spec(), 3)
        async with Session(pool) as s:
            while pool.status()["idle"] < 3:
                await asyncio.sleep(0.01)
            print("ready", flush=True)
            await s.act(Action.shell("sleep 1234", timeout_s=None))

asyncio.run(main())
"""


@pytest.mark.usefixtures("able")
def test_after_a_kill_of_its_owner_nothing_is_left_of_idle_and_held_jails(tmp_path):
    leases = tmp_path / "leases"
    words = [sys.executable, "-c", OWNER, str(tmp_path / "store"), str(leases)]
    with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as owner:
        assert owner.stdout.readline() == "ready\n"
        owner.send_signal(signal.SIGKILL)
    while list(leases.iterdir()):  # their own burial may still be at it
        sweep.sweep(leases)
        time.sleep(0.01)
