"""What a failed step of making a jail means, and what can be done about it."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from excise.errors import Phase, SubstrateError
from excise.jail.control import Failed
from excise.jail.phase import failed, gone, unavailable

_REMEDIES = {
    "user name space": "allow user name spaces: sysctl -w user.max_user_namespaces=65536, and where the"
    " distribution restricts them, kernel.apparmor_restrict_unprivileged_userns=0 or"
    " kernel.unprivileged_userns_clone=1; or run as root",
    "id map": "a user name space could be made but not filled: a security module restricts it",
    "bare tree": "mounting in a name space of one's own is not allowed here: give the container"
    " CAP_SYS_ADMIN (docker run --privileged), or run outside of it",
    "mounts": "name spaces of mounts cannot be made here: give the container CAP_SYS_ADMIN",
    "mount name space": "name spaces of mounts cannot be made here: raise user.max_mnt_namespaces",
    "network name space": "name spaces of networks cannot be made here: raise user.max_net_namespaces",
    "overlay": "overlayfs upon these layers is refused: it needs Linux 5.19, and without root layers"
    " that belong to the user and Linux 6.6",
    "upper": "without root, the layers must belong to the user who makes jails of them",
    "proc": "a new /proc is refused: the container's own hides parts of it; run outside of it",
}
_TRANSIENT = {
    errno.EAGAIN,
    errno.ENOMEM,
    errno.ENFILE,
    errno.EMFILE,
    errno.EINTR,
    errno.ENOSPC,
    errno.EPIPE,
}


def explain(answer: Failed, phase: Phase) -> SubstrateError:
    """The error that a caller can act on."""
    if answer.error == errno.ESRCH and answer.stage in {"snapshot", "folder"}:
        return gone("there is no such jail (any more)", phase)
    known = errno.errorcode.get(answer.error, str(answer.error))
    why = f"{answer.stage}: {os.strerror(answer.error)} ({known})"
    text = f"cannot make a jail: {why}"
    if answer.tag == 0:
        return unavailable(_with_remedy(f"the spawner cannot work here: {why}", answer.stage))
    if answer.error in _TRANSIENT:
        return failed(text, phase, retryable=True)
    if answer.stage.startswith("/") and answer.error == errno.EINVAL:
        remedy = "its file system cannot be shown with other ids: keep layers on ext4, xfs or btrfs"
        return failed(f"cannot stand on {answer.stage}: {remedy}", phase)
    if answer.stage.startswith("/") and answer.error == errno.ENOENT:
        return failed(f"there is no {answer.stage} to stand on", phase)
    return failed(_with_remedy(text, answer.stage), phase)


def _with_remedy(text: str, stage: str) -> str:
    if stage.startswith("/") and not Path(stage).exists():
        return text
    remedy = _REMEDIES.get(stage)
    return f"{text}; {remedy}" if remedy else text
