"""Egress where things are different: without root, and to a real package index."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.jail import egress
from excise.types import Allow, Egress

from .spaces import a_space, need_egress, refuse

SOMEBODY = 1000
PACKAGE = Path(egress.__file__).parents[1]

ROOTLESS = """
import json, subprocess, sys
sys.path.insert(0, sys.argv[1])
from excise.jail import egress
from excise.types import Allow, Egress
with subprocess.Popen(
    ["unshare", "--user", "--map-root-user", "--net", "sh", "-c",
     "ip link set lo up && echo up && exec sleep 600"], stdout=subprocess.PIPE,
) as space:
    space.stdout.readline()
    found = []
    host = egress.host_address()
    import socket, threading
    server = socket.create_server((host, 0))
    port = server.getsockname()[1]
    def serve():
        while True:
            line, _ = server.accept()
            line.sendall(b"hello")
            line.close()
    threading.Thread(target=serve, daemon=True).start()
    code = '''
import socket, sys
try:
    print(socket.create_connection((sys.argv[1], int(sys.argv[2])), 8).recv(9).decode())
except OSError as error:
    print(type(error).__name__)
'''
    listed = Allow((f"{host}:{port}", f"{sys.argv[2]}:{port}"))
    for wanted in (Egress.FULL, listed, Allow((f"{host}:9",))):
        with egress.open_egress_now(space.pid, wanted):
            inside = ["nsenter", "--preserve-credentials", "-U", "-n", "-t", str(space.pid)]
            command = [*inside, sys.executable, "-c", code, host, str(port)]
            found.append(subprocess.run(command, capture_output=True, text=True).stdout.strip())
    print(json.dumps(found))
    space.kill()
"""


@pytest.fixture(autouse=True, scope="module")
def _needed() -> None:
    need_egress()


@pytest.fixture
def place() -> Iterator[Path]:
    """A copy of the package that everybody can read."""
    folder = Path("/var/tmp") / f"excise-egress-{os.getpid()}"
    leave = shutil.ignore_patterns("__pycache__", "*.html", "excise-agent")
    shutil.copytree(PACKAGE, folder / "excise", ignore=leave)
    yield folder
    shutil.rmtree(folder)


def test_somebody_without_root_has_egress_too(place: Path) -> None:
    if not Path("/usr/bin/python3").exists():
        refuse("egress", "needs a Python that everybody can run, at /usr/bin/python3")
    (place / "hosts").write_text(f"{egress.host_address()} served.test\n")
    (place / "driver.py").write_text(ROOTLESS)
    os.mknod(place / "tun", 0o020666, os.makedev(10, 200))
    (place / "tun").chmod(0o666)
    script = """
        mount --bind "$1/tun" /dev/net/tun
        mount --bind "$1/hosts" /etc/hosts
        exec setpriv --reuid="$2" --regid="$2" --clear-groups \
            /usr/bin/python3 "$1/driver.py" "$1" served.test
    """
    command = ["unshare", "--mount", "sh", "-ec", script, "sh", str(place), str(SOMEBODY)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if "unshare" in done.stderr and "Operation not permitted" in done.stderr:
        refuse("egress", "users may not make user name spaces here")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == ["hello", "hello", "ConnectionRefusedError"]


STUBBED = """
import json, subprocess, sys
sys.path.insert(0, sys.argv[1])
from pathlib import Path
from excise.jail import egress
from excise.types import Egress
with subprocess.Popen(
    ["unshare", "--net", "sh", "-c", "ip link set lo up && echo up && exec sleep 600"],
    stdout=subprocess.PIPE,
) as space:
    space.stdout.readline()
    try:
        with egress.open_egress_now(space.pid, Egress.FULL) as network:
            Path("/etc/resolv.conf").write_text(network.resolv_conf)
            inside = ["nsenter", f"--net=/proc/{space.pid}/ns/net", sys.executable, "-c"]
            code = "import socket; print(socket.gethostbyname('stubbed.test'))"
            found = [subprocess.run([*inside, code], capture_output=True, text=True)]
            with open("/etc/resolv.conf", "a") as settings:
                settings.write("options use-vc\\n")  # by TCP
            found += [subprocess.run([*inside, code], capture_output=True, text=True)]
        print(json.dumps([network.resolv_conf, *(each.stdout + each.stderr for each in found)]))
    finally:
        space.kill()
"""


def test_a_name_server_on_the_hosts_loopback_is_asked_for_the_jail(tmp_path: Path) -> None:
    stub = "127.0.0.77"
    (tmp_path / "resolv.conf").write_text(f"nameserver {stub}\n")
    (tmp_path / "none").touch()
    script = """
        mount --bind "$1/resolv.conf" /etc/resolv.conf
        real=/run/systemd/resolve/resolv.conf
        test ! -e "$real" || mount --bind "$1/none" "$real"
        shift
        exec "$@"
    """
    options = ["--keep-in-foreground", "--conf-file=/dev/null", "--no-resolv", "--no-hosts"]
    options += ["--address=/stubbed.test/203.0.113.5", f"--listen-address={stub}"]
    options += ["--bind-interfaces", "--pid-file", "--user=root", "--log-facility=-"]
    server = subprocess.Popen(["dnsmasq", *options], stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        assert "started" in server.stderr.readline()
        command = ["unshare", "--mount", "sh", "-ec", script, "sh", str(tmp_path)]
        command += [sys.executable, "-I", "-c", STUBBED, str(PACKAGE.parent)]
        done = subprocess.run(command, capture_output=True, text=True, check=True)
    finally:
        server.kill()
        server.communicate()
    resolv_conf, *found = json.loads(done.stdout)
    assert stub not in resolv_conf
    assert found == ["203.0.113.5\n", "203.0.113.5\n"], "by datagram and by connection"


def pip_download(pip: str, folder: Path) -> tuple[list[str], dict[str, str]]:
    """Words and environment that fetch one package from the index, and from no cache of this host."""
    fetch = [pip, "download", "-vv", "--no-deps", "--no-cache-dir", "--only-binary=:all:"]
    fetch += ["--retries=0", "--index-url=https://pypi.org/simple", f"--dest={folder}"]
    elsewhere = {"PIP_FIND_LINKS", "PIP_EXTRA_INDEX_URL", "PIP_INDEX_URL"}
    env = {k: v for k, v in os.environ.items() if k not in elsewhere}
    return [*fetch, "six==1.17.0"], {**env, "PIP_CONFIG_FILE": "/dev/null"}


def by_the_host(pip: str, folder: Path) -> subprocess.CompletedProcess[str]:
    words, env = pip_download(pip, folder)
    return subprocess.run(words, capture_output=True, text=True, check=False, env=env)


def with_egress(pip: str, wanted: Egress | Allow, folder: Path) -> subprocess.CompletedProcess[str]:
    words, env = pip_download(pip, folder)
    resolv_conf = folder / "resolv.conf"
    with a_space() as space, egress.open_egress_now(space.pid, wanted) as network:
        resolv_conf.write_text(network.resolv_conf)
        return space.inside(*words, resolv_conf=resolv_conf, env=env)


@pytest.mark.timeout(240)
@pytest.mark.parametrize(
    ("wanted", "arrives"),
    [
        (Egress.FULL, True),
        (Allow(("pypi.org:443", "files.pythonhosted.org:443")), True),
        (Allow(("pypi.org:443",)), False),
    ],
    ids=["full", "a list of all it takes", "a list of half of that"],
)
def test_a_package_is_downloaded_from_its_index(
    wanted: Egress | Allow, arrives: bool, tmp_path: Path
) -> None:
    """Held against the host's own download just before and after: an index that is away tells nothing of egress."""
    pip = shutil.which("pip3") or refuse("pypi", "pip is not installed")
    said = []
    for turn in range(8):
        folder = tmp_path / str(turn)
        folder.mkdir()
        before, done, after = (
            by_the_host(str(pip), tmp_path / "before"),
            with_egress(str(pip), wanted, folder),
            by_the_host(str(pip), tmp_path / "after"),
        )
        if (done.returncode == 0) == arrives:
            break
        served = before.returncode == after.returncode == 0
        said.append((served, done.stdout[-3000:] + done.stderr[-2000:]))
        assert sum(served for served, _ in said) < 3, said
        time.sleep(5)
    else:
        refuse("pypi", f"this host itself did not reach the index, eight times: {after.stderr}")
    assert (folder / "six-1.17.0-py2.py3-none-any.whl").is_file() == arrives
