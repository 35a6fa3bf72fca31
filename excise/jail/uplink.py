"""What a jail's uplink is made of: the command lines of pasta and dnsmasq, and the jail's resolv.conf. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from excise.jail.destinations import Address

INSIDE4, GATEWAY4, BITS4 = "192.0.0.2", "192.0.0.1", "29"
"""Of a range that no network routes (RFC 7335), so that they hide nobody's addresses."""
INSIDE6, GATEWAY6 = "fd65:7863:6973:65::2", "fd65:7863:6973:65::1"
INTERFACE = "net0"
NAME_SERVER = "127.0.0.11"
"""Where a jail finds a name server that is its own: on its loopback, as in Docker's networks."""
ANSWER_TTL_S = 15
_MOST_RESOLVERS = 3  # as many as any C library looks at


@dataclass(frozen=True, slots=True)
class Resolving:
    """How this host looks names up."""

    servers: tuple[Address, ...] = ()
    search: tuple[str, ...] = ()

    @classmethod
    def of(cls, text: str) -> Resolving:
        """From the text of a resolv.conf."""
        servers: list[Address] = []
        search: tuple[str, ...] = ()
        for line in text.splitlines():
            match line.split():
                case ["nameserver", server, *_]:
                    servers += _address(server)
                case ["search" | "domain", *domains]:
                    search = tuple(domains)
        return cls(tuple(servers), search)

    @property
    def beyond_loopback(self) -> tuple[Address, ...]:
        """The servers that another network name space can ask as well."""
        return tuple(s for s in self.servers if not s.is_loopback)[:_MOST_RESOLVERS]


def _address(text: str) -> list[Address]:
    """None for what is no address, or one of a single interface (fe80::1%eth0), which a jail does not have."""
    if "%" in text:
        return []
    try:
        return [ip_address(text)]
    except ValueError:
        return []


@dataclass(frozen=True, slots=True)
class Naming:
    """How a jail with full egress looks names up."""

    servers: tuple[Address, ...]
    """That it asks through the network."""
    resolv_conf: str
    stub: str = ""
    """On the host's loopback, to be asked for the jail."""


def naming(choices: Iterable[Resolving]) -> Naming:
    """Ask the first of the host's resolvers that can be asked from elsewhere; else have them asked for us."""
    listed = list(choices)
    for each in listed:
        if found := each.beyond_loopback:
            return Naming(found, _resolv_conf(found, each.search))
    for each in listed:
        for server in each.servers:
            return Naming((), _resolv_conf([ip_address(NAME_SERVER)], each.search), str(server))
    return Naming((), "")


def _resolv_conf(servers: Iterable[Address], search: Sequence[str]) -> str:
    lines = [f"search {' '.join(search)}"] if search else []
    return "".join(f"{line}\n" for line in (*lines, *(f"nameserver {s}" for s in servers)))


def allowed_resolv_conf(listed: Iterable[str]) -> str:
    """For a jail whose list names these hosts. Without names nobody listens: lookups fail at once."""
    return f"nameserver {NAME_SERVER}\noptions timeout:2 attempts:2\n" if list(listed) else ""


def pasta_command(
    program: str, namespace: str, versions: Iterable[int], options: Iterable[str]
) -> list[str]:
    """User-mode networking for that name space. Every mapping of ports or of the host's loopback is off."""
    have = set(versions)
    four = ["--address", INSIDE4, "--netmask", BITS4, "--gateway", GATEWAY4]
    six = ["--address", INSIDE6, "--gateway", GATEWAY6]
    closed = ["--no-map-gw", "-t", "none", "-u", "none", "-T", "none", "-U", "none"]
    return [
        *(program, "--foreground", "--quiet", "--runas", "0"),
        *("--config-net", "--ns-ifname", INTERFACE),
        *closed,
        *("--no-dhcp", "--no-dhcpv6", "--no-ra"),
        *(four if 4 in have else ["--ipv6-only"]),
        *(six if 6 in have else ["--ipv4-only"]),
        *options,
        *("--netns", namespace),
    ]


def dnsmasq_command(program: str, hosts: str, user: str) -> list[str]:
    """A name server that knows one file and nobody to ask: no other name leaves the jail."""
    return [
        program,
        "--keep-in-foreground",
        "--conf-file=/dev/null",
        *("--no-resolv", "--no-hosts", "--no-poll", "--local=/#/"),
        f"--addn-hosts={hosts}",
        f"--local-ttl={ANSWER_TTL_S}",
        *(f"--listen-address={NAME_SERVER}", "--bind-interfaces"),
        *("--pid-file", "--log-facility=-", "--cache-size=0"),
        f"--user={user}",
        "--group=",
    ]
