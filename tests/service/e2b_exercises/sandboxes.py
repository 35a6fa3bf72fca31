"""Sandboxes, what is kept of them, and templates."""

from __future__ import annotations

from typing import Any

import e2b
from calling import Absent, Sdk, exercise, member


@exercise
async def metadata_and_lists(sdk: Sdk, box: Any) -> None:
    made = await sdk(sdk.sandbox.create, metadata={"a b": "ä/&="}, envs={"A": "1"}, timeout=100)
    try:
        assert (await sdk(made.commands.run, "echo $A")).stdout == "1\n"
        query = e2b.SandboxQuery(metadata={"a b": "ä/&="})
        (page,) = await sdk.pages(sdk.sandbox.list(query=query))
        assert [each.sandbox_id for each in page] == [made.sandbox_id]
        info = await sdk(made.get_info)
        assert (info.metadata, info.template_id) == ({"a b": "ä/&="}, "base")
        assert 90 < (info.end_at - info.started_at).total_seconds() <= 101
    finally:
        assert await sdk(made.kill) is True
    assert await sdk(made.is_running) is False


@exercise
async def time_and_connecting(sdk: Sdk, box: Any) -> None:
    await sdk(box.set_timeout, 1000)
    again = await sdk(sdk.sandbox.connect, box.sandbox_id)
    assert (await sdk(again.commands.run, "echo here")).stdout == "here\n"
    info = await sdk(box.get_info)
    assert (info.end_at - info.started_at).total_seconds() > 900


@exercise
async def use_figures(sdk: Sdk, box: Any) -> None:
    (found,) = await sdk(member(box, "get_metrics"))
    assert found.mem_used > 0


@exercise
async def pausing_and_going_on(sdk: Sdk, box: Any) -> None:
    pause = getattr(box, "pause", None) or member(box, "beta_pause")
    await sdk(box.files.write, "kept", "x")
    await sdk(pause)
    assert await sdk(box.is_running) is False
    again = await sdk(sdk.sandbox.connect, box.sandbox_id)
    assert await sdk(again.files.read, "kept") == "x"


@exercise
async def snapshots(sdk: Sdk, box: Any) -> None:
    take = member(box, "create_snapshot")
    await sdk(box.files.write, "f", "before")
    kept = await sdk(take)
    await sdk(box.files.write, "f", "after")
    made = await sdk(sdk.sandbox.create, kept.snapshot_id)
    assert await sdk(made.files.read, "f") == "before"
    await sdk(made.kill)
    assert await sdk(sdk.sandbox.delete_snapshot, kept.snapshot_id) is True


@exercise
async def forks(sdk: Sdk, box: Any) -> None:
    fork = member(box, "fork")
    await sdk(box.files.write, "f", "mine")
    (copy,) = await sdk(fork)
    await sdk(copy.files.write, "f", "its")
    assert await sdk(box.files.read, "f") == "mine"
    await sdk(copy.kill)


@exercise
async def template_builds(sdk: Sdk, box: Any) -> None:
    wanted = sdk.template().from_base_image().set_envs({"A": "1"}).run_cmd("echo $A$HOME > ~/f")
    build = sdk.template.build
    try:
        await sdk(build, wanted, "exercise")
    except Absent:
        await sdk(build, wanted, alias="exercise")
    made = await sdk(sdk.sandbox.create, "exercise")
    assert await sdk(made.files.read, "f") == "1/home/user\n"
    await sdk(made.kill)


@exercise
async def errors_in_its_own_terms(sdk: Sdk, box: Any) -> None:
    await sdk.fails("SandboxException", sdk.sandbox.create, "no-such-template/" + "x" * 300)
    assert await sdk(sdk.sandbox.kill, "nothing") is False
    gone = await sdk(sdk.sandbox.create)
    await sdk(gone.kill)
    await sdk.fails("TimeoutException", gone.commands.run, "true")
