"""Real jails on this host: what they need must be there where EXCISE_REQUIRE names `jail`."""

from __future__ import annotations

import os
import socket
import subprocess
import tarfile
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from excise.agent.connection import Connection
from excise.agent.messages import Exec
from excise.errors import ExciseError
from excise.jail.control import BoxLimits
from excise.jail.spawner import Box, Spawner
from excise.layers.host import build_rootfs

ESCAPE = Path(__file__).with_name("escape") / "attempts.c"


def refuse(reason: str, name: str = "jail") -> None:
    """Skip, unless the environment says that it must be."""
    if name in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(reason, pytrace=False)
    pytest.skip(reason)


class Inside:
    """A box and the connection to its agent."""

    def __init__(self, spawner: Spawner, box: Box) -> None:
        self.spawner, self.box = spawner, box
        self.connection = Connection(box.socket)
        self.usage = spawner.usage(box.kit)

    def sh(self, script: str, *, timeout_s: float = 30.0) -> tuple[int, str]:
        """Exit code and all output of a script."""
        env = {"PATH": "/usr/local/bin:/usr/bin:/bin", "HOME": "/root"}
        what = Exec(("sh", "-c", script), env=env, timeout_s=timeout_s, merge=True)
        result = self.connection.run(what)
        return result.code, result.stdout.decode(errors="replace")

    def says(self, script: str) -> str:
        """The output of a script that must succeed."""
        code, text = self.sh(script)
        assert code == 0, text
        return text.strip()


Make = Callable[..., Inside]


@pytest.fixture(scope="session")
def layer(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A root file system of the host's own programs."""
    folder = tmp_path_factory.mktemp("layer")
    image = build_rootfs(out=tmp_path_factory.mktemp("image"))
    with tarfile.open(image.archive) as archive:
        archive.extraction_filter = staticmethod(lambda member, _: member)  # type: ignore[assignment]
        archive.extractall(folder)
    folder.chmod(0o755)
    return folder


@pytest.fixture(scope="session")
def able(tmp_path_factory: pytest.TempPathFactory) -> None:
    """Jails can be made here."""
    if os.geteuid() != 0:
        refuse("needs root: test_rootless.py tests jails without it")
    try:
        Spawner.start(leases=tmp_path_factory.mktemp("leases")).close()
    except ExciseError as error:
        refuse(str(error))


@pytest.fixture
def leases(tmp_path: Path) -> Path:
    return tmp_path / "leases"


@pytest.fixture(params=["detached", "attached"])
def spawner(able: None, leases: Path, request: pytest.FixtureRequest) -> Iterator[Spawner]:
    """A spawner that mounts as this kernel allows it, and one that mounts as older ones need it."""
    started = Spawner.start(leases=leases, attached=request.param == "attached")
    yield started
    started.close()


@pytest.fixture
def make(spawner: Spawner, layer: Path) -> Iterator[Make]:
    """Makes boxes on the layer, with the limits that are asked for."""
    stack = spawner.stack([str(layer)])
    made: list[Inside] = []

    def one(*, on: int | None = None, hostname: str = "jail", **limits: object) -> Inside:
        asked = BoxLimits(**{"disk_bytes": 64 << 20, **limits})  # type: ignore[arg-type]
        made.append(Inside(spawner, spawner.create(on or stack, asked, hostname=hostname)))
        return made[-1]

    yield one
    for box in made:
        box.connection.close()


@pytest.fixture(scope="session")
def attempts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    program = tmp_path_factory.mktemp("escape") / "attempts"
    subprocess.run(["cc", "-std=gnu11", "-O1", "-static", "-o", program, ESCAPE], check=True)
    return program


@pytest.fixture(scope="session")
def targets(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, str]]:
    """Things of the host that an attempt is told of."""
    marker = tmp_path_factory.mktemp("host") / "marker"
    marker.write_text("the host's")
    name = f"excise-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as port, socket.socket(socket.AF_UNIX) as abstract:
        abstract.bind(f"\0{name}")
        abstract.listen()
        for server in (port, abstract):
            threading.Thread(target=_accept, args=(server,), daemon=True).start()
        yield {
            "chroot_climb": str(marker),
            "host_service": str(port.getsockname()[1]),
            "abstract_socket": name,
            "kill_host_process": str(os.getpid()),
            "other_sandbox": marker.name,
            "shadow": "/etc/shadow",
        }


def _accept(server: socket.socket) -> None:
    try:
        while True:
            server.accept()[0].close()
    except OSError:
        return
