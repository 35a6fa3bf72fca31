"""Files go through commands: the API server has no way of its own to a pod's. The image needs sh, cat, head and tar."""

from __future__ import annotations

import asyncio
import posixpath
import shlex
import tempfile
from pathlib import Path

from excise.errors import InputError
from excise.substrates.container.files import absolute, pack
from excise.substrates.kubernetes.actions import Actions
from excise.types import Action, Observation, Repo

_MISSING, _FOLDER = 3, 4
_EVERYTHING = 1 << 40


async def read(actions: Actions, box: str, path: str) -> bytes:
    place = shlex.quote(absolute(path))
    found = await _told(
        actions,
        box,
        f"[ -e {place} ] || exit {_MISSING}; [ -d {place} ] && exit {_FOLDER}; cat {place}",
    )
    if found.exit_code == _MISSING:
        raise FileNotFoundError(path)
    if found.exit_code == _FOLDER:
        raise IsADirectoryError(path)
    return _checked(path, found).stdout


async def write(actions: Actions, box: str, path: str, data: bytes) -> None:
    place = absolute(path)
    folder = shlex.quote(posixpath.dirname(place))
    script = f"mkdir -p {folder} && cat > {shlex.quote(place)}"
    _checked(path, await _told(actions, box, script, data))


async def upload(actions: Actions, box: str, repo: Repo) -> None:
    """A checkout, as the archive of it that tar unpacks there."""
    at = absolute(repo.path)
    with tempfile.TemporaryDirectory() as scratch:
        archive = Path(scratch, "repo.tar")
        await asyncio.to_thread(pack, Path(repo.source), at.lstrip("/"), archive)
        data = await asyncio.to_thread(archive.read_bytes)
    done = await _told(actions, box, "tar -x -f - -C / --no-same-owner", data)
    if not done.ok:
        raise InputError(f"the checkout could not be unpacked in the pod: {done.text.strip()}")


async def _told(actions: Actions, box: str, script: str, data: bytes = b"") -> Observation:
    argv = ("sh", "-c", script)
    action = Action(argv, stdin=data, timeout_s=None, output_limit_bytes=_EVERYTHING)
    return await actions.run(box, action, argv)


def _checked(path: str, found: Observation) -> Observation:
    if not found.ok:
        raise OSError(f"{path}: {found.text.strip()}")
    return found
