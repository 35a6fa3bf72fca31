"""Machines of clouds: by EC2's own client on moto, by REST on a server of ours, and for real on a cloud of this host."""

from __future__ import annotations

import asyncio
import json
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest
from moto import mock_aws

from excise.errors import DeadlineExceeded, InputError, SandboxGone, SubstrateError
from excise.layers.host import DEFAULT, build_rootfs
from excise.substrates.container.owner import myself
from excise.substrates.registry import availability
from excise.substrates.vm.cloud.config import Options
from excise.substrates.vm.cloud.control import BadRequest, Look, NoCapacity, State, Throttled
from excise.substrates.vm.cloud.ec2 import Ec2
from excise.substrates.vm.cloud.gcp import Gcp
from excise.substrates.vm.cloud.hetzner import Hetzner
from excise.substrates.vm.cloud.labels import labels_of
from excise.substrates.vm.cloud.readiness import Step
from excise.substrates.vm.cloud.substrate import CloudMachines
from excise.types import Action, Handle, Spec
from tests.contract.conftest import need
from tests.system.local_cloud import LocalCloud, Scripted

KEYS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_DEFAULT_REGION": "eu-central-1",
    "AWS_EC2_METADATA_DISABLED": "true",
}
IMAGE = "ami-12c6146b"


@pytest.fixture
def aws(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, value in KEYS.items():
        monkeypatch.setenv(name, value)
    with mock_aws():
        yield


def test_a_machine_of_ec2_is_made_seen_listed_and_deleted(aws: None) -> None:
    async def act() -> None:
        control = Ec2(Options.of({"image": IMAGE, "type": "t3.micro"}))
        assert await control.owned() == []
        names = [f"vm-cloud-{number}" for number in range(3)]
        made = [await control.create(name, labels_of(myself())) for name in names]
        seen = await control.look(made[0])
        assert seen.state is State.RUNNING
        assert seen.address
        assert {each.id for each in await control.owned()} == set(made)
        assert {each.labels["Name"] for each in await control.owned()} == set(names)
        for each in (*made, *made, "i-00000000000000000"):
            await control.delete(each)
        assert await control.owned() == []
        assert (await control.look(made[0])).state is State.GONE
        await control.close()

    asyncio.run(act())


def test_a_sweep_deletes_the_machines_of_the_dead_and_no_others(aws: None) -> None:
    async def act() -> None:
        options = Options.of({"image": IMAGE, "type": "t3.micro"})
        substrate = CloudMachines(options, Ec2(options))
        control, mine = Ec2(options), labels_of(myself())
        alive = await control.create("alive", mine)
        boot, space, pid, start = mine["excise-owner"].split(".")
        dead = {**mine, "excise-owner": f"{boot}.{space}.{pid}.{int(start) + 1}"}
        left = [await control.create(f"dead-{number}", dead) for number in range(2)]
        assert await substrate.sweep() == 2
        assert [each.id for each in await control.owned()] == [alive]
        assert (await control.look(left[0])).state is State.GONE
        await control.delete(alive)
        await control.close()
        await substrate.close()

    asyncio.run(act())


def test_without_credentials_the_doctor_says_what_to_do(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (*KEYS, "HCLOUD_TOKEN", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    monkeypatch.setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
    monkeypatch.setenv("AWS_CONFIG_FILE", "/nonexistent")
    found = asyncio.run(availability("vm-cloud"))
    assert (found.usable, found.remedy) == (False, "aws configure")
    found = asyncio.run(availability("vm-cloud", provider="hetzner"))
    assert "HCLOUD_TOKEN" in found.reason


class Servers(BaseHTTPRequestHandler):
    """Two servers to a page, one of which is throttled the first time."""

    servers: dict[str, dict[str, object]]
    throttled: list[str]

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        number = str(len(self.servers) + 1)
        address = {"ipv4": {"ip": f"192.0.2.{number}"}}
        made = {"id": int(number), "status": "initializing", "public_net": address, **asked}
        self.servers[number] = made
        self._say(201, {"server": made})

    def do_GET(self) -> None:
        if self.throttled:
            self._say(429, {"error": {"code": "rate_limit_exceeded", "message": "slow"}})
            self.throttled.pop()
        elif "?" in self.path:
            page = int(self.path.rpartition("page=")[2])
            every = list(self.servers.values())
            more = page + 1 if len(every) > 2 * page else None
            answer = {"servers": every[2 * page - 2 : 2 * page]}
            self._say(200, {**answer, "meta": {"pagination": {"next_page": more}}})
        elif (number := self.path.rpartition("/")[2]) in self.servers:
            self._say(200, {"server": self.servers[number]})
            self.servers[number]["status"] = "running"
        else:
            self._say(404, {"error": {"code": "not_found", "message": "none"}})

    def do_DELETE(self) -> None:
        known = self.servers.pop(self.path.rpartition("/")[2], None)
        self._say(200 if known else 404, {"error": {"code": "not_found", "message": "none"}})

    def log_message(self, *words: object) -> None:
        assert self.headers["Authorization"] == "Bearer secret"

    def _say(self, status: int, said: object) -> None:
        data = json.dumps(said).encode()
        self.send_response(status)
        self.send_header("Retry-After", "3")
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)


def test_a_server_of_hetzner_is_made_seen_listed_and_deleted() -> None:
    handler = type("Handler", (Servers,), {"servers": {}, "throttled": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        given = {"provider": "hetzner", "image": "debian-12", "type": "cx22", "endpoint": endpoint}
        control = Hetzner(Options.of(given), "secret")

        async def act() -> None:
            made = [await control.create(f"m{n}", {"excise": "1"}) for n in range(5)]
            assert (await control.look(made[0])).state is State.PENDING
            assert await control.look(made[0]) == Look(State.RUNNING, "192.0.2.1")
            handler.throttled.append("once")
            with pytest.raises(Throttled) as refused:
                await control.look(made[0])
            assert refused.value.after_s == 3.0
            assert [each.id for each in await control.owned()] == made
            for each in (*made, made[0]):
                await control.delete(each)
            assert await control.owned() == []

        asyncio.run(act())
        server.shutdown()


class Instances(Servers):
    """The same servers as Compute Engine has them: by name, with an operation for each that is made."""

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.servers[asked["name"]] = {"status": "STAGING", **asked}
        self._say(200, {"name": f"make-{asked['name']}"})

    def do_GET(self) -> None:
        name = self.path.rpartition("/")[2]
        if "?" in self.path:
            every, first = list(self.servers.values()), "pageToken" not in self.path
            more = {"nextPageToken": "second"} if first else {}
            self._say(200, {"items": every[:2] if first else every[2:], **more})
        elif name.startswith("make-"):
            errors = [{"code": "ZONE_RESOURCE_POOL_EXHAUSTED", "message": "none left"}]
            refused = {"error": {"errors": errors}} if name.endswith("unlucky") else {}
            self._say(200, {"status": "DONE", **refused})
        elif name in self.servers:
            self._say(200, self.servers[name])
            way = [{"networkIP": "10.0.0.2", "accessConfigs": [{"natIP": "192.0.2.1"}]}]
            self.servers[name] |= {"status": "RUNNING", "networkInterfaces": way}
        else:
            self._say(404, {"error": {"message": "none", "errors": [{"reason": "notFound"}]}})


def test_an_instance_of_compute_engine_is_made_seen_listed_and_deleted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    given = {"provider": "gcp", "image": "debian", "type": "e2-small", "region": "europe-west3-a"}
    with pytest.raises(InputError, match="GOOGLE_CLOUD_PROJECT"):
        Gcp(Options.of(given), "secret")
    monkeypatch.setenv("GOOGLE_CLOUD_PROJECT", "p")
    handler = type("Handler", (Instances,), {"servers": {}, "throttled": []})
    with HTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        endpoint = f"http://127.0.0.1:{server.server_port}"
        control = Gcp(Options.of({**given, "endpoint": endpoint}), "secret")
        mine = labels_of(myself())

        async def act() -> None:
            made = [await control.create(f"m{n}", mine) for n in range(3)]
            assert (await control.look("m0")).state is State.PENDING
            assert await control.look("m0") == Look(State.RUNNING, "192.0.2.1")
            await control.create("unlucky", mine)
            with pytest.raises(NoCapacity, match="none left"):
                await control.look("unlucky")
            await control.delete("unlucky")
            assert [(each.id, each.labels) for each in await control.owned()] == [
                (name, mine) for name in made
            ]
            for each in (*made, made[0]):
                await control.delete(each)
            assert await control.owned() == []

        asyncio.run(act())
        server.shutdown()


def machines(control: Scripted, **given: str) -> CloudMachines:
    return CloudMachines(Options.of(given), control)


@pytest.mark.parametrize(
    ("fault", "kind", "said"),
    [
        (NoCapacity("none of these"), SubstrateError, "no capacity: none of these"),
        (Throttled("slow down", 9.0), SubstrateError, "throttled"),
        (BadRequest("no such image"), InputError, "refuses: no such image"),
    ],
)
def test_a_machine_that_is_not_given_is_told_and_nothing_is_left(
    fault: Exception, kind: type[Exception], said: str
) -> None:
    control = Scripted()
    control.script["create"].append(fault)

    async def act() -> None:
        substrate = machines(control)
        with pytest.raises(kind, match=said) as raised:
            await substrate.create(Spec())
        if isinstance(raised.value, SubstrateError):
            assert raised.value.retryable
            assert raised.value.retry_after_s == getattr(fault, "after_s", None)
        await substrate.close()

    asyncio.run(act())
    assert control.machines == {}


def test_a_creation_that_is_cancelled_leaves_no_machine_to_be_paid_for() -> None:
    async def act() -> None:
        control = Scripted(gate=asyncio.Event())
        substrate = machines(control)
        creating = asyncio.ensure_future(substrate.create(Spec()))
        await control.asked.wait()
        creating.cancel()
        await asyncio.sleep(0)
        assert control.gate is not None
        control.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await creating
        assert control.machines == {}
        await substrate.close()

    asyncio.run(act())


def coming_up(control: Scripted, work: Callable[[CloudMachines, Handle], object]) -> None:
    async def act() -> None:
        substrate = machines(control, boot_s="0.4")
        box = await substrate.create(Spec())
        await work(substrate, box)  # type: ignore[misc]
        await substrate.destroy(box)
        await substrate.close()

    asyncio.run(act())
    assert control.machines == {}


def test_a_machine_that_stays_pending_is_given_up_with_what_was_waited_out() -> None:
    control = Scripted()
    control.script["look"] = [Throttled("slow", 0.01), *[Look(State.PENDING)] * 999]

    async def work(substrate: CloudMachines, box: Handle) -> None:
        said = r"no further than created in 0\.4 s; waited out: 1 x throttled, \d+ x pending"
        with pytest.raises(DeadlineExceeded, match=said):
            await substrate.ready(box)

    coming_up(control, work)


def test_a_machine_that_vanishes_while_it_comes_up_is_gone() -> None:
    control = Scripted()
    control.script["look"] = [Look(State.PENDING), Look(State.RUNNING), Look(State.GONE)]

    async def work(substrate: CloudMachines, box: Handle) -> None:
        with pytest.raises(SandboxGone, match="gone at the step running"):
            await substrate.ready(box)

    coming_up(control, work)


def test_a_machine_that_is_not_deleted_stays_known_and_is_tried_again() -> None:
    control = Scripted()
    control.script["delete"] = [Throttled("slow"), NoCapacity("oops")]

    async def work(substrate: CloudMachines, box: Handle) -> None:
        for _ in range(2):
            with pytest.raises(SubstrateError) as failed:
                await substrate.destroy(box)
            assert (failed.value.phase, failed.value.retryable) == ("destroy", True)
            assert box in control.machines

    coming_up(control, work)


async def until(substrate: CloudMachines, box: Handle, *signs: str) -> None:
    while not set(signs) & set(substrate.waited(box)):  # noqa: ASYNC110  # looking is all one can do
        await asyncio.sleep(0.02)


@pytest.mark.lab
@pytest.mark.timeout(240)
def test_a_machine_that_really_boots_is_reached_step_by_step_and_acted_in(tmp_path: Path) -> None:
    need("vm")
    key = tmp_path / "key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", key], check=True)
    public = key.with_suffix(".pub").read_bytes()
    image = build_rootfs(programs=(*DEFAULT, "dropbear"), out=tmp_path / "images").archive

    async def act() -> None:
        cloud = LocalCloud(image=str(image))
        cloud.script["look"] = [Look(State.PENDING), Throttled("slow", 0.01), Look(State.RUNNING)]
        substrate = machines(cloud, key=str(key), boot_s="200")
        box = await substrate.create(Spec(env={"GREETING": "hello"}))
        coming = asyncio.ensure_future(substrate.ready(box))
        await until(substrate, box, "no address")
        await cloud.open_port()
        await until(substrate, box, "cut off", "port closed")
        await cloud.start_server()
        await until(substrate, box, "turned away")
        await cloud.let_in(public)
        await coming
        assert list(substrate.steps_s(box)) == [str(step) for step in list(Step)[1:]]
        assert {"pending", "throttled", "no address", "turned away"} <= set(substrate.waited(box))
        said = await substrate.run(box, Action.shell("echo $GREETING; uname -n; pwd; exit 7"))
        assert (said.exit_code, said.stdout) == (7, b"hello\nguest\n/work\n")
        assert said.inside_ns is not None
        data = bytes(range(256)) * 9000
        await substrate.write(box, "file", data)
        assert await substrate.read(box, "file") == data
        running = asyncio.ensure_future(substrate.run(box, Action(("sleep", "60"))))
        await substrate.run(box, Action(("true",)))
        await cloud.vanish()
        with pytest.raises(SandboxGone, match="the connection to"):
            await running
        await substrate.destroy(box)
        assert cloud.machines == {}
        await substrate.close()

    asyncio.run(act())
