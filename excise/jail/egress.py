"""The network of a jail beyond its own loopback: `none`, `full`, or a list of targets.

A jail is made with a network name space in which only the loopback is up. `open_egress` puts a packet
filter into it from outside and has pasta carry what the filter lets pass; a jail without egress costs
nothing and starts nothing. It can be opened for a jail that has long been waiting in a pool.

Covered: the host's loopback, link-local and metadata addresses are out of reach in every mode; with a list,
everything else is, and names that are not on it get no answer, from anybody.
Not covered: an allowed address serves whatever is behind it (a content network, many names); with `full`,
servers that listen on all of the host's addresses can be reached, as from any neighbour.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import select
from collections.abc import Callable
from dataclasses import asdict, astuple, dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from excise.errors import Phase
from excise.jail import kernel
from excise.jail.destinations import Destination, destinations, names
from excise.jail.firewall import full_rules
from excise.jail.keeper import NAMESPACE, Plan
from excise.jail.keeping import Keeping
from excise.jail.phase import failed, gone
from excise.jail.route import availability, find_tools, host_address, host_addresses
from excise.jail.uplink import Resolving, allowed_resolv_conf, naming, pasta_command
from excise.types import Allow, Egress

__all__ = [
    "Network",
    "availability",
    "check",
    "host_address",
    "host_addresses",
    "open_egress",
    "open_egress_now",
]

_RESOLV_CONFS = ("/etc/resolv.conf", "/run/systemd/resolve/resolv.conf")
REFRESH_S = 30.0
_DEADLINE_S = 15.0
_SLACK_S = 20.0  # looking names up comes before the deadline for packets


@dataclass(slots=True)
class Network:
    """The open network of one jail. `async with`, or `with` where there is no loop, or close it yourself."""

    host_address: str | None
    """Where the jail reaches a server that listens on this host's address; None without egress."""
    resolv_conf: str
    """What belongs into the jail's /etc/resolv.conf."""
    _keeping: Keeping | None = None

    @property
    def alive(self) -> bool:
        """False once the tools are gone, which leaves the jail without network but otherwise as it was."""
        return self._keeping is None or self._keeping.alive

    def close_now(self) -> None:
        """End the tools and wait until they have gone. Idempotent."""
        keeping = self.released()
        if keeping is not None:
            keeping.end_now()

    async def close(self) -> None:
        """As `close_now`, without blocking the loop."""
        keeping = self.released()
        if keeping is not None:
            await keeping.end()

    def released(self) -> Keeping | None:
        """Its keeper, which the caller has to end from now on."""
        keeping, self._keeping = self._keeping, None
        return keeping

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close_now()

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()


async def open_egress(
    pid: int,
    egress: Egress | Allow,
    *,
    refresh_s: float = REFRESH_S,
    start: Callable[[], Keeping] = Keeping,
) -> Network:
    """Give the jail whose init is `pid` its network; return when packets pass. Cancelling leaves nothing.

    The names of an egress list are looked up again every `refresh_s`.
    """
    asked = _Asked.of(egress)
    if asked is None:
        return Network(None, "")
    keeping = asked.begin(pid, refresh_s, start)
    try:
        await keeping.until_ready(_DEADLINE_S + _SLACK_S)
    except BaseException:
        await asyncio.shield(keeping.end())
        raise
    return Network(asked.host[0], asked.resolv_conf, keeping)


def open_egress_now(
    pid: int,
    egress: Egress | Allow,
    *,
    refresh_s: float = REFRESH_S,
    start: Callable[[], Keeping] = Keeping,
) -> Network:
    """As `open_egress`, for callers without an event loop."""
    asked = _Asked.of(egress)
    if asked is None:
        return Network(None, "")
    keeping = asked.begin(pid, refresh_s, start)
    try:
        keeping.until_ready_now(_DEADLINE_S + _SLACK_S)
    except BaseException:
        keeping.end_now()
        raise
    return Network(asked.host[0], asked.resolv_conf, keeping)


def check(egress: Egress | Allow) -> None:
    """InputError or SubstrateUnavailable if this can never be had here. Nothing is started or looked up."""
    _Asked.of(egress)


@dataclass(frozen=True, slots=True)
class _Asked:
    """A network that can be had here, as far as can be told before it is made."""

    host: tuple[str, ...]
    resolv_conf: str
    rules: str | None
    wanted: tuple[Destination, ...]
    options: tuple[str, ...]
    tools: dict[str, str]
    stub: str

    @classmethod
    def of(cls, egress: Egress | Allow) -> _Asked | None:
        """None for no egress, which needs nothing."""
        if egress is Egress.NONE:
            return None
        wanted = destinations(egress) if isinstance(egress, Allow) else ()
        host = (host_address(), *host_addresses()[1:])
        if isinstance(egress, Allow):
            tools = find_tools("pasta", "nft", *(("dnsmasq",) if names(wanted) else ()))
            udp = () if any(d.protocol == "udp" for d in wanted) else ("--no-udp",)
            options = ("-D", "none", *udp)  # never --no-icmp: that ends neighbour discovery too
            return cls(host, allowed_resolv_conf(names(wanted)), None, wanted, options, tools, "")
        found = naming(Resolving.of(_text(place)) for place in _RESOLV_CONFS)
        rules, tools = full_rules(found.servers), find_tools("pasta", "nft")
        return cls(host, found.resolv_conf, rules, (), ("-D", "none"), tools, found.stub)

    def begin(self, pid: int, refresh_s: float, start: Callable[[], Keeping]) -> Keeping:
        """Tell a keeper. It works on descriptors, so that a pid that is used again cannot mislead it."""
        with contextlib.ExitStack() as held:
            descriptors = _descriptors(pid, held)
            versions = [6 if ":" in each else 4 for each in self.host]
            command = pasta_command(self.tools["pasta"], str(NAMESPACE), versions, self.options)
            plan = Plan(
                self.tools["nft"],
                command,
                self.tools.get("dnsmasq", ""),
                self.rules,
                self.wanted,
                self.host,
                self.stub,
                _DEADLINE_S,
                refresh_s,
            )
            keeping = start()
            try:
                words = {**asdict(plan), "wanted": [astuple(d) for d in self.wanted]}
                keeping.tell(words, descriptors)
            except BaseException:
                keeping.end_now()
                raise
        return keeping


def _descriptors(pid: int, held: contextlib.ExitStack) -> tuple[int, ...]:
    """The jail's init, its network, and whose that is, unless our own user name space's."""
    try:
        jail = os.pidfd_open(pid)
        held.callback(os.close, jail)
        network = os.open(f"/proc/{pid}/ns/net", os.O_RDONLY | os.O_CLOEXEC)
        held.callback(os.close, network)
        users = kernel.owner_of(network)
        held.callback(os.close, users)
    except (ProcessLookupError, FileNotFoundError) as error:
        raise gone(f"there is no jail with process {pid}", Phase.CREATE) from error
    except OSError as error:
        raise failed(f"the network of process {pid} cannot be opened: {error}") from error
    if select.select([jail], [], [], 0)[0]:
        raise gone(f"the jail of process {pid} has ended", Phase.CREATE)
    own = Path("/proc/self/ns/user").stat()
    theirs = os.fstat(users)
    if (own.st_dev, own.st_ino) == (theirs.st_dev, theirs.st_ino):
        return jail, network
    return jail, network, users


def _text(place: str) -> str:
    try:
        return Path(place).read_text()
    except OSError:
        return ""
