"""What a real Docker Engine must do for us: limits by their effect, nothing left behind, the host's own programs."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import aiodocker
import pytest

from excise.errors import InputError, Phase, SandboxGone, SubstrateUnavailable
from excise.jail.blocking import Jail
from excise.layers.host import build_rootfs
from excise.substrates.container import available, open_substrate
from excise.substrates.container.config import Options
from excise.substrates.container.substrate import Container
from excise.substrates.registry import availability
from excise.types import MIB, Action, Egress, Handle, Limits, Observation, Repo, Spec

pytestmark = pytest.mark.docker


@pytest.fixture(autouse=True)
def _engine() -> None:
    found = asyncio.run(availability("docker"))
    if not found.usable and "docker" in os.environ.get("EXCISE_REQUIRE", ""):
        pytest.fail(f"{found.reason} ({found.remedy})", pytrace=False)
    if not found.usable:
        pytest.skip(f"{found.reason} ({found.remedy})")


@asynccontextmanager
async def container(
    spec: Spec | None = None, **options: str
) -> AsyncIterator[tuple[Container, Handle]]:
    docker = open_substrate(**options)
    try:
        box = await docker.create(spec or Spec())
        try:
            yield docker, box
        finally:
            await docker.destroy(box)
    finally:
        await docker.close()


def in_container(
    script: str, spec: Spec | None = None, *, timeout_s: float = 50.0, **options: str
) -> Observation:
    async def act() -> Observation:
        async with container(spec, **options) as (docker, box):
            return await docker.run(box, Action.shell(script, timeout_s=timeout_s))

    return asyncio.run(act())


def with_docker(work: Callable[[Container], Awaitable[None]]) -> None:
    async def all_of_it() -> None:
        docker = open_substrate()
        try:
            await work(docker)
        finally:
            await docker.close()

    asyncio.run(all_of_it())


async def containers(label: str) -> list[str]:
    async with aiodocker.Docker() as engine:
        found = await engine.containers.list(all="1", filters=f'{{"label": ["{label}"]}}')
        return [c.id for c in found]


VERSIONS = "bash git grep find diff patch sed"


def test_an_image_of_the_host_runs_the_hosts_own_programs(tmp_path: Path) -> None:
    python = Path(sys.prefix, "bin/python")
    environment = tmp_path / "env"
    subprocess.run([python, "-m", "venv", "--without-pip", environment], check=True)
    script = (
        f"for p in {VERSIONS}; do $p --version | head -1; done; sh -c 'echo ü | tr a-z A-Z'\n"
        f"{environment}/bin/python -c 'import sys, ssl, sqlite3, ctypes; print(sys.version)'"
    )
    here = subprocess.run(
        ["bash", "-c", script],
        capture_output=True,
        check=True,
        env={"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8"},
    )

    async def there() -> Observation:
        image = build_rootfs(paths=(environment,), out=tmp_path / "out")
        docker = open_substrate()
        try:
            await docker.import_image(image.reference, image.archive)
            assert await docker.has_image(image.reference)
            box = await docker.create(Spec(image=image.reference))
            try:
                return await docker.run(box, Action.shell(script))
            finally:
                await docker.destroy(box)
                async with aiodocker.Docker() as engine:
                    await engine.images.delete(image.reference)
        finally:
            await docker.close()

    assert asyncio.run(there()).stdout == here.stdout


GREEDY = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo no"


def test_memory_over_the_limit_is_killed_and_told() -> None:
    found = in_container(GREEDY, Spec(limits=Limits(memory_bytes=64 * MIB)))
    assert found.exit_code == 137
    assert found.oom
    assert b"no" not in found.stdout


def test_it_is_told_too_while_there_are_jails_on_the_host() -> None:
    with Jail() as jail, jail.create(Spec()) as box:
        assert box.run(Action.shell("true")).ok
        assert in_container(GREEDY, Spec(limits=Limits(memory_bytes=64 * MIB))).oom


def test_a_kill_that_is_not_for_memory_is_not_called_so() -> None:
    found = in_container("kill -9 $$")
    assert (found.exit_code, found.oom) == (137, False)


def test_there_is_no_swap_beyond_the_memory() -> None:
    found = in_container(
        "cat /sys/fs/cgroup/memory/memory.memsw.limit_in_bytes 2>/dev/null"
        " || cat /sys/fs/cgroup/memory.swap.max",
        Spec(limits=Limits(memory_bytes=64 * MIB)),
    )
    assert int(found.stdout) in (64 * MIB, 0)


def test_half_a_cpu_is_throttled() -> None:
    spin = (
        "end=$((SECONDS + 3)); while ((SECONDS < end)); do :; done; "
        "cat /sys/fs/cgroup/cpu/cpu.stat /sys/fs/cgroup/cpu.stat 2>/dev/null"
    )
    found = in_container(spin, Spec(limits=Limits(cpus=0.3)))
    stat = dict(line.split() for line in found.stdout.decode().splitlines())
    assert int(stat["nr_throttled"]) > 0


def test_processes_over_the_limit_are_refused() -> None:
    script = "exec sh -c 'for i in $(seq 40); do sleep 20 & done'"  # bash would try again for 15 s
    found = in_container(script, Spec(limits=Limits(pids=20)))
    assert b"Cannot fork" in found.stderr


def test_a_cpuset_leaves_one_cpu() -> None:
    assert in_container("nproc", Spec(limits=Limits(cpuset=(0,)))).stdout == b"1\n"


def test_a_command_that_fills_the_process_table_is_still_killed() -> None:
    async def act() -> None:
        async with container(Spec(limits=Limits(pids=20))) as (docker, box):
            bomb = "while :; do setsid sleep 300 & done 2>/dev/null"
            found = await docker.run(box, Action.shell(bomb, timeout_s=2.0))
            assert found.timed_out
            try:
                left = await docker.run(box, Action.shell("ps -eo comm= | grep -c ^bash"))
            except SandboxGone:  # no killer found room in there: the container went with it
                return
            assert left.stdout == b"1\n"

    asyncio.run(act())


def test_without_a_shell_to_kill_from_the_container_is_killed(tmp_path: Path) -> None:
    async def act(docker: Container) -> None:
        image = build_rootfs(programs=("sleep", "true"), out=tmp_path)
        await docker.import_image(image.reference, image.archive)
        box = await docker.create(Spec(image=image.reference))
        try:
            assert (await docker.run(box, Action(("true",)))).ok
            found = await docker.run(box, Action(("sleep", "300"), timeout_s=1.0))
            assert (found.timed_out, found.exit_code) == (True, 137)
            with pytest.raises(SandboxGone):
                await docker.run(box, Action(("true",)))
        finally:
            await docker.destroy(box)
            async with aiodocker.Docker() as engine:
                await engine.images.delete(image.reference)

    with_docker(act)


def test_without_egress_nothing_can_be_reached() -> None:
    connect = "exec 3<>/dev/tcp/192.0.2.1/9 || echo refused; ls /sys/class/net"
    found = in_container(connect)
    assert found.stdout == b"refused\nlo\n"
    assert b"unreachable" in found.stderr


def test_with_egress_the_host_is_reached_at_its_address() -> None:
    async def act() -> None:
        async def greet(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"hello\n")
            await writer.drain()
            writer.close()

        server = await asyncio.start_server(greet, "0.0.0.0", 0)
        port = server.sockets[0].getsockname()[1]
        async with server, container(Spec(egress=Egress.FULL)) as (docker, box):
            host = await docker.host_address()
            found = await docker.run(box, Action.shell(f"exec 3<>/dev/tcp/{host}/{port}; cat <&3"))
            assert found.stdout == b"hello\n"

    asyncio.run(act())


def test_a_checkout_is_there_from_the_first_action(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/a.txt").write_text("a")
    found = in_container(
        "cat src/pkg/a.txt; stat -c %U src/pkg/a.txt",
        Spec(repo=Repo(str(tmp_path), commit="0" * 40, path="src")),
    )
    assert found.stdout == b"aroot\n"


def test_another_user_may_act_and_a_missing_one_is_bad_input() -> None:
    async def act(docker: Container) -> None:
        box = await docker.create(Spec())
        try:
            found = await docker.run(box, Action(("id", "-un"), user="nobody"))
            assert found.stdout == b"nobody\n"
            with pytest.raises(InputError, match="nosuch"):
                await docker.run(box, Action(("true",), user="nosuch"))
        finally:
            await docker.destroy(box)

    with_docker(act)


@pytest.mark.parametrize(
    ("spec", "told"),
    [
        (Spec(image="no/such:image"), "docker pull no/such:image"),
        (Spec(limits=Limits(cpus=1e6)), "CPUs"),
        (Spec(limits=Limits(cpuset=(99999,))), "cpus"),
        (Spec(user="nosuch"), "nosuch"),
    ],
)
def test_what_cannot_be_made_is_bad_input_and_leaves_nothing(spec: Spec, told: str) -> None:
    async def act(docker: Container) -> None:
        with pytest.raises(InputError, match=told):
            await docker.create(spec)

    with_docker(act)
    assert asyncio.run(containers(f"excise.owner={_me()}")) == []


def test_a_cancelled_create_leaves_no_container() -> None:
    async def act(docker: Container) -> None:
        await docker.destroy(await docker.create(Spec()))
        for turns in (1, 5, 25):
            creating = asyncio.ensure_future(docker.create(Spec()))
            for _ in range(turns):
                await asyncio.sleep(0.002)
            creating.cancel()
            with pytest.raises(asyncio.CancelledError):
                await creating

    with_docker(act)
    assert asyncio.run(containers(f"excise.owner={_me()}")) == []


OWNER = """
import asyncio
from excise.substrates.container import open_substrate
from excise.types import Spec

async def main():
    docker = open_substrate()
    print(await docker.create(Spec()), flush=True)
    await asyncio.sleep(600)

asyncio.run(main())
"""


def test_what_a_killed_owner_leaves_is_swept_and_nothing_else() -> None:
    owner = subprocess.Popen([sys.executable, "-c", OWNER], stdout=subprocess.PIPE, text=True)
    assert owner.stdout is not None
    orphan = owner.stdout.readline().strip()
    owner.send_signal(signal.SIGKILL)
    owner.wait()
    owner.stdout.close()

    async def act(docker: Container) -> None:
        box = await docker.create(Spec())
        try:
            assert await docker.sweep() >= 1
            assert (await docker.run(box, Action(("true",)))).ok
            with pytest.raises(SandboxGone):
                await docker.run(Handle(orphan), Action(("true",)))
        finally:
            await docker.destroy(box)

    with_docker(act)


def test_zombies_are_reaped() -> None:
    script = (
        "for i in $(seq 20); do (setsid sleep 0.01 &) ; done; sleep 1; ps -eo stat= | grep -c Z"
    )
    assert in_container(script).stdout == b"0\n"


def test_an_engine_that_is_not_there_is_unavailable_with_a_remedy(tmp_path: Path) -> None:
    host = f"unix://{tmp_path}/no.sock"
    docker = open_substrate(host=host)

    async def act() -> None:
        try:
            await docker.create(Spec(image="any"))
        finally:
            await docker.close()

    with pytest.raises(SubstrateUnavailable) as failed:
        asyncio.run(act())
    assert failed.value.phase is Phase.CREATE
    found = asyncio.run(available.engine_availability(Options(host=host)))
    assert not found.usable
    assert found.remedy


def test_a_runtime_the_engine_does_not_know_is_told() -> None:
    found = asyncio.run(availability("docker", runtime="nosuch"))
    assert not found.usable
    assert "runc" in found.reason


def _me() -> str:
    from excise.substrates.container import owner

    return str(owner.myself())
