"""What a network name space can reach once it is given egress: by hand-made ones, which anybody can check."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.errors import InputError, SandboxGone
from excise.jail import egress
from excise.jail.uplink import GATEWAY4
from excise.tasks.serve import GitServer
from excise.types import Allow, Egress

from .spaces import REFUSED, UNREACHABLE, Space, a_server, a_space, an_empty_repository, need_egress

METADATA = "169.254.169.254"

LOOK_UP = """
import json, socket, sys
found = []
for name in sys.argv[1:]:
    try:
        found.append(sorted({each[4][0] for each in socket.getaddrinfo(name, 1, type=1)}))
    except socket.gaierror as error:
        found.append(error.errno == socket.EAI_NONAME)
print(json.dumps(found))
"""


@pytest.fixture(autouse=True, scope="module")
def _needed() -> None:
    need_egress()


@pytest.fixture
def space() -> Iterator[Space]:
    with a_space() as made:
        yield made


def test_without_egress_nothing_is_reached_and_nothing_is_started(space: Space) -> None:
    host = egress.host_address()
    with (
        egress.open_egress_now(space.pid, Egress.NONE) as network,
        a_server(host) as near,
        a_server("127.0.0.1") as local,
    ):
        assert (network.host_address, network.resolv_conf) == (None, "")
        found = space.connect((host, near), ("127.0.0.1", local), (METADATA, 80))
        assert found == [UNREACHABLE, REFUSED, UNREACHABLE]


def test_full_egress_reaches_the_host_by_its_address_over_every_ip_version(space: Space) -> None:
    with egress.open_egress_now(space.pid, Egress.FULL) as network:
        assert network.host_address == egress.host_addresses()[0]
        for host in egress.host_addresses():
            with a_server(host) as port:
                assert space.connect((host, port)) == [f"reached {host}"]


def test_full_egress_reaches_neither_the_hosts_loopback_nor_metadata(space: Space) -> None:
    with (
        egress.open_egress_now(space.pid, Egress.FULL),
        a_server("127.0.0.1") as four,
        a_server("::1") as six,
    ):
        roads = [("127.0.0.1", four), (GATEWAY4, four), ("0.0.0.0", four), (METADATA, 80)]
        roads += [("::1", six), ("::ffff:127.0.0.1", four), (f"::ffff:{METADATA}", 80)]
        assert space.connect(*roads) == [REFUSED] * len(roads)


def test_a_port_that_nobody_serves_is_refused_and_not_waited_for(space: Space) -> None:
    with contextlib.ExitStack() as stack:
        hosts = egress.host_addresses()
        closed = [(host, stack.enter_context(a_server(host))) for host in hosts]
        stack.close()
        with egress.open_egress_now(space.pid, Egress.FULL):
            assert space.connect(*closed) == [REFUSED] * len(closed)


def test_a_list_reaches_what_is_listed_and_refuses_the_rest_at_once(space: Space) -> None:
    host = egress.host_address()
    with a_server(host) as listed, a_server(host) as other, a_server("127.0.0.1") as local:
        wanted = Allow((f"{host}:{listed}",))
        with egress.open_egress_now(space.pid, wanted) as network:
            assert network.resolv_conf == ""
            roads = [(host, listed), (host, other), (GATEWAY4, local), ("127.0.0.1", local)]
            roads += [(METADATA, 80), ("192.88.99.1", 443), (egress.host_addresses()[-1], other)]
            assert space.connect(*roads) == [f"reached {host}"] + [REFUSED] * 6


def test_a_list_lets_no_datagram_out_but_to_what_is_listed_for_udp(space: Space) -> None:
    host = egress.host_address()
    send = """
import json, socket, sys
found = []
for port in map(int, sys.argv[2:]):
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as line:
        line.settimeout(8)
        try:
            line.connect((sys.argv[1], port))
            line.send(b"ping")
            found.append(line.recv(9).decode())
        except PermissionError:
            found.append("refused")
print(json.dumps(found))
"""
    with contextlib.ExitStack() as stack:
        lines = [stack.enter_context(socket.socket(type=socket.SOCK_DGRAM)) for _ in range(2)]
        for each in lines:
            each.bind((host, 0))
            each.settimeout(30)
        listed, other = (each.getsockname()[1] for each in lines)

        def answer() -> None:
            _, sender = lines[0].recvfrom(9)
            lines[0].sendto(b"pong", sender)

        thread = threading.Thread(target=answer)
        thread.start()
        with egress.open_egress_now(space.pid, Allow((f"{host}:{listed}/udp",))):
            sent = space.python(send, host, str(listed), str(other))
        thread.join()
        assert sent == ["pong", "refused"]


DRIVER = """
import json, sys, time
from pathlib import Path
sys.path.insert(0, sys.argv[1])
from excise.jail import egress
from excise.types import Allow
hosts = Path("/etc/hosts")
with egress.open_egress_now(int(sys.argv[2]), Allow((sys.argv[3],)), refresh_s=0.1) as network:
    print(json.dumps(network.resolv_conf), flush=True)
    for line in sys.stdin:
        hosts.write_text(json.loads(line))
        print("written", flush=True)
"""


@contextlib.contextmanager
def a_driver(space: Space, hosts: Path, target: str) -> Iterator[subprocess.Popen[str]]:
    """Opens egress where /etc/hosts is that file, and rewrites it as it is told."""
    root = str(Path(egress.__file__).parents[2])
    bind = 'mount --bind "$1" /etc/hosts; shift; exec "$@"'
    command = [sys.executable, "-I", "-c", DRIVER, root, str(space.pid), target]
    with subprocess.Popen(
        ["unshare", "--mount", "sh", "-c", bind, "sh", str(hosts), *command],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
    ) as driver:  # fmt: skip
        try:
            yield driver
        finally:
            driver.kill()


def test_a_listed_name_is_found_and_followed_and_no_other_is_answered(
    space: Space, tmp_path: Path
) -> None:
    host = egress.host_address()
    hosts, resolv_conf = tmp_path / "hosts", tmp_path / "resolv.conf"
    hosts.write_text(f"{host} served.test\n")
    with a_server(host) as port, a_driver(space, hosts, f"served.test:{port}") as driver:
        assert driver.stdin is not None
        assert driver.stdout is not None
        resolv_conf.write_text(json.loads(driver.stdout.readline()))
        asked = ["served.test", "sub.served.test", "secret.example.org", "localhost.test"]
        found = space.python(LOOK_UP, *asked, resolv_conf=resolv_conf)
        assert found == [[host], True, True, True]
        assert space.connect((host, port)) == [f"reached {host}"]
        moved = f"203.0.113.7 served.test\n{METADATA} served.test\n"
        driver.stdin.write(json.dumps(moved) + "\n")
        driver.stdin.flush()
        assert driver.stdout.readline() == "written\n"
        while found[0] == [host]:
            found = space.python(LOOK_UP, "served.test", resolv_conf=resolv_conf)
        assert found == [["203.0.113.7"]]
        assert space.connect((host, port), (METADATA, port)) == [f"reached {host}", REFUSED]


@pytest.mark.parametrize(
    ("hosts", "why"),
    [("127.0.0.1 served.test\n", "no sandbox reaches"), ("", "has no address")],
    ids=["loopback", "unknown"],
)
def test_a_name_that_leads_nowhere_fails_the_creation_and_leaves_nothing(
    space: Space, tmp_path: Path, hosts: str, why: str
) -> None:
    (tmp_path / "hosts").write_text(hosts)
    with a_driver(space, tmp_path / "hosts", "served.test:443") as driver:
        said = driver.communicate()[1]
        assert driver.returncode == 1
    assert "SubstrateError: jail: create failed: no network: served.test" in said
    assert why in said
    assert space.connect(("203.0.113.7", 443)) == [UNREACHABLE]


def test_a_repository_is_cloned_from_the_host_through_a_list(space: Space, tmp_path: Path) -> None:
    source, clone = tmp_path / "source", tmp_path / "clone"
    git_dir = an_empty_repository(source)

    async def cloned() -> int:
        address = egress.host_address()
        async with GitServer({"tiny": git_dir}, host=address) as server:
            listed = Allow((f"{address}:{server.port}",))
            async with await egress.open_egress(space.pid, listed):
                git = ["git", "clone", "--quiet", server.url("tiny"), str(clone)]
                inside = ["nsenter", f"--net=/proc/{space.pid}/ns/net", *git]
                return await (await asyncio.create_subprocess_exec(*inside)).wait()

    assert asyncio.run(cloned()) == 0
    assert (clone / ".git").is_dir()


def test_a_process_that_does_not_exist_is_no_jail() -> None:
    with a_space() as made:
        pid = made.pid
    with pytest.raises(SandboxGone):
        egress.open_egress_now(pid, Egress.FULL)


def test_a_bad_list_is_refused_before_anything_is_looked_at() -> None:
    with pytest.raises(InputError):
        egress.open_egress_now(0, Allow(("pypi.org",)))
    with pytest.raises(InputError):
        egress.check(Allow((f"{METADATA}:80",)))
