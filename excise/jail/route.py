"""What this host has for the networks of jails: a way out, an address, and the tools."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket

from excise.jail.phase import unavailable
from excise.substrates.base import Availability

_PACKAGES = {"pasta": "passt", "nft": "nftables", "dnsmasq": "dnsmasq-base"}
_TUN = "/dev/net/tun"
_BIN = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def availability() -> Availability:
    """Whether jails of this host can have a network."""
    missing = [package for tool, package in _PACKAGES.items() if _found(tool) is None]
    if missing:
        return Availability(
            False, "the tools for egress are missing", f"apt install {' '.join(missing)}"
        )
    if not os.access(_TUN, os.F_OK):
        return Availability(False, f"there is no {_TUN}", "modprobe tun")
    if not os.access(_TUN, os.R_OK | os.W_OK):
        return Availability(False, f"{_TUN} may not be opened", f"sudo chmod 666 {_TUN}")
    if not host_addresses():
        return Availability(False, "this host has no default route")
    return Availability(True, "pasta, nft and dnsmasq are here")


def host_addresses() -> tuple[str, ...]:
    """This host's own addresses towards the world: of each IP version that has a route, IPv4 first."""
    found = (_source(socket.AF_INET, "192.88.99.1"), _source(socket.AF_INET6, "2002::1"))
    return tuple(each for each in found if each is not None)


def host_address() -> str:
    """The address at which a server on this host is reached from a jail, and to bind such a server to."""
    found = host_addresses()
    if not found:
        raise unavailable("this host has no default route, so jails on it can have no egress")
    return found[0]


def find_tools(*wanted: str) -> dict[str, str]:
    """Where these are; SubstrateUnavailable names the packages of those that are not here."""
    found = {tool: _found(tool) for tool in wanted}
    if missing := [_PACKAGES[tool] for tool, place in found.items() if place is None]:
        raise unavailable(
            f"egress needs tools that are missing; try: apt install {' '.join(missing)}"
        )
    return {tool: place for tool, place in found.items() if place is not None}


def _found(tool: str) -> str | None:
    return shutil.which(tool) or shutil.which(tool, path=_BIN)


def _source(family: socket.AddressFamily, towards: str) -> str | None:
    """The address that a packet to there would come from. None is sent."""
    with contextlib.suppress(OSError), socket.socket(family, socket.SOCK_DGRAM) as anyone:
        anyone.connect((towards, 9))
        address = str(anyone.getsockname()[0])
        return None if address.startswith(("127.", "::1", "fe80:")) else address
    return None
