"""Images made by hand, a registry of our own on loopback, and overlays mounted over what was unpacked."""

from __future__ import annotations

import gzip
import hashlib
import io
import itertools
import json
import os
import platform
import shutil
import socket
import stat
import subprocess
import tarfile
import time
import urllib.request
from pathlib import Path

import pytest

from excise.layers.images.below import Below
from excise.layers.images.tarstream import read_entries
from excise.layers.images.unpack import unpack
from excise.layers.store import Store

ARCHITECTURE = {"x86_64": "amd64", "aarch64": "arm64"}.get(platform.machine(), platform.machine())
OCI = "application/vnd.oci.image."
SCHEMA_2 = "application/vnd.docker.distribution.manifest.v2+json"


def need(name: str, there: bool, why: str) -> None:
    """Skip where it is not there, unless EXCISE_REQUIRE says that it must be."""
    if there:
        return
    if name in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(f"{name} is required: {why}", pytrace=False)
    pytest.skip(why)


@pytest.fixture(scope="session")
def needed():
    return need


@pytest.fixture(scope="session")
def as_root() -> None:
    need("root", os.geteuid() == 0, "only root makes files of other owners and mounts overlays")


@pytest.fixture
def store(as_root, tmp_path) -> Store:
    return Store(tmp_path / "store")


def member(name, data=b"", *, kind=tarfile.REGTYPE, **about) -> tuple[tarfile.TarInfo, bytes]:
    entry = tarfile.TarInfo(name)
    entry.type, entry.size, entry.mtime = kind, len(data), 1_600_000_000
    entry.mode = 0o755 if kind == tarfile.DIRTYPE else 0o644
    for key, value in about.items():
        setattr(entry, key, value)
    return entry, data


def archive(*members, form=tarfile.PAX_FORMAT) -> bytes:
    into = io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=form, errors="surrogateescape") as tar:
        for entry, data in members:
            tar.addfile(entry, io.BytesIO(data))
    return into.getvalue()


@pytest.fixture
def tar():
    """`tar.file("a", b"x")`, `tar.folder("d")`, ... and `tar(*members)` for the bytes of an archive."""

    def made(*members, **how):
        return archive(*members, **how)

    made.file = member
    made.folder = lambda name, **about: member(name, kind=tarfile.DIRTYPE, **about)
    made.link = lambda name, to, **a: member(name, kind=tarfile.SYMTYPE, linkname=to, **a)
    made.hard = lambda name, to: member(name, kind=tarfile.LNKTYPE, linkname=to)
    made.fifo = lambda name, **about: member(name, kind=tarfile.FIFOTYPE, **about)
    made.device = lambda name, major, minor: member(
        name, kind=tarfile.CHRTYPE, devmajor=major, devminor=minor
    )
    return made


@pytest.fixture
def layers(as_root, tmp_path):
    """Unpack archives on top of each other; returns their trees, top first, and the last one's facts."""

    numbers = itertools.count()

    def unpack_all(*archives: bytes):
        trees, facts = [], {}
        for data in archives:
            tree = tmp_path / f"tree{next(numbers)}"
            tree.mkdir()
            facts = unpack(read_entries(io.BytesIO(data)), tree, Below(trees))
            trees.insert(0, tree)
        return trees, facts

    return unpack_all


@pytest.fixture
def mounted(as_root, tmp_path):
    """Mount lowers, top first, as one overlay."""
    places = []

    def mount(lowers):
        # of one lower there is no overlay without an upper, and a sandbox always has one
        scratch = tmp_path / f"mount{len(places)}"
        (scratch / "merged").mkdir(parents=True)
        subprocess.run(["mount", "-t", "tmpfs", "tmpfs", scratch], check=True)
        places.append(scratch)
        for name in ("merged", "upper", "work"):
            (scratch / name).mkdir()
        (scratch / "upper").chmod(stat.S_IMODE(lowers[0].stat().st_mode))
        for number, lower in enumerate(lowers):
            (scratch / str(number)).symlink_to(lower)
        chain = ":".join(str(number) for number in range(len(lowers)))
        options = f"lowerdir={chain},upperdir=upper,workdir=work"
        command = ["mount", "-t", "overlay", "overlay", "-o", options, "merged"]
        subprocess.run(command, check=True, cwd=scratch)
        return scratch / "merged"

    yield mount
    for scratch in places:
        subprocess.run(["umount", "--lazy", "--recursive", scratch], check=True)


def look(top: Path) -> dict[str, tuple]:
    """Everything below `top`: kind, mode, owner, and what is in it."""
    seen = {}
    for folder, folders, files in os.walk(os.fsencode(top)):
        for name in folders + files:
            path = folder + b"/" + name
            status = os.lstat(path)
            about: list = [stat.S_IFMT(status.st_mode), stat.S_IMODE(status.st_mode)]
            about += [status.st_uid, status.st_gid]
            if stat.S_ISLNK(status.st_mode):
                about[1] = 0
                about.append(os.readlink(path))  # noqa: PTH115  (bytes)
            elif stat.S_ISREG(status.st_mode):
                about += [Path(os.fsdecode(path)).read_bytes(), status.st_mtime_ns]
            seen[os.fsdecode(os.path.relpath(path, os.fsencode(top)))] = tuple(about)
    return seen


@pytest.fixture
def tree_of():
    return look


def digest(data: bytes) -> str:
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


class Layout:
    """An OCI layout made by hand: layers in, blobs and documents out."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.manifests: list[dict] = []
        (folder / "blobs/sha256").mkdir(parents=True)
        (folder / "oci-layout").write_text('{"imageLayoutVersion": "1.0.0"}')
        self._write_index()

    def blob(self, data: bytes, media_type: str) -> dict:
        (self.folder / "blobs/sha256" / digest(data)[7:]).write_bytes(data)
        return {"mediaType": media_type, "digest": digest(data), "size": len(data)}

    def add(self, layers, tag="latest", *, pack=gzip.compress, ending="+gzip", **changes) -> dict:
        """An image of these archives, lowest first; returns its descriptor."""
        process = {
            "Env": ["PATH=/usr/bin:/bin", "EMPTY=", "EQUAL=a=b"],
            "User": "1000:1000",
            "WorkingDir": "/work",
            "Entrypoint": ["/bin/sh", "-c"],
            "Cmd": ["true"],
            "Volumes": {"/data": {}},
        }
        config = {
            "architecture": changes.get("architecture", ARCHITECTURE),
            "os": "linux",
            "rootfs": {
                "type": "layers",
                "diff_ids": changes.get("diff_ids") or list(map(digest, layers)),
            },
            "config": process,
        }
        made = {
            "schemaVersion": 2,
            "mediaType": OCI + "manifest.v1+json",
            "config": self.blob(json.dumps(config).encode(), OCI + "config.v1+json"),
            "layers": [self.blob(pack(data), f"{OCI}layer.v1.tar{ending}") for data in layers],
        }
        entry = self.blob(json.dumps(made).encode(), OCI + "manifest.v1+json")
        self.enter(entry, tag)
        return entry

    def enter(self, entry: dict, tag: str | None, *, architecture: str | None = None) -> None:
        entry = dict(entry)
        if tag is not None:
            entry["annotations"] = {"org.opencontainers.image.ref.name": tag}
        if architecture is not None:
            entry["platform"] = {"os": "linux", "architecture": architecture}
        self.manifests.append(entry)
        self._write_index()

    def index(self, entries) -> dict:
        """An index as a blob: what a registry has for several machines."""
        made = {"schemaVersion": 2, "mediaType": OCI + "index.v1+json", "manifests": entries}
        return self.blob(json.dumps(made).encode(), OCI + "index.v1+json")

    def _write_index(self) -> None:
        index = {"schemaVersion": 2, "manifests": self.manifests}
        (self.folder / "index.json").write_text(json.dumps(index))


@pytest.fixture
def layout(tmp_path) -> Layout:
    return Layout(tmp_path / "layout")


@pytest.fixture
def two_layers(tar) -> list[bytes]:
    """The second hides a file and a whole folder of the first, and replaces one."""
    first = tar(
        tar.folder("./", mode=0o755),
        tar.folder("etc"),
        tar.file("etc/keep", b"kept"),
        tar.file("etc/gone", b"never seen"),
        tar.folder("var"),
        tar.folder("var/cache"),
        tar.file("var/cache/old", b"old"),
        tar.folder("bin", mode=0o755),
        tar.file("bin/tool", b"#!/bin/sh\n", mode=0o4755, uid=0, gid=50),
        tar.hard("bin/same", "bin/tool"),
        tar.link("tmp", "/var"),
    )
    second = tar(
        tar.file("etc/.wh.gone"),
        tar.folder("var/cache"),
        tar.file("var/cache/.wh..wh..opq"),
        tar.file("var/cache/new", b"new"),
        tar.file("etc/added", b"added", uid=1000, gid=1000),
    )
    return [first, second]


class Registry:
    def __init__(self, address: str, storage: Path, scratch: Path) -> None:
        self.address = address
        self.storage = storage
        self._scratch = scratch

    def push(self, layout: Layout, tag: str, to: str, *options: str) -> str:
        """Copy an image of a layout to the registry; returns the digest it has there."""
        note = self._scratch / "digest"
        command = ["skopeo", "copy", "--quiet", "--dest-tls-verify=false", f"--digestfile={note}"]
        source, target = f"oci:{layout.folder}:{tag}", f"docker://{self.address}/{to}"
        subprocess.run([*command, *options, source, target], check=True, capture_output=True)
        return note.read_text().strip()

    def blob(self, digest: str) -> Path:
        hexes = digest.removeprefix("sha256:")
        return self.storage / f"docker/registry/v2/blobs/sha256/{hexes[:2]}/{hexes}/data"


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@pytest.fixture(scope="session")
def serving(tmp_path_factory):
    """Starts registries: `serving(storage)` returns an address."""
    for program in ("skopeo", "docker-registry"):
        need("registry", shutil.which(program) is not None, f"{program} is not installed")
    scratch = tmp_path_factory.mktemp("registry")
    started = []

    def start(storage: Path) -> tuple[str, subprocess.Popen]:
        address = f"127.0.0.1:{_free_port()}"
        config = scratch / f"{len(started)}.yml"
        config.write_text(
            "version: 0.1\nlog: {level: error, accesslog: {disabled: true}}\n"
            f"storage: {{filesystem: {{rootdirectory: {storage}}}, delete: {{enabled: true}}}}\n"
            f"http: {{addr: '{address}'}}\n"
        )
        command = ["setpriv", "--pdeathsig", "KILL", "docker-registry", "serve", str(config)]
        log = (scratch / "log").open("ab")
        process = subprocess.Popen(command, stdout=log, stderr=log)
        log.close()
        started.append(process)
        for _ in range(300):
            try:
                urllib.request.urlopen(f"http://{address}/v2/", timeout=5).close()
            except OSError:
                assert process.poll() is None, (scratch / "log").read_text()
                time.sleep(0.05)
            else:
                return address, process
        pytest.fail("the registry does not answer")

    yield start
    for process in started:
        process.kill()
        process.wait()


@pytest.fixture
def registry(serving, as_root, tmp_path) -> Registry:
    storage = tmp_path / "registry"
    storage.mkdir()
    address, process = serving(storage)
    yield Registry(address, storage, tmp_path)
    process.kill()
    process.wait()


@pytest.fixture
def merged(mounted, tree_of):
    return lambda image: tree_of(mounted(image.lowers))
