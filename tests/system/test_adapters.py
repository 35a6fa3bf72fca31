"""Substrates through the tools that people reach them by, with the tools themselves: lab/up docker harnesses."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from excise.errors import InputError, SubstrateError
from excise.layers.host import build_rootfs
from excise.substrates.base import Closes, Files, ImportsImages, Substrate, Sweeps
from excise.substrates.registry import ADAPTED, open_substrate
from excise.types import Action, Handle, Limits, Observation, Repo, Spec
from tests.contract.conftest import need

pytestmark = [pytest.mark.lab, pytest.mark.docker]
NAMES = ["@".join(pair) for pair in ADAPTED]
HARNESSES = "EXCISE_HARNESSES"


@pytest.fixture(params=NAMES)
def name(request: pytest.FixtureRequest) -> str:
    need(request.param)
    return str(request.param)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The environment that SWE-ReX's server is installed in, as an image for it must have one."""
    return Path(os.environ.get(HARNESSES, sys.executable)).parents[1]


def within(
    name: str,
    server: Path,
    work: Callable[[Substrate, Handle], Awaitable[None]],
    spec: Spec,
    out: Path,
) -> None:
    async def act() -> None:
        substrate = open_substrate(name)
        wanted = spec
        try:
            if name == "docker@swe-rex":
                assert isinstance(substrate, ImportsImages)
                image = build_rootfs(paths=(server,), out=out / "image")
                if not await substrate.has_image(image.reference):
                    await substrate.import_image(image.reference, image.archive)
                path = f"{server}/bin:/usr/bin:/bin"
                wanted = Spec(
                    image=image.reference, repo=spec.repo, env={"PATH": path}, limits=spec.limits
                )
            box = await substrate.create(wanted)
            try:
                await substrate.ready(box)
                await work(substrate, box)
            finally:
                await substrate.destroy(box)
        finally:
            if isinstance(substrate, Closes):
                await substrate.close()

    asyncio.run(act())


async def heard(substrate: Substrate, box: Handle, action: Action) -> Observation:
    """The SDK of the engine now and then loses all that a command wrote, on a busy host: that is the tool's."""
    for _ in range(3):
        found = await substrate.run(box, action)
        if found.stdout or not substrate.name.endswith("@sdk"):
            break
    return found


def test_actions_run_through_the_tool(name: str, server: Path, tmp_path: Path) -> None:
    (tmp_path / "checkout").mkdir()
    (tmp_path / "checkout/a").write_text("of the checkout\n")

    async def work(substrate: Substrate, box: Handle) -> None:
        found = await heard(substrate, box, Action.shell("echo out; echo err >&2; exit 7"))
        assert (found.exit_code, found.stderr) == (7, b"")
        assert sorted(found.stdout.split()) == [b"err", b"out"]  # a command line may mix them up
        assert (
            await heard(substrate, box, Action(("printf", "%s|", "a b", "$x", "'")))
        ).stdout == b"a b|$x|'|"
        env = Action.shell('echo "$A"; pwd', cwd="sub", env={"A": "it's $1"})
        await substrate.run(box, Action(("mkdir", "sub")))
        assert (await heard(substrate, box, env)).stdout.startswith(b"it's $1\n")
        assert (await heard(substrate, box, env)).stdout.endswith(b"/sub\n")
        assert (
            await heard(substrate, box, Action(("cat", "src/a")))
        ).stdout == b"of the checkout\n"
        assert isinstance(substrate, Files)
        assert await substrate.read(box, "src/a") == b"of the checkout\n"
        with pytest.raises(InputError, match="standard input"):
            await substrate.run(box, Action(("cat",), stdin=b"x"))
        if not name.endswith("@sdk"):  # it knows no time limit
            late = await substrate.run(box, Action(("sleep", "30"), timeout_s=1.0))
            assert (late.timed_out, late.exit_code) == (True, 137)

    repo = Repo(str(tmp_path / "checkout"), commit="0" * 40, path="src")
    within(name, server, work, Spec(repo=repo), tmp_path)


def test_a_container_of_a_tool_has_the_limits_that_were_asked_for(
    server: Path, tmp_path: Path
) -> None:
    async def work(substrate: Substrate, box: Handle) -> None:
        limit = "cat /sys/fs/cgroup/pids/pids.max /sys/fs/cgroup/pids.max 2>/dev/null; ls /sys/class/net"
        assert (await heard(substrate, box, Action.shell(limit))).stdout == b"77\nlo\n"

    for tool in ("sdk", "mini-swe-agent"):
        need(f"docker@{tool}")
        within(f"docker@{tool}", server, work, Spec(limits=Limits(pids=77)), tmp_path)


def test_a_tool_that_fails_is_a_substrate_that_failed() -> None:
    need("docker@mini-swe-agent")

    async def act() -> None:
        substrate = open_substrate("docker@mini-swe-agent", network="no-such-network")
        try:
            from excise.types import Egress

            with pytest.raises(SubstrateError, match="CalledProcessError"):
                await substrate.create(Spec(egress=Egress.FULL))
        finally:
            assert isinstance(substrate, Closes)
            await substrate.close()

    asyncio.run(act())


OWNER = """
import asyncio, sys
from excise.substrates.registry import open_substrate
from excise.types import Spec

async def main():
    print(await open_substrate(sys.argv[1]).create(Spec()), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


@pytest.mark.parametrize("name", [n for n in NAMES if n != "docker@swe-rex"], indirect=True)
def test_what_a_killed_owner_leaves_of_a_tool_is_swept(name: str) -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER, name], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    assert owner.stdout.readline().strip()
    owner.kill()
    owner.wait()
    owner.stdout.close()

    async def act() -> None:
        substrate = open_substrate(name)
        assert isinstance(substrate, Sweeps)
        assert await substrate.sweep() >= 1
        assert isinstance(substrate, Closes)
        await substrate.close()

    asyncio.run(act())
