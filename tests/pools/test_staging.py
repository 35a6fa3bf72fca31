"""A real jail as what a pool stands on: every stage, taken further, and what belongs to one rollout set late."""

from __future__ import annotations

import asyncio
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from excise.errors import InputError, SandboxGone, SubstrateError
from excise.jail.route import availability
from excise.pools.abilities import Binds, Lays, Staged
from excise.pools.stage import Kind
from excise.types import MIB, Action, Deps, Egress, Limits, Repo, Spec

from .conftest import refuse

LOOK = "cat repo/file; command -v alpha; alpha"


async def says(jail, box, script, **more):
    seen = await jail.run(box, Action.shell(script, **more))
    return seen.text.split("\n")[:-1]


@pytest.mark.timeout(120)
def test_dependencies_and_repository_are_there_and_the_environment_comes_first_in_path(
    inside, world
):
    async def trial(jail):
        box = await jail.create(world.spec())
        return await says(jail, box, LOOK)

    prefix = "/opt/environment"
    assert inside(trial) == ["1", f"{prefix}/bin/alpha", f"told by {prefix}"]


@pytest.mark.timeout(120)
def test_a_stage_costs_what_its_layer_took_to_build_until_it_is_here(inside, world):
    async def trial(jail):
        before = jail.stages(world.spec(world.second))
        await jail.lay(world.spec(world.second), 4)
        return before, jail.stages(world.spec(world.second))

    before, after = inside(trial)
    assert [stage.kind for stage in before] == [Kind.BASE, Kind.DEPENDENCIES, Kind.REPO]
    assert before[1].price_s > 0
    assert [stage.price_s for stage in after] == [0, 0, 0]
    assert after[1].size_bytes > MIB
    again = inside(lambda jail: _stages(jail, world.spec(world.second)))
    assert again[1].price_s > 0.1
    assert again[1].size_bytes == after[1].size_bytes


async def _stages(jail, spec):
    return jail.stages(spec)


@pytest.mark.timeout(120)
@pytest.mark.parametrize("depth", [1, 2, 3])
def test_from_any_stage_a_jail_is_taken_to_the_whole_environment(inside, world, depth):
    async def trial(jail):
        box = await jail.create_at(world.spec(), depth)
        before = await says(
            jail, box, "ls repo /opt/environment/bin/alpha 2>/dev/null | sort; true"
        )
        await jail.write(box, "/tmp/left", b"x")
        await jail.advance(box, world.spec())
        return before, await says(jail, box, f"ls /tmp; {LOOK}"), (await jail.prove(box)).pristine

    before, after, pristine = inside(trial)
    there = [[], ["/opt/environment/bin/alpha"], ["/opt/environment/bin/alpha", "file", "repo:"]]
    assert sorted(filter(None, before)) == there[depth - 1]
    assert after[0] == "1"
    assert pristine


@pytest.mark.timeout(120)
def test_another_commit_takes_the_place_of_the_first_and_a_reset_leads_back_to_it(inside, world):
    async def trial(jail):
        box = await jail.create(world.spec(world.first))
        await jail.advance(box, world.spec(world.second))
        there = await says(jail, box, "cat repo/file; git -C repo rev-list --count --all")
        await says(jail, box, "echo changed > repo/file")
        await jail.reset(box)
        return there, await says(jail, box, "cat repo/file"), (await jail.prove(box)).pristine

    assert inside(trial) == (["2", "2"], ["2"], True)


@pytest.mark.timeout(120)
def test_a_jail_that_cannot_be_taken_further_stays_what_it_was(inside, world):
    nowhere = Repo(str(world.source), "f" * 40)

    async def trial(jail):
        box = await jail.create(world.spec())
        with pytest.raises(InputError, match="no commit"):
            await jail.advance(box, replace(world.spec(), repo=nowhere))
        return await says(jail, box, "cat repo/file"), (await jail.prove(box)).pristine

    assert inside(trial) == (["1"], True)


def test_env_user_and_labels_are_bound_late(inside):
    async def trial(jail):
        box = await jail.create(Spec())
        await jail.bind(box, Spec(env={"TOLD": "late"}, user="nobody", labels={"a": "b"}))
        bound = await says(jail, box, "echo $TOLD; id -un")
        await jail.bind(box, Spec())
        return bound, await says(jail, box, "echo [$TOLD]; id -un")

    assert inside(trial) == (["late", "nobody"], ["[]", "root"])


def test_limits_are_bound_late_on_the_same_jail_and_hold_after_a_reset(inside):
    tight = Limits(cpus=0.5, memory_bytes=256 * MIB, pids=64)

    async def trial(jail):
        box = await jail.create(Spec())
        pid = jail._boxes[box].box.pid
        await jail.bind(box, Spec(limits=tight))
        sandbox = jail._boxes[box]
        same = sandbox.box.pid == pid
        seen = [jail._yard.spawner.usage(sandbox.box.kit).limits()]
        await jail.reset(box)
        seen.append(jail._yard.spawner.usage(sandbox.box.kit).limits())
        hog = "python3 -c 'x = bytearray(400 << 20)'"
        return same, seen, (await jail.run(box, Action.shell(hog))).oom

    same, seen, oom = inside(trial)
    assert same
    assert oom
    assert seen[0] == seen[1]
    assert f"memory {256 * MIB}" in seen[0]


def test_what_is_settled_when_a_jail_is_made_takes_another_under_the_same_handle(inside):
    async def trial(jail):
        box = await jail.create(Spec())
        await jail.bind(box, Spec(limits=Limits(disk_bytes=8 * MIB)))
        full = await jail.run(box, Action.shell("head -c 16M /dev/zero > /tmp/large"))
        await jail.bind(box, Spec(limits=Limits(disk_bytes=64 * MIB)))
        fits = await jail.run(box, Action.shell("head -c 16M /dev/zero > /tmp/large"))
        return full.ok, fits.ok

    assert inside(trial) == (False, True)


@pytest.mark.timeout(120)
def test_egress_is_opened_late_and_closed_when_it_is_taken_back(inside):
    usable = availability()
    if not usable.usable:
        refuse(str(usable))
    links = "ls /sys/class/net 2>/dev/null || tail -n +3 /proc/net/dev | cut -d: -f1 | tr -d ' '"

    async def trial(jail):
        box = await jail.create(Spec())
        await jail.bind(box, Spec(egress=Egress.FULL))
        opened = await says(jail, box, f"{links}; cat /etc/resolv.conf | wc -l")
        await jail.bind(box, Spec())
        await jail.reset(box)
        return opened, await says(jail, box, links), (await jail.prove(box)).pristine

    opened, closed, pristine = inside(trial)
    assert len(opened) > 2
    assert (closed, pristine) == (["lo"], True)


def test_nothing_can_be_bound_or_advanced_that_is_not_there(inside):
    async def trial(jail):
        box = await jail.create(Spec())
        await jail.destroy(box)
        for verb in (jail.bind, jail.advance):
            with pytest.raises(SandboxGone):
                await verb(box, Spec())

    inside(trial)


@pytest.mark.timeout(120)
def test_what_many_want_at_once_is_built_once_and_keeps_nobody_else_waiting(
    inside, tmp_path, world
):
    marks = tmp_path / "marks"
    slow = tmp_path / "python"
    slow.write_text(
        f'#!/bin/sh\n[ "$1" = --version ] && echo slow && exit\n'
        f"echo begun >> {marks}; while [ ! -e {tmp_path}/go ]; do sleep 0.05; done\n"
        f"echo told >&2; echo 'error: this interpreter is broken' >&2; exit 1\n"
    )
    slow.chmod(0o755)
    wanted = Spec(deps=(Deps(("alpha==1.0",), python=str(slow)),))

    async def trial(jail):
        waiting = [asyncio.create_task(jail.create(wanted)) for _ in range(20)]
        while not marks.exists():  # noqa: ASYNC110 - another process makes it
            await asyncio.sleep(0.01)
        other = await says(jail, await jail.create(Spec()), "echo meanwhile")
        (tmp_path / "go").touch()
        return other, await asyncio.gather(*waiting, return_exceptions=True)

    other, errors = inside(trial, tmp_path / "store")
    assert other == ["meanwhile"]
    assert marks.read_text() == "begun\n"
    assert {type(error) for error in errors} == {SubstrateError}
    text = str(errors[0])
    assert "error: this interpreter is broken" in text
    assert "told\n" in Path(text.rpartition("its log: ")[2]).read_text()


def test_what_cannot_be_meant_is_refused_and_nothing_is_made(inside, tmp_path):
    unknown = Spec(deps=(Deps(("alpha==1.0",), python="/no/python"),))
    system = Spec(deps=(Deps(("git",), installer="apt"),))

    async def trial(jail):
        for spec, said in ((unknown, "no program of this host"), (system, "name an image")):
            with pytest.raises(InputError, match=said):
                await jail.create(spec)
        assert not jail._boxes

    inside(trial, tmp_path / "store")


@pytest.mark.timeout(120)
def test_an_environment_whose_layers_somebody_removed_by_force_is_laid_again(
    inside, world, tmp_path
):
    spec = Spec(repo=Repo(str(world.source), world.first))

    async def trial(jail):
        box = await jail.create(spec)
        [layer] = jail._boxes[box].origin.ground.repo
        shutil.rmtree(layer.path.parent)
        return await says(jail, await jail.create(spec), "cat repo/file")

    assert inside(trial, tmp_path / "store") == ["1"]


def test_layers_of_environments_that_nobody_uses_are_let_go_of(
    inside, world, tmp_path, monkeypatch
):
    monkeypatch.setattr("excise.jail.yard.MOST_LAID", 1)
    one, other = (Spec(repo=Repo(str(world.source), c)) for c in (world.first, world.second))

    async def trial(jail):
        held = await jail.create(one)
        await jail.destroy(await jail.create(other))
        await jail.destroy(await jail.create(Spec()))
        prices = [jail.stages(spec)[-1].price_s > 0 for spec in (one, other)]
        gone = jail._yard.store.gc(0)
        return prices, len(gone) > 0, await says(jail, held, "cat repo/file")

    assert inside(trial, tmp_path / "store") == ([False, True], True, ["1"])


def test_a_jail_has_what_pools_ask_for(inside):
    async def trial(jail):
        return [isinstance(jail, ability) for ability in (Staged, Binds, Lays)]

    assert inside(trial) == [True, True, True]
