"""Lays out a source archive as the repository it was made from: what it adds goes, what it rewrote returns."""

from __future__ import annotations

import errno
import shutil
import tarfile
from pathlib import Path, PurePosixPath

from excise.errors import InputError
from excise.tasks.descriptor import Task


def lay_out(archive: Path, task: Task, into: Path) -> None:
    """Fill the empty directory `into` with the release's files."""
    _unpack(archive, into)
    for path in task.delete:
        _remove(_below(into, path))
    for path, content in task.restore.items():
        target = _below(into, path)
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content, "utf-8", newline="")
    for found in into.rglob("*"):
        if not found.is_symlink():
            found.chmod(0o755 if found.is_dir() else 0o644)


def _unpack(archive: Path, into: Path) -> None:
    """Everything below the archive's one top directory; nothing may point out of it.

    By hand, because tarfile's own filters came only with Python 3.11.4, and Debian 12 has 3.11.2.
    """
    try:
        with tarfile.open(archive) as tar:
            members = tar.getmembers()
            tops = {member.name.split("/", 1)[0] for member in members}
            if len(tops) != 1:
                raise InputError(f"{archive.name} has {len(tops)} top directories instead of one")
            for member in members:
                if path := _inner(member.name):
                    _lay(tar, member, path, into)
    except (tarfile.TarError, EOFError) as error:
        raise InputError(f"{archive.name} cannot be unpacked: {error}") from error
    except (FileExistsError, IsADirectoryError, NotADirectoryError) as error:
        raise InputError(f"{archive.name} has two things at one path: {error.filename}") from error
    except ValueError as error:
        raise InputError(f"{archive.name} has a name that no file can have: {error}") from error
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            raise InputError(f"{archive.name} has a name that is too long") from error
        raise


def _inner(name: str) -> str:
    """A name without the top directory in front; empty for that directory itself."""
    return name.partition("/")[2].strip("/")


def _lay(tar: tarfile.TarFile, member: tarfile.TarInfo, path: str, into: Path) -> None:
    """One member at its place; what was there before under its name goes, as tar has it."""
    target = _below(into, path)
    if member.isdir():
        target.mkdir(parents=True, exist_ok=True)
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    target.unlink(missing_ok=True)
    if member.issym():
        if not member.linkname:
            raise InputError(f"{path!r} in the archive is a symbolic link to nothing")
        _refuse_outside(into, target.parent / member.linkname, path)
        target.symlink_to(member.linkname)
    elif member.islnk():
        shutil.copyfile(_file_below(into, _inner(member.linkname)), target)
    elif member.isfile():
        content = tar.extractfile(member)
        assert content is not None
        with target.open("xb") as file:
            shutil.copyfileobj(content, file)
    else:
        raise InputError(f"{path!r} in the archive is neither a file, a directory nor a link")


def _below(root: Path, path: str) -> Path:
    """The path inside `root`, also where the archive has laid a symbolic link in the way."""
    if ".." in PurePosixPath(path).parts:
        raise InputError(f"{path!r} leads out of its place in the archive")
    _refuse_outside(root, (root / path).parent, path)
    return root / path


def _file_below(root: Path, path: str) -> Path:
    found = _below(root, path)
    if found.is_symlink() or not found.is_file():
        raise InputError(f"{path!r} in the archive has a hard link but is no file")
    return found


def _refuse_outside(root: Path, target: Path, path: str) -> None:
    try:
        stays = target.resolve().is_relative_to(root.resolve())
    except RuntimeError:  # how Python before 3.13 says that links lead in a circle
        stays = False
    if not stays:
        raise InputError(f"{path!r} leads out of the archive by a symbolic link")


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)
