"""The agent's file operations in a real jail: its ids, its layers, its walls."""

from __future__ import annotations

import socket
import subprocess
from pathlib import Path

import pytest

from excise.agent.binary import agent_binary
from excise.agent.connection import Connection
from excise.agent.errors import AgentRefused
from tests.jail.conftest import Make


def digest_on_the_host(path: Path) -> tuple[int, bytes]:
    ours, theirs = socket.socketpair()
    with theirs:
        agent = subprocess.Popen([agent_binary(), "agent", "--stdio"], stdin=theirs, stdout=theirs)
    with Connection(ours) as connection:
        found = connection.digest(str(path))
    agent.wait()
    return found


def test_a_jail_digests_its_image_as_the_host_does(make: Make, layer: Path) -> None:
    found = make().connection.digest("/usr/lib/git-core")
    assert found == digest_on_the_host(layer / "usr/lib/git-core")
    assert found.entries > 20


def test_files_of_an_upload_belong_to_whom_they_should(make: Make) -> None:
    box = make()
    box.connection.write("/srv/new/f", b"x", mode=0o2640, uid=1000, gid=1001, parents=True)
    assert box.says("stat -c '%u %g %a' /srv/new /srv/new/f") == "1000 1001 755\n1000 1001 2640"
    box.connection.chown("/srv/new/f", 65534, 0)
    box.connection.chmod("/srv/new/f", 0o4711)
    assert box.says("stat -c '%u %g %a' /srv/new/f") == "65534 0 4711"
    box.connection.symlink("/srv/new/f", "/srv/link")
    box.connection.write("/srv/link", b"through", mode=0o600)
    assert box.says("cat /srv/new/f; stat -c %a /srv/new/f") == "through4711"


def test_directories_of_the_image_are_renamed_and_removed(make: Make, layer: Path) -> None:
    files = make().connection
    before = digest_on_the_host(layer / "usr/share")
    files.rename("/usr/share", "/usr/moved")
    assert files.digest("/usr/moved") == before
    files.remove("/usr/moved", tree=True)
    assert not {"share", "moved"} & {entry.name for entry in files.directory("/usr")}
    assert digest_on_the_host(layer / "usr/share") == before


@pytest.mark.parametrize(
    "path", ["/proc/self/root/etc/passwd", "/proc/1/fd/3", "/dev/fd/3", "/proc/self/exe"]
)
def test_the_kernels_own_links_lead_nowhere(make: Make, path: str) -> None:
    box = make()
    with pytest.raises(AgentRefused, match="ELOOP"):
        box.connection.read(path)


def test_the_agents_memory_and_settings_are_out_of_reach_also_behind_a_link(make: Make) -> None:
    box = make()
    box.says("ln -s /proc/1/mem /tmp/memory; ln -s /proc/1/oom_score_adj /tmp/score")
    for path in ("/tmp/memory", "/proc/1/environ", "/proc/1/maps", "/proc/1/task/1/mem"):
        with pytest.raises(AgentRefused, match="EACCES"):
            box.connection.read(path)
    for path in ("/tmp/memory", "/tmp/score"):
        with pytest.raises(AgentRefused, match="EACCES"):
            box.connection.write(path, b"0", in_place=True)
        with pytest.raises(AgentRefused, match="EACCES"):
            box.connection.write(path, b"0")


def test_a_pipe_holds_up_neither_reads_nor_writes(make: Make) -> None:
    box = make()
    box.says("mkfifo /tmp/pipe")
    for act in (box.connection.read, lambda path: box.connection.write(path, b"x")):
        with pytest.raises(AgentRefused, match="not a regular file"):
            act("/tmp/pipe")
    assert box.says("echo fine") == "fine"


def test_a_full_disk_is_said_and_leaves_no_half_file(make: Make) -> None:
    box = make(disk_bytes=4 << 20)
    box.connection.mkdir("/srv")
    with pytest.raises(AgentRefused, match="ENOSPC"):
        box.connection.write("/srv/f", bytes(6 << 20))
    assert box.connection.directory("/srv") == []
    box.connection.write("/srv/f", b"small")
