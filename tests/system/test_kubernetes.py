"""Pods that cannot be had, or are taken away: each is told by its own type, with the cluster's own words."""

from __future__ import annotations

import asyncio
import io
import os
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from excise.errors import InputError, SandboxGone
from excise.session import Session
from excise.substrates.kubernetes import open_substrate
from excise.substrates.kubernetes.failures import Evicted, StartFailed, Unschedulable, VolumeFailed
from excise.substrates.kubernetes.placing import PROGRAM
from excise.substrates.kubernetes.substrate import Kubernetes
from excise.types import GIB, MIB, Action, Egress, Handle, Limits, Repo, Spec
from tests.contract.conftest import need
from tests.kubernetes import ask

pytestmark = [pytest.mark.lab, pytest.mark.timeout(120)]

MAIN = "from excise.cli import main; raise SystemExit(main())"
GREEDY = "x=$(head -c 200000000 /dev/zero | tr '\\0' x); echo no"
AGENT = pytest.param({"agent": "inside"}, id="agent")
BOTH = pytest.mark.parametrize("options", [pytest.param({}, id="exec"), AGENT])


@pytest.fixture(scope="module", autouse=True)
def cluster() -> None:
    need("kubernetes")


@asynccontextmanager
async def opened(**options: str) -> AsyncIterator[Kubernetes]:
    substrate = open_substrate(**{"wait": "answer", **options})
    try:
        yield substrate
    finally:
        await substrate.close()


def within(
    spec: Spec, work: Callable[[Kubernetes, Handle], Awaitable[None]], **options: str
) -> None:
    async def act() -> None:
        async with opened(**options) as substrate:
            box = await substrate.create(spec)
            try:
                await substrate.ready(box)
                await work(substrate, box)
            finally:
                await substrate.destroy(box)

    asyncio.run(act())


def excise(*words: str, **env: str) -> tuple[int, str]:
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *words], env={**os.environ, **env},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert "Traceback" not in done.stderr
    return done.returncode, done.stderr


def test_an_image_that_cannot_be_had_is_bad_input_in_the_clusters_words() -> None:
    code, said = excise(
        "run", "--substrate", "kubernetes:pull=never", "--image", "no.such/image", "--", "true"
    )
    assert code == 2
    assert "ErrImageNeverPull" in said
    assert "EXCISE_KUBERNETES_LOAD" in said


def test_a_kubeconfig_that_is_not_there_or_leads_nowhere_is_one_line(tmp_path: Path) -> None:
    nowhere = tmp_path / "config"
    text = Path(os.environ["KUBECONFIG"]).read_text()
    nowhere.write_text(text.replace(":6443", ":1"))
    for config, words in ((tmp_path / "missing", "kubeconfig"), (nowhere, "no API server answers")):
        code, said = excise("run", "--substrate", f"kubernetes:config={config}", "--", "true")
        assert code in {1, 2}
        assert words in said


def test_a_key_that_is_not_known_is_told_as_what_it_is(tmp_path: Path) -> None:
    config = tmp_path / "config"
    text = Path(os.environ["KUBECONFIG"]).read_text()
    config.write_text(text.replace("token: ", "token: not"))
    _, said = excise("run", "--substrate", f"kubernetes:config={config}", "--", "true")
    assert "the cluster does not allow it" in said


@pytest.mark.parametrize(
    ("spec", "options", "words"),
    [
        (Spec(), {"node": "no=such"}, "didn't match"),
        (Spec(), {"request_cpus": "900"}, "Insufficient cpu"),
    ],
)
def test_a_pod_that_no_node_takes_is_unschedulable(
    spec: Spec, options: dict[str, str], words: str
) -> None:
    limits = Limits(cpus=None)

    async def act() -> None:
        async with opened(patience="2", **options) as substrate:
            with pytest.raises(Unschedulable, match=words) as raised:
                await substrate.create(Spec(limits=limits))
            assert raised.value.retryable
            assert raised.value.phase == "create"

    asyncio.run(act())
    assert not [p for p in ask("GET", "pods")["items"] if not p["spec"].get("nodeName")]


def test_a_volume_that_does_not_come_is_told_as_such() -> None:
    async def act() -> None:
        async with opened(agent="inside", place="volume", patience="3") as substrate:
            substrate._map = "no-such-map"  # type: ignore[attr-defined]
            box = await substrate.create(Spec())
            with pytest.raises(VolumeFailed, match="no-such-map"):
                await substrate.ready(box)
            await substrate.destroy(box)

    asyncio.run(act())


def test_a_container_that_cannot_be_started_is_told_as_such(loaded: Callable[[bytes], str]) -> None:
    image = loaded(b"no sleep in here")

    async def act() -> None:
        async with opened(patience="20") as substrate:
            box = await substrate.create(Spec(image=image))
            with pytest.raises(StartFailed, match="sleep"):
                await substrate.ready(box)
            await substrate.destroy(box)

    asyncio.run(act())


@BOTH
def test_a_pod_that_is_deleted_behind_our_back_is_gone(options: dict[str, str]) -> None:
    async def work(substrate: Kubernetes, box: Handle) -> None:
        running = asyncio.ensure_future(substrate.run(box, Action(("sleep", "300"))))
        await substrate.run(box, Action(("true",)))
        at = f"pods/{box}"
        await asyncio.to_thread(ask, "DELETE", at, {"gracePeriodSeconds": 0})
        ended = (await asyncio.gather(running, return_exceptions=True))[0]
        assert isinstance(ended, SandboxGone) or ended.exit_code == 137
        with pytest.raises(SandboxGone):
            await substrate.run(box, Action(("true",)))

    within(Spec(), work, **options)


async def until_gone(substrate: Kubernetes, box: Handle) -> None:
    while True:
        await substrate.run(box, Action(("sleep", "0.5")))


def test_a_pod_that_fills_the_disk_is_evicted_and_the_kubelets_reason_is_quoted() -> None:
    async def work(substrate: Kubernetes, box: Handle) -> None:
        await substrate.run(box, Action.shell("head -c 40000000 /dev/zero > full"))
        with pytest.raises(Evicted, match="ephemeral"):
            await until_gone(substrate, box)

    within(Spec(limits=Limits(disk_bytes=20 * MIB)), work)


@BOTH
def test_limits_hold_and_a_kill_for_want_of_memory_is_told(options: dict[str, str]) -> None:
    async def work(substrate: Kubernetes, box: Handle) -> None:
        killed = await substrate.run(box, Action.shell(GREEDY))
        assert (killed.exit_code, killed.oom) == (137, True)
        ended = await substrate.run(box, Action.shell("kill -9 $$"))
        assert (ended.exit_code, ended.oom) == (137, False)

    within(Spec(limits=Limits(memory_bytes=128 * MIB)), work, **options)
    pod: dict = {}

    async def look(substrate: Kubernetes, box: Handle) -> None:
        pod.update(await asyncio.to_thread(ask, "GET", f"pods/{box}"))

    within(Spec(limits=Limits(cpus=0.5, memory_bytes=GIB)), look, **options)
    wanted = pod["spec"]["containers"][0]["resources"]
    assert (wanted["limits"]["cpu"], wanted["limits"]["memory"]) == ("500m", str(GIB))
    assert (wanted["requests"]["cpu"], wanted["requests"]["memory"]) == ("100m", "64Mi")
    assert not pod["spec"].get("volumes")
    assert pod["status"]["qosClass"] == "Burstable"


@BOTH
def test_a_checkout_is_there_from_the_first_action(options: dict[str, str], tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg/a.txt").write_text("a")

    async def work(substrate: Kubernetes, box: Handle) -> None:
        script = "cat src/pkg/a.txt; stat -c %U src/pkg/a.txt"
        found = await substrate.run(box, Action.shell(script))
        assert found.stdout == b"aroot\n"

    within(Spec(repo=Repo(str(tmp_path), commit="0" * 40, path="src")), work, **options)


@BOTH
def test_a_read_only_root_has_a_workspace(options: dict[str, str]) -> None:
    async def work(substrate: Kubernetes, box: Handle) -> None:
        found = await substrate.run(box, Action.shell("touch /etc/x; echo b > b; cat b"))
        assert found.stdout == b"b\n"
        assert b"Read-only file system" in found.stderr

    within(Spec(), work, root="read-only", **options)


def test_users_are_numbers_and_with_an_agent_anybody() -> None:
    async def work(substrate: Kubernetes, box: Handle) -> None:
        assert (await substrate.run(box, Action(("id", "-u")))).stdout == b"1234\n"
        with pytest.raises(InputError, match=r"Spec\.user"):
            await substrate.run(box, Action(("true",), user="root"))

    within(Spec(user="1234"), work)

    async def inside(substrate: Kubernetes, box: Handle) -> None:
        assert (await substrate.run(box, Action(("id", "-un")))).stdout == b"nobody\n"
        assert (await substrate.run(box, Action(("id", "-u"), user="0"))).stdout == b"0\n"

    within(Spec(user="nobody"), inside, agent="inside")
    with pytest.raises(InputError, match="by number"):
        within(Spec(user="nobody"), work)


def test_an_image_with_nothing_in_it_takes_the_agent_as_a_volume(
    loaded: Callable[[bytes], str],
) -> None:
    async def work(substrate: Kubernetes, box: Handle) -> None:
        said = await substrate.run(box, Action((PROGRAM, "--version")))
        assert (said.exit_code, said.stdout[:13]) == (0, b"excise-agent ")
        assert await substrate.read(box, "/motd") == b"hello"
        await substrate.write(box, "new/file", b"data")
        assert await substrate.read(box, "/work/new/file") == b"data"

    within(Spec(image=loaded(b"hello")), work, agent="inside", place="volume")


def test_both_moments_are_marked_and_the_first_answer_comes_first() -> None:
    async def act(**options: str) -> dict[str, int]:
        async with opened(**options) as substrate:
            session = Session(substrate)
            async with session:
                return session.taken

    taken = asyncio.run(act(wait="condition"))
    moments = ("created", "answered", "ready_seen", "ready")
    assert [taken[name] for name in moments] == sorted(taken[name] for name in moments)
    assert "ready_seen" not in asyncio.run(act(wait="answer"))


def test_a_sandbox_with_egress_reaches_a_server_of_the_harness() -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"hello\n")
        writer.close()

    async def work(substrate: Kubernetes, box: Handle) -> None:
        address = await substrate.host_address()
        server = await asyncio.start_server(answer, address, 0)
        port = server.sockets[0].getsockname()[1]
        found = await substrate.run(box, Action.shell(f"cat < /dev/tcp/{address}/{port}"))
        server.close()
        assert found.stdout == b"hello\n"

    within(Spec(egress=Egress.FULL), work)


@pytest.fixture
def loaded(tmp_path: Path) -> Callable[[bytes], str]:
    """An image with one file and nothing else, loaded into the node."""

    def load(data: bytes) -> str:
        rootfs = tmp_path / "rootfs.tar"
        with tarfile.open(rootfs, "w") as tar:
            folder = tarfile.TarInfo("tmp")
            folder.type, folder.mode = tarfile.DIRTYPE, 0o1777
            tar.addfile(folder)
            entry = tarfile.TarInfo("motd")
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))
        reference = f"excise-test/image:{len(data)}"

        async def loading() -> None:
            async with opened() as substrate:
                await substrate.import_image(reference, rootfs)

        asyncio.run(loading())
        return reference

    return load
