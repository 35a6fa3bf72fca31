"""What rollouts leave behind: each kind is seen by the proof while it is there, and is gone after a reset.

EXCISE_CANARIES=5000 has so many rollouts share three jails; without it there are fewer, so that CI has time for others.
"""

from __future__ import annotations

import asyncio
import os
import random
import tarfile

import pytest

from excise.layers.host import build_rootfs
from excise.pools.counts import Got
from excise.pools.fitness import Trust
from excise.pools.rules import Rules
from excise.pools.size import Budget
from excise.pools.through import pooled
from excise.session import Session
from excise.types import Action, Limits, Spec

CANARIES = int(os.environ.get("EXCISE_CANARIES", "300"))
PYTEST = "/opt/environment/bin/python -m compileall -q -f repo; mkdir -p repo/.pytest_cache/v"

FILES = {
    "bytecode": "printf 'x = 1\\n' > repo/m.py; python3 -c 'import sys; sys.path.insert(0, \"repo\"); import m'",
    "caches": "mkdir -p ~/.cache/pip repo/.pytest_cache/v .mypy_cache; echo x > ~/.cache/pip/x",
    "hypothesis": "mkdir -p repo/.hypothesis/examples; echo x > repo/.hypothesis/examples/x",
    "changed sources": "echo changed >> repo/file",
    "same size, same time": "touch -r repo/file t; printf '9\\n' > repo/file; touch -r t repo/file; rm t",
    "git state": "git -C repo -c user.name=x -c user.email=y commit -qm x --allow-empty; git -C repo stash list",
    "permissions": "chmod 777 repo/file; chmod 0 /etc",
    "owners": "chown nobody repo/file /home",
    "set-user-id": "cp /bin/true /tmp/su; chmod 4755 /tmp/su",
    "deleted system files": "rm -f /etc/passwd /etc/hosts; rm -rf /etc/ssl",
    "replaced system files": "printf 'evil\\n' > /etc/passwd; ln -sf /tmp/evil /etc/localtime",
    "a moved folder": "mv /home /homes; mkdir /home",
    "replaced environment": "rm -f /opt/environment/bin/alpha; echo 'import os' > /opt/environment/lib/evil.pth",
    "flags": "echo x > /tmp/kept; chattr +d /tmp/kept; chattr +i /tmp/kept; true",
    "attributes": 'python3 -c \'import os; open("/tmp/a", "w"); os.setxattr("/tmp/a", "user.x", b"y")\' || touch /tmp/a',
    "links and pipes": "mkfifo /tmp/pipe; ln -s / /tmp/root; ln repo/file repo/hard; mkdir -p a/b/c/d",
    "names": "touch $'new\\nline' $'\\xff\\xfe' -- --help ' '",
    "many": "mkdir m; cd m; seq 2000 | xargs touch",
    "large": "head -c 20M /dev/zero > /tmp/large",
    "shared memory": "echo x > /dev/shm/left",
    "numbered memory": "python3 - <<'E'\nimport ctypes; ctypes.CDLL(None).shmget(7, 100, 0o1600)\nE",
    "startup files": "echo 'export EVIL=1' >> ~/.bashrc; echo 'echo evil' > ~/.profile; echo x > ~/.gitconfig",
}
PROCESSES = {
    "background": "setsid sleep 1000 >/dev/null 2>&1 &",
    "ignoring signals": "(trap '' TERM HUP INT; while :; do sleep 1; done) >/dev/null 2>&1 &",
    "locks": "flock /tmp/lock sleep 1000 >/dev/null 2>&1 & until [ -e /tmp/lock ]; do sleep 0.01; done",
    "held open": "exec 9> /tmp/held; rm /tmp/held; sleep 1000 <&9 >/dev/null 2>&1 &",
    "servers": "python3 -m http.server 8000 >/dev/null 2>&1 & true",
    "stopped": "sleep 1000 >/dev/null 2>&1 & kill -STOP $!",
}


@pytest.mark.timeout(180)
@pytest.mark.parametrize("kind", [*FILES, *PROCESSES])
def test_each_kind_of_dirt_is_seen_and_gone_after_a_reset(inside, world, kind):
    dirt = (FILES | PROCESSES)[kind]

    async def trial(jail):
        box = await jail.create(world.spec())
        clean = await jail.prove(box)
        await jail.run(box, Action.shell(dirt))
        dirty = await jail.prove(box)
        await jail.reset(box)
        return clean, dirty, await jail.prove(box)

    clean, dirty, again = inside(trial)
    assert clean.pristine
    assert not dirty.pristine
    assert bool(dirty.files) >= (kind in FILES)
    assert bool(dirty.processes) >= (kind in PROCESSES)
    assert again.pristine
    assert (again.tree, dirty.tree == clean.tree) == (
        clean.tree,
        kind in PROCESSES and not dirty.files,
    )


@pytest.mark.timeout(180)
def test_system_programs_of_an_image_that_were_deleted_or_replaced_are_back(inside, tmp_path):
    built = build_rootfs(out=tmp_path / "image")
    breaking = "rm -f /usr/bin/sort /bin/ls; cp /bin/false /usr/bin/env; rm -rf /usr/lib/python3*"
    checks = "sort </dev/null && ls / >/dev/null && env true && echo works"

    async def trial(jail):
        await jail.import_image(built.reference, built.archive)
        box = await jail.create(Spec(image=built.reference))
        await jail.run(box, Action.shell(breaking))
        dirty = await jail.prove(box)
        broken = await jail.run(box, Action.shell(checks))
        await jail.reset(box)
        works = await jail.run(box, Action.shell(checks))
        return broken.ok, works.text, dirty.pristine, (await jail.prove(box)).pristine

    with tarfile.open(built.archive) as archive:
        assert "usr/bin/sort" in archive.getnames()
    assert inside(trial, tmp_path / "store") == (False, "works\n", False, True)


@pytest.mark.timeout(180)
def test_bounds_and_variables_are_part_of_the_proof(inside):
    async def trial(jail):
        box = await jail.create(Spec())
        await jail.prove(box)
        sandbox = jail._boxes[box]
        usage = jail._yard.spawner.usage(sandbox.box.kit)
        folder = usage.folders.get("pids") or usage.folders["unified"]
        (folder / "pids.max").write_text("max")
        sandbox.habits = jail._yard.habits(Spec(env={"LEFT": "behind"}), sandbox.origin)
        env = await jail.prove(box)
        sandbox.habits = jail._yard.habits(Spec(), sandbox.origin)
        return env, await jail.prove(box)

    env, limits = inside(trial)
    assert env.limits == limits.limits == ("processes 512", "processes max")
    assert (env.env, limits.env) == (("LEFT",), ())


@pytest.mark.timeout(1200 + CANARIES)
def test_no_canary_of_any_rollout_is_ever_met_by_another(inside, world):
    """Every rollout looks for canaries in all places, leaves its own in some, and gives its jail back."""
    kinds = list((FILES | PROCESSES).values())
    sings = (
        "cat /tmp/canary* ~/canary /work/canary repo/canary /dev/shm/canary /etc/canary 2>/dev/null; "
        "pgrep -l canary; env | grep -i canary; git -C repo status --short"
    )
    drawn = random.Random(CANARIES)

    def leave(i):
        places = drawn.sample(["/tmp", "~", "/work", "repo", "/dev/shm", "/etc"], 3)
        marks = "".join(f"echo canary{i} > {place}/canary; " for place in places)
        return f"{marks}(exec -a canary{i} sleep 1000 >/dev/null 2>&1 &) ; {drawn.choice(kinds)}"

    async def rollout(pool, i):
        spec = world.spec(env={f"CANARY_{i}": "x"} if i % 5 == 0 else {}, limits=LIMITS[i % 2])
        async with Session(pool, spec) as session:
            seen = await session.act(Action.shell(sings))
            await session.act(Action.shell(leave(i)))
            mine = f"CANARY_{i}=x\n" if i % 5 == 0 else ""
            return seen.text.removeprefix(mine), pool.got(session.box).got

    async def trial(jail):
        rules = Rules(budget=Budget(3), ahead=False, trust=Trust(uses=CANARIES))
        async with pooled(jail, rules) as pool:
            seen = []
            for start in range(0, CANARIES, 50):
                some = range(start, min(start + 50, CANARIES))
                seen += await asyncio.gather(*(rollout(pool, i) for i in some))
            return seen, pool.counts, pool.unfit()

    seen, counts, unfit = inside(trial)
    assert {text for text, _ in seen} == {""}
    assert unfit == ()
    assert counts.made <= 6
    assert counts.reset >= CANARIES - 6
    assert sum(got is Got.EXACT for _, got in seen) >= CANARIES - 6


LIMITS = (Limits(disk_bytes=256 << 20), Limits(disk_bytes=256 << 20, cpus=0.9, pids=200))
