"""A pool over real processes: what one rollout leaves behind never meets the next, and a killed owner leaves nothing."""

from __future__ import annotations

import asyncio
import shutil
import signal
import subprocess
import sys
from pathlib import Path

from excise import Action, Local, Session, Spec
from excise.pools.counts import Got
from excise.pools.fitness import Trust
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled

DIRT = """
mkdir -p deep/er ~/.cache/x; echo secret > deep/er/file; echo secret > ~/.netrc; chmod 0 deep
echo secret > "$TMPDIR/left"; mkfifo pipe; ln -s / root
(setsid sleep 1000 &) ; setsid sleep 1000 & exec 9> held; echo done
"""
LOOKS = 'find . "$HOME" "$TMPDIR" -mindepth 1 | LC_ALL=C sort'

OWNER = """
import asyncio, sys
from pathlib import Path
from excise import Action, Budget, Local, Rules, Session, Spec, pooled

async def main():
    async with pooled(Local(Path(sys.argv[1])), Rules(budget=Budget(4))) as pool:
        pool.pin(Spec(), 3)
        async with Session(pool) as s:
            await s.act(Action.shell("(setsid sleep 1234 &); echo started"))
            while pool.status()["idle"] < 3:
                await asyncio.sleep(0.01)
            print("ready", flush=True)
            await s.act(Action.shell("sleep 1234", timeout_s=None))

asyncio.run(main())
"""


def test_a_hundred_dirty_rollouts_on_three_sandboxes_each_find_a_clean_one(tmp_path):
    async def rollout(pool):
        async with Session(pool) as session:
            found = await session.act(Action.shell(LOOKS))
            await session.act(Action.shell(DIRT))
            return found.text, pool.got(session.box).got

    async def trial():
        async with pooled(Local(tmp_path), Rules(budget=Budget(3), ahead=False)) as pool:
            seen = await asyncio.gather(*(rollout(pool) for _ in range(100)))
            return seen, pool.counts.made, pool.counts.reset, pool.counts.acquired[Got.EXACT]

    seen, made, reset, exact = asyncio.run(trial())
    assert {text for text, _ in seen} == {""}
    assert made == 3
    assert exact >= 97
    assert reset >= 97
    assert list(tmp_path.iterdir()) == []


def test_a_sandbox_that_vanished_while_idle_is_never_handed_out(tmp_path):
    async def trial():
        rules = Rules(ahead=False, trust=Trust(proof_s=0))
        async with pooled(Local(tmp_path), rules) as pool:
            box = await pool.create(Spec())
            await pool.destroy(box)
            while pool.status()["idle"] == 0:  # noqa: ASYNC110 - looked at from outside, as users do
                await asyncio.sleep(0.01)
            [directory] = tmp_path.iterdir()
            shutil.rmtree(directory)
            async with Session(pool) as session:
                said = await session.act(Action.shell("echo here"))
                return said.text, pool.counts.doubted, pool.got(session.box).attempts

    assert asyncio.run(trial()) == ("here\n", 1, 2)


def test_after_a_kill_of_its_owner_one_sweep_removes_idle_and_held(tmp_path):
    owner = subprocess.Popen(
        [sys.executable, "-c", OWNER, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    try:
        assert owner.stdout.readline() == "ready\n"
    finally:
        owner.send_signal(signal.SIGKILL)
        owner.wait()
        owner.stdout.close()
    boxes = [Path(entry).name for entry in tmp_path.iterdir()]
    assert len(boxes) >= 4

    async def sweep():
        async with pooled(Local(tmp_path)) as pool:
            return await pool.sweep()

    assert asyncio.run(sweep()) == len(boxes)
    assert list(tmp_path.iterdir()) == []


def test_cancelling_rollouts_at_any_moment_leaves_no_sandbox(tmp_path):
    async def rollout(pool):
        async with Session(pool) as session:
            await session.act(Action.shell("setsid sleep 1000 & sleep 1000", timeout_s=None))

    async def trial():
        async with pooled(Local(tmp_path), Rules(budget=Budget(4))) as pool:
            tasks = [asyncio.create_task(rollout(pool)) for _ in range(12)]
            for i, task in enumerate(tasks):
                await asyncio.sleep(0.003 * i)
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            status = pool.status()
            return status["held"], status["waiting"]

    assert asyncio.run(trial()) == (0, 0)
    assert list(tmp_path.iterdir()) == []
