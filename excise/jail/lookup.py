"""Looks names up as this host does, in a child, because the C library cannot be interrupted."""

from __future__ import annotations

import contextlib
import json
import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from ipaddress import ip_address

from excise.jail.destinations import Address


@dataclass(slots=True)
class Lookup:
    """One look-up under way: its descriptor can be read once there are answers."""

    fd: int
    pid: int

    @classmethod
    def of(cls, asked: Sequence[str], versions: set[int]) -> Lookup:
        """Start asking. Addresses of an IP version that the host does not have are no answers."""
        fd, out = os.pipe()
        pid = os.fork()
        if pid:
            os.close(out)
            return cls(fd, pid)
        with contextlib.suppress(BrokenPipeError), os.fdopen(out, "w") as pipe:
            json.dump({name: _looked_up(name, versions) for name in asked}, pipe)
        os._exit(0)

    def answers(self) -> dict[str, list[Address]]:
        """What was found; nothing, if the child came to grief."""
        with os.fdopen(self.fd) as pipe:
            text = pipe.read()
        os.waitpid(self.pid, 0)
        found = json.loads(text) if text else {}
        return {name: [ip_address(each) for each in of_it] for name, of_it in found.items()}


def _looked_up(name: str, versions: set[int]) -> list[str]:
    """As bytes, or Python would first look for its codec of international names."""
    try:
        found = socket.getaddrinfo(name.encode(), None, type=socket.SOCK_STREAM)
    except OSError:
        return []
    addresses = {str(address[0]).partition("%")[0] for *_, address in found}
    return sorted(a for a in addresses if ip_address(a).version in versions)
