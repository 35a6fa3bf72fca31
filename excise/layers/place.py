"""Where the store is on this host, and its folders: owned and entered by one user only."""

from __future__ import annotations

import os
import subprocess
from dataclasses import dataclass
from pathlib import Path

from excise.errors import InputError, LayerError

_FORMAT = "excise layer store 1\n"
TREE = "tree"
"""The folder of a layer that is mounted; what is said about the layer stands beside it."""

_BOOT = Path("/proc/sys/kernel/random/boot_id")


def root() -> Path:
    """`$EXCISE_STORE`, else `/var/lib/excise` for root, else `$XDG_DATA_HOME/excise` or `~/.local/share/excise`."""
    if chosen := os.environ.get("EXCISE_STORE"):
        return Path(chosen).absolute()
    if os.geteuid() == 0:
        return Path("/var/lib/excise")
    data = os.environ.get("XDG_DATA_HOME")
    return (Path(data) if data else Path.home() / ".local" / "share") / "excise"


@dataclass(frozen=True, slots=True)
class Place:
    """The folders below a store's root. All are on one file system, so that a rename publishes at once."""

    root: Path

    @property
    def layers(self) -> Path:
        return self.root / "layers"

    @property
    def building(self) -> Path:
        return self.root / "tmp"

    @property
    def locks(self) -> Path:
        return self.root / "locks"

    @property
    def logs(self) -> Path:
        return self.root / "logs"

    def log(self, key: str) -> Path:
        """What the last build of that layer said, if it failed."""
        return self.logs / f"{key}.log"

    def layer(self, key: str) -> Path:
        return self.layers / key

    def lock(self, key: str) -> Path:
        """Held by whoever builds or removes the layer."""
        return self.locks / key

    def pin(self, key: str) -> Path:
        """Held, shared, by whoever uses the layer; its time of modification is when it was last used."""
        return self.pin_in(self.layer(key))

    @staticmethod
    def pin_in(folder: Path) -> Path:
        return folder / "pin"

    def prepare(self) -> None:
        """Make what is missing. Only the owner may enter: trees hold programs that run as their owner."""
        try:
            self.root.mkdir(mode=0o700, parents=True, exist_ok=True)
            for folder in (self.layers, self.building, self.locks):
                folder.mkdir(mode=0o700, exist_ok=True)
            note = self.root / "format"
            if not note.exists():
                written = self.building / f"format.{os.getpid()}"
                written.write_text(_FORMAT)
                written.replace(note)
            found = note.read_text()
        except (OSError, UnicodeDecodeError) as error:
            reason = error.strerror if isinstance(error, OSError) else "not a store"
            raise InputError(
                f"{self.root} cannot hold layers ({reason}); set EXCISE_STORE to a folder that can"
            ) from error
        if found != _FORMAT:
            raise InputError(
                f"{self.root} is another version's store; set EXCISE_STORE to another folder"
            )


def boot() -> str:
    """Names the time since this machine started."""
    return _BOOT.read_text().strip()


def remove_tree(folder: Path) -> None:
    """Remove `folder`, of any depth and with any names; what others mounted in it is not entered."""
    command = ["rm", "-rf", "--one-file-system", "--", str(folder)]
    done = subprocess.run(command, capture_output=True, check=False)
    if folder.exists():
        said = done.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason given"]
        raise LayerError(f"{folder} cannot be removed: {said[-1]}")


def is_full(folder: Path) -> bool:
    """Whether there is no room left for a file to speak of, in bytes or in names."""
    status = os.statvfs(folder)
    bytes_left = status.f_bavail * status.f_frsize
    return bytes_left < 1 << 20 or (status.f_files > 0 and status.f_favail < 16)
