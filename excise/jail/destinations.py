"""What an egress list may name, and what no sandbox reaches whatever it names. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import IPv4Address, IPv4Network, IPv6Address, IPv6Network, ip_address

from excise.errors import InputError
from excise.types import Allow

Address = IPv4Address | IPv6Address

REFUSED4 = tuple(
    map(
        IPv4Network,
        (
            "0.0.0.0/8",  # this host, to many a kernel
            "100.100.100.200/32",  # metadata of Alibaba's cloud
            "127.0.0.0/8",
            "168.63.129.16/32",  # Azure's host agent
            "169.254.0.0/16",  # link-local, and with it the metadata service of most clouds
            "192.0.0.0/24",  # metadata of Oracle's cloud; the jails' own addresses
            "224.0.0.0/4",
            "255.255.255.255/32",
        ),
    )
)
_NAT64 = int(IPv6Address("64:ff9b::"))

REFUSED6 = tuple(
    map(
        IPv6Network,
        (
            "::/96",  # unspecified, loopback, IPv4 written another way
            "::ffff:0:0/96",
            "fd00:ec2::/32",  # metadata of Amazon's cloud
            "fd20:ce::/32",  # metadata of Google's cloud
            "fd65:7863:6973:65::/64",  # the jails' own
            "fe80::/10",
            "ff00::/8",
        ),
    )
) + tuple(IPv6Network((_NAT64 + int(net.network_address), 96 + net.prefixlen)) for net in REFUSED4)
"""The last ones are the IPv4 ones, as hosts without IPv4 write them for their translator."""

_TARGET = re.compile(
    r"(?:\[(?P<six>[0-9A-Fa-f:.]+)\]|(?P<host>[^:/\[\]\s]+)):(?P<port>[0-9]{1,5})"
    r"(?:/(?P<protocol>tcp|udp))?"
)
_LABEL = re.compile(r"(?!-)[a-z0-9_-]{1,63}(?<!-)")
_FORM = "write host:port, host:port/udp or [IPv6]:port"


@dataclass(frozen=True, slots=True, order=True)
class Destination:
    """One target of an egress list: `host` is a name in lower case, or an address as it is usually written."""

    host: str
    port: int
    protocol: str = "tcp"

    @property
    def address(self) -> Address | None:
        """Its address, if it was given by address."""
        return _literal(self.host)

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{host}:{self.port}" + ("/udp" if self.protocol == "udp" else "")


def is_refused(address: Address) -> bool:
    """Whether no sandbox reaches this address: the host's loopback, link-local, metadata, multicast."""
    if isinstance(address, IPv4Address):
        return any(address in net for net in REFUSED4)
    return any(address in net for net in REFUSED6)


def destinations(egress: Allow) -> tuple[Destination, ...]:
    """The targets of the list, sorted, each once; InputError names the first that cannot be."""
    targets: object = egress.targets
    if isinstance(targets, str):
        raise InputError(f"Allow takes a tuple of targets, not the string {targets!r}")
    return tuple(sorted({_parsed(target) for target in egress.targets}))


def names(wanted: Iterable[Destination]) -> tuple[str, ...]:
    """The names among the targets, which somebody must look up."""
    return tuple(sorted({d.host for d in wanted if d.address is None}))


def _parsed(target: str) -> Destination:
    found = _TARGET.fullmatch(target)
    if found is None:
        raise InputError(f"egress to {target!r} cannot be allowed: {_FORM}")
    port = int(found["port"])
    if not 0 < port < 65536:
        raise InputError(f"egress to {target!r} cannot be allowed: a port is 1 to 65535")
    host = _host(target, found["six"] or found["host"])
    return Destination(host, port, found["protocol"] or "tcp")


def _host(target: str, given: str) -> str:
    address = _literal(given)
    if address is not None:
        if is_refused(address):
            raise InputError(
                f"egress to {target!r} cannot be allowed: loopback, link-local and metadata"
                " addresses are never reached; a server on this host is reached at host_address()"
            )
        return str(address)
    name = given.lower().removesuffix(".")
    labels = name.split(".")
    if ":" in name or len(name) > 253 or not all(map(_LABEL.fullmatch, labels)):
        raise InputError(f"egress to {target!r} cannot be allowed: {given!r} is no host name")
    if labels[-1].isdigit():
        raise InputError(f"egress to {target!r} cannot be allowed: {given!r} is no IPv4 address")
    return name


def _literal(host: str) -> Address | None:
    try:
        return ip_address(host)
    except ValueError:
        return None
