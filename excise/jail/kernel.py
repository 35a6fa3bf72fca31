"""The system calls about name spaces and mounts that Python 3.11 has no function for."""

from __future__ import annotations

import ctypes
import os
import signal

NEWNS, NEWIPC, NEWUSER, NEWPID, NEWNET = 0x20000, 0x8000000, 0x10000000, 0x20000000, 0x40000000

_BIND, _REC, _PRIVATE = 0x1000, 0x4000, 0x40000
_PDEATHSIG = 1
_GET_USERNS = 0xB701

_libc = ctypes.CDLL(None, use_errno=True)


def _must(done: int, what: str) -> None:
    if done != 0:
        number = ctypes.get_errno()
        raise OSError(number, os.strerror(number), what)


def enter(fd: int, kind: int) -> None:
    """Go into the name space behind a descriptor."""
    _must(_libc.setns(fd, kind), "setns")


def unshare(kinds: int) -> None:
    """Leave for new name spaces of these kinds."""
    _must(_libc.unshare(kinds), "unshare")


def private_mounts() -> None:
    """Keep all mounts from here on to this mount name space."""
    _must(_libc.mount(None, b"/", None, _REC | _PRIVATE, None), "private mounts")


def mount(source: str, target: str, kind: str, options: str) -> None:
    """Mount a file system of that kind."""
    done = _libc.mount(source.encode(), target.encode(), kind.encode(), 0, options.encode())
    _must(done, target)


def bind(source: str, target: str) -> None:
    """Show a file at another place too."""
    _must(_libc.mount(source.encode(), target.encode(), None, _BIND, None), target)


def die_with_parent() -> None:
    """Be killed when the parent ends, however it ends."""
    _must(_libc.prctl(_PDEATHSIG, signal.SIGKILL, 0, 0, 0), "prctl")


def owner_of(namespace: int) -> int:
    """A descriptor of the user name space that owns this name space."""
    import fcntl

    return fcntl.ioctl(namespace, _GET_USERNS)
