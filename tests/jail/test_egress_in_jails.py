"""Egress as a rollout sees it: asked for in a spec, had in a real jail, and not to be changed from in there."""

from __future__ import annotations

import asyncio
import contextlib
import json
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from excise import (
    Action,
    Allow,
    Egress,
    InputError,
    Observation,
    Session,
    Spec,
    SubstrateError,
    open_substrate,
)
from excise.jail import egress
from excise.substrates import registry
from excise.substrates.base import ReachesHost, Resettable
from excise.tasks.serve import GitServer

from .spaces import (
    CONNECT,
    REFUSED,
    UNREACHABLE,
    a_server,
    an_empty_repository,
    need_egress,
    refuse,
)

TAMPER = """
import ctypes, fcntl, os, socket, struct
PRCTL = ctypes.CDLL(None, use_errno=True)
def refused(what):
    try:
        what()
    except OSError as error:
        return True
    return False
def mark():
    socket.socket().setsockopt(socket.SOL_SOCKET, socket.SO_MARK, 0x65786369)
def raw():
    socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_TCP)
def packet():
    socket.socket(17, socket.SOCK_RAW, 0)
def down():
    with socket.socket() as any:
        fcntl.ioctl(any, 0x8914, struct.pack("16sH14x", b"net0", 0))
def rules():
    # NFT_MSG_DELTABLE of everything, in a batch, as `nft flush ruleset` sends it
    def message(kind, flags, family, subsystem=0):
        return struct.pack("=IHHII", 20, kind, flags, 1, 0) + struct.pack(">BBH", family, 0, subsystem)
    batch = message(16, 1, 0, 10) + message(10 << 8 | 2, 5, 0) + message(17, 1, 0, 10)
    with socket.socket(socket.AF_NETLINK, socket.SOCK_RAW, 12) as line:
        line.settimeout(5)
        line.sendto(batch, (0, 0))
        error = struct.unpack("=i", line.recv(999)[16:20])[0]
        if error:
            raise OSError(-error, os.strerror(-error))
def space():
    if PRCTL.unshare(0x40000000):
        raise OSError(ctypes.get_errno(), "unshare")
print([each.__name__ for each in (mark, raw, packet, down, rules, space) if not refused(each)])
"""


@pytest.fixture(autouse=True, scope="module")
def _needed() -> None:
    need_egress()
    jails = asyncio.run(registry.availability("jail"))
    if not jails.usable:
        refuse("jail", str(jails))


def connect(host: str, port: int) -> Action:
    return Action(("python3", "-c", CONNECT, json.dumps([(host, port)])))


def outcome(seen: Observation) -> str:
    assert seen.ok, seen.text
    return str(json.loads(seen.stdout)[0])


async def reached(session: Session, host: str, port: int) -> str:
    return outcome(await session.act(connect(host, port)))


@contextlib.asynccontextmanager
async def jailed(wanted: Egress | Allow) -> AsyncIterator[Session]:
    substrate = open_substrate("jail")
    try:
        async with Session(substrate, Spec(egress=wanted)) as session:
            yield session
    finally:
        await substrate.close()


def test_a_jail_reaches_nothing_unless_it_is_asked_for() -> None:
    async def tried() -> list[str]:
        host = egress.host_address()
        async with jailed(Egress.NONE) as session:
            roads = ((host, near), ("127.0.0.1", local))
            return [await reached(session, *road) for road in roads]

    with a_server(egress.host_address()) as near, a_server("127.0.0.1") as local:
        assert asyncio.run(tried()) == [UNREACHABLE, REFUSED]


def test_a_jail_reaches_what_its_list_names_and_cannot_change_that() -> None:
    async def tried() -> list[str]:
        async with jailed(Allow((f"{host}:{listed}",))) as session:
            before = [await reached(session, host, port) for port in (listed, other)]
            tampered = await session.act(Action(("python3", "-c", TAMPER)))
            after = [await reached(session, host, port) for port in (listed, other)]
            return [*before, tampered.text.strip(), *after]

    host = egress.host_address()
    with a_server(host) as listed, a_server(host) as other:
        assert asyncio.run(tried()) == [
            f"reached {host}", REFUSED, "[]", f"reached {host}", REFUSED,
        ]  # fmt: skip


def test_a_jail_asks_the_name_server_that_its_network_tells() -> None:
    async def seen() -> str:
        async with jailed(Egress.FULL) as session:
            return (await session.act(Action(("cat", "/etc/resolv.conf")))).stdout.decode()

    host = Path("/etc/resolv.conf").read_text()
    servers = [line for line in host.splitlines() if line.startswith("nameserver")]
    if not servers:
        pytest.skip("this host has no name server that its jails could ask")
    assert "nameserver" in asyncio.run(seen())


def test_a_repository_is_cloned_in_a_jail_with_full_egress(tmp_path: Path) -> None:
    git_dir = an_empty_repository(tmp_path / "source")

    async def cloned() -> str:
        substrate = open_substrate("jail")
        assert isinstance(substrate, ReachesHost)
        served = GitServer({"one": git_dir}, host=await substrate.host_address())
        try:
            async with served as git, Session(substrate, Spec(egress=Egress.FULL)) as session:
                script = f"git clone -q {git.url('one')} x && git -C x log --format=%s"
                return (await session.act(Action.shell(script, merge=True))).text
        finally:
            await substrate.close()

    assert asyncio.run(cloned()) == "one\n"


def test_a_jail_that_is_reset_has_its_network_again() -> None:
    async def tried() -> list[str]:
        substrate = open_substrate("jail")
        assert isinstance(substrate, Resettable)
        try:
            box = await substrate.create(Spec(egress=Allow((f"{host}:{listed}",))))
            found: list[str] = []
            for _ in range(2):
                await substrate.ready(box)
                found += [
                    outcome(await substrate.run(box, connect(host, port)))
                    for port in (listed, other)
                ]
                await substrate.reset(box)
            await substrate.destroy(box)
            return found
        finally:
            await substrate.close()

    host = egress.host_address()
    with a_server(host) as listed, a_server(host) as other:
        assert asyncio.run(tried()) == [f"reached {host}", REFUSED] * 2


def test_a_list_that_cannot_be_makes_no_jail() -> None:
    async def tried() -> None:
        async with jailed(Allow(("https://pypi.org",))):
            pytest.fail("this list makes no sense")

    with pytest.raises(InputError, match="host:port"):
        asyncio.run(tried())


def test_a_jail_whose_network_fails_leaves_no_socket_in_the_event_loop(
    tmp_path, monkeypatch
) -> None:
    need_egress()
    (tmp_path / "pasta").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "pasta").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path), prepend=":")

    async def main() -> Observation:
        jail = open_substrate("jail")
        try:
            for _ in range(3):
                with pytest.raises(SubstrateError):
                    await jail.create(Spec(egress=Egress.FULL))
            # the numbers of the lost sockets are used again by what comes after them
            async with Session(jail, Spec()) as session:
                return await session.act(Action(("echo", "fine")))
        finally:
            await jail.close()

    assert asyncio.run(main()).text == "fine\n"
