"""A jail from its creation to its end, with the real spawner and the real kernel."""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import threading
import time
from pathlib import Path

import pytest

from excise.errors import InputError, SandboxGone, SubstrateError
from excise.jail.control import Bind, BoxLimits
from excise.jail.spawner import Spawner

from .conftest import Make


def mounts() -> set[str]:
    """Mount points of the host, less those that other programs may come and go with."""
    lines = Path("/proc/self/mountinfo").read_text().splitlines()
    engines = ("/docker/", "/containers/", "/containerd/")
    ours = (line for line in lines if "excise" in line or " overlay " in line)
    return {line.split()[4] for line in ours if not any(each in line for each in engines)}


def kin(pid: int) -> set[int]:
    """The process and all its descendants."""
    try:
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return set()
    return {pid}.union(*map(kin, map(int, children)))


def test_a_jail_answers_as_soon_as_it_is_made(make: Make) -> None:
    assert make().connection.ping() > 0


def test_the_first_process_inside_is_the_agent_and_the_host_knows_it_by_another_number(
    make: Make,
) -> None:
    box = make()
    assert box.says("cat /proc/1/comm") == "excise-agent"
    assert Path(f"/proc/{box.box.pid}/comm").read_text() == "excise-agent\n"
    assert Path(f"/proc/{box.box.pid}/status").read_text().count("NSpid:") == 1


@pytest.mark.parametrize("kind", ["mnt", "pid", "net", "ipc", "uts", "user", "cgroup", "time"])
def test_every_jail_has_name_spaces_of_its_own(make: Make, kind: str) -> None:
    own = [str(Path(f"/proc/{box.box.pid}/ns/{kind}").readlink()) for box in (make(), make())]
    assert len({*own, str(Path(f"/proc/self/ns/{kind}").readlink())}) == 3


def test_how_long_the_host_is_up_is_not_told(make: Make) -> None:
    box = make()
    assert box.connection.ping() < time.clock_gettime_ns(time.CLOCK_MONOTONIC)
    made_s = time.clock_gettime(time.CLOCK_BOOTTIME) - float(
        Path("/proc/uptime").read_text().split()[0]
    )
    assert made_s < 60, "this process sees the host's own clocks"
    assert float(box.says("cut -d' ' -f1 /proc/uptime")) < 60


def test_root_inside_is_nobody_outside(make: Make) -> None:
    box = make()
    assert box.says("id -u") == "0"
    uids = next(
        line for line in Path(f"/proc/{box.box.pid}/status").read_text().splitlines()
        if line.startswith("Uid:")
    )  # fmt: skip
    assert all(int(uid) >= 65536 for uid in uids.split()[1:])


def test_files_have_the_owners_that_the_layer_says_and_those_written_have_the_writers(
    make: Make,
) -> None:
    assert make().says("touch /etc/new && stat -c %u:%g /etc/passwd /etc/new / /tmp") == (
        "0:0\n0:0\n0:0\n0:0"
    )


def test_the_hostname_is_what_was_asked_for(make: Make) -> None:
    assert make(hostname="box-of-mine").says("hostname") == "box-of-mine"


def test_nothing_of_the_host_shows(make: Make, layer: Path, leases: Path) -> None:
    box = make()
    seen = box.says(
        "cat /proc/mounts /proc/1/cmdline /proc/self/cgroup /proc/net/dev; env; ls / /dev"
    )
    assert str(leases) not in seen
    assert "excise-" not in seen.replace("excise-agent", "")
    assert str(layer) not in seen
    assert box.says("ls /proc | grep -c '^[0-9]'") in {"2", "3", "4", "5"}


def test_the_first_process_cannot_be_killed_looked_into_or_traced(make: Make) -> None:
    box = make()
    assert box.sh("cat /proc/1/environ")[0] != 0
    assert box.sh("ls /proc/1/fd/ /proc/1/root/")[0] != 0
    box.sh("kill -9 1; kill -TERM 1; kill -SEGV 1")
    assert box.connection.ping() > 0


def test_neither_mounts_nor_name_spaces_nor_settings_can_be_changed_inside(make: Make) -> None:
    box = make()
    attempts = (
        "umount /proc/sys", "umount /proc", "echo 1 > /proc/sys/kernel/core_pattern",
        "echo b > /proc/sysrq-trigger", "mknod /tmp/sda b 8 0", "hostname other", "chroot /proc/1/root true",
        "echo -1000 > /proc/1/oom_score_adj", "rm -r /dev/null", "test -s /proc/kallsyms", "test -s /proc/keys",
    )  # fmt: skip
    assert [script for script in attempts if box.sh(script)[0] == 0] == []


def test_what_was_open_in_the_spawner_is_closed_inside(make: Make) -> None:
    make()
    box = make()
    held = {str(Path(f.path).readlink()) for f in os.scandir(f"/proc/{box.box.pid}/fd")}
    strange = {
        name
        for name in held
        if not name.startswith(("/dev/null", "socket:", "anon_inode:", "/memfd:", "pipe:"))
    }
    scores = {name for name in strange if name.endswith(f"/{box.box.pid}/oom_score_adj")}
    assert strange == scores, "its own score, that its commands are to die before it"
    assert len(scores) <= 1


def test_devices_terminals_and_shared_memory_work(make: Make) -> None:
    box = make()
    assert box.says("head -c 3 /dev/zero | wc -c; echo lost > /dev/null; ls /dev/pts") == "3\nptmx"
    assert box.says("echo kept > /dev/shm/x; cat /dev/shm/x; df -P /dev/shm | wc -l") == "kept\n2"
    assert box.sh("echo x > /dev/new")[0] != 0


def test_two_jails_on_one_stack_do_not_see_each_others_files(make: Make, layer: Path) -> None:
    one, other = make(), make()
    one.says("echo mine > /root/x && rm /etc/hosts")
    assert other.sh("cat /root/x")[0] != 0
    assert other.sh("cat /etc/hosts")[0] == 0
    assert not (layer / "root/x").exists()


def test_binds_show_the_hosts_files_read_only_also_where_the_layer_has_no_such_place(
    make: Make, spawner: Spawner, layer: Path, tmp_path: Path
) -> None:
    (tmp_path / "data").mkdir()
    (tmp_path / "data/file").write_text("from the host")
    binds = [
        Bind(str(tmp_path / "data"), "/deep/down/data"),
        Bind(str(tmp_path / "data/file"), "/etc/resolv.conf"),
    ]
    stack = spawner.stack([str(layer)], binds)
    box = make(on=stack)
    assert box.says("cat /deep/down/data/file /etc/resolv.conf") == "from the host" * 2
    assert box.sh("echo x > /etc/resolv.conf")[0] != 0
    assert box.sh("touch /deep/down/data/y")[0] != 0
    assert make(on=stack).says("cat /deep/down/data/file") == "from the host"


def test_a_link_in_the_image_does_not_lead_a_bind_out_of_it(
    make: Make, spawner: Spawner, layer: Path, tmp_path: Path
) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "way").symlink_to("/proc/../../../../../../")
    (tmp_path / "file").write_text("shown")
    stack = spawner.stack([str(top), str(layer)], [Bind(str(tmp_path / "file"), "/way/there")])
    assert make(on=stack).says("cat /there") == "shown"
    assert not Path("/there").exists()


def test_closing_the_socket_ends_the_jail_and_removes_its_cgroups(
    make: Make, spawner: Spawner
) -> None:
    box = make()
    box.says("sleep 1000 & exit 0")
    folders = list(box.usage.folders.values())
    assert all(folder.is_dir() for folder in folders) or not folders
    box.connection.close()
    assert spawner.wait_gone(box.box.number) is not None
    assert kin(box.box.pid) == set()
    spawner.close()
    assert [folder for folder in folders if folder.exists()] == []


def test_destroy_kills_what_does_not_listen(make: Make, spawner: Spawner) -> None:
    box = make()
    box.says("trap '' TERM INT HUP; sleep 1000 & exit 0")
    spawner.destroy(box.box.number)
    end = spawner.wait_gone(box.box.number)
    assert end is not None
    assert end.end == -signal.SIGKILL
    spawner.destroy(box.box.number)


def test_the_death_of_a_jail_is_told_even_if_nobody_asked_for_it(
    make: Make, spawner: Spawner
) -> None:
    box = make()
    os.kill(box.box.pid, signal.SIGKILL)
    end = spawner.wait_gone(box.box.number)
    assert end is not None
    assert (end.box, end.end) == (box.box.number, -signal.SIGKILL)
    assert spawner.end_of(box.box.number) == end


def test_a_stack_on_what_is_not_there_is_refused_by_name(spawner: Spawner, tmp_path: Path) -> None:
    with pytest.raises(SubstrateError, match=r"there is no .*/missing to stand on"):
        spawner.stack([str(tmp_path / "missing")])
    with pytest.raises(InputError, match="absolute"):
        spawner.stack(["relative"])
    with pytest.raises(InputError, match="layers"):
        spawner.stack([])


def test_a_step_that_fails_inside_is_named_and_leaves_nothing(
    make: Make, spawner: Spawner, layer: Path, tmp_path: Path
) -> None:
    top = tmp_path / "top"
    top.mkdir()
    (top / "proc").write_text("a file where a folder must be")
    stack = spawner.stack([str(top), str(layer)])
    with pytest.raises(SubstrateError, match="proc"):
        make(on=stack)
    with pytest.raises(SubstrateError, match=r"cpuset"):
        make(cpuset="4095")
    assert make().connection.ping() > 0


def test_what_is_unknown_is_refused(spawner: Spawner) -> None:
    with pytest.raises(SubstrateError):
        spawner.create(999, BoxLimits())
    with pytest.raises(SandboxGone):
        spawner.snapshot(999)
    with pytest.raises(SubstrateError):
        spawner.unstack(999)
    with pytest.raises(SubstrateError):
        spawner.forget(999)
    with pytest.raises(InputError):
        spawner.create(1, BoxLimits(), hostname="x" * 65)


def test_a_stack_that_was_dropped_lives_on_below_its_boxes(
    make: Make, spawner: Spawner, layer: Path
) -> None:
    stack = spawner.stack([str(layer)])
    box = make(on=stack)
    spawner.unstack(stack)
    assert box.says("cat /etc/passwd | head -c 4") == "root"
    left = spawner.snapshot(box.box.number)
    assert make(on=left.stack).connection.ping() > 0


def test_many_threads_and_an_event_loop_can_make_jails_at_once(
    make: Make, spawner: Spawner, layer: Path
) -> None:
    stack = spawner.stack([str(layer)])
    answered: list[float] = []

    def work() -> None:
        for _ in range(4):
            box = make(on=stack)
            answered.append(box.connection.ping())
            box.connection.close()

    async def loop() -> int:
        boxes = await asyncio.gather(
            *(spawner.create_async(stack, BoxLimits(disk_bytes=1 << 20)) for _ in range(8))
        )
        for box in boxes:
            box.socket.close()
        return len({box.pid for box in boxes})

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    assert asyncio.run(loop()) == 8
    for thread in threads:
        thread.join()
    assert len(answered) == 16


def test_a_cancelled_creation_leaves_no_jail(spawner: Spawner, layer: Path) -> None:
    stack = spawner.stack([str(layer)])

    async def cancelled() -> bool:
        task = asyncio.ensure_future(spawner.create_async(stack, BoxLimits(disk_bytes=1 << 20)))
        await asyncio.sleep(0)
        if task.done():  # faster than we are
            task.result().socket.close()
            return False
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        return True

    assert any(asyncio.run(cancelled()) for _ in range(20))
    last = spawner.create(stack, BoxLimits(disk_bytes=1 << 20))
    spawner.wait_gone(last.number - 1)
    inside = {
        pid
        for pid in kin(spawner.process.pid)
        if Path(f"/proc/{pid}/comm").read_text() == "excise-agent\n"
    }
    last.socket.close()
    assert last.pid in inside
    assert len(inside) <= 3  # it and what its agent started ahead


def test_a_forked_child_shares_nothing_with_the_spawner_and_can_start_its_own(
    make: Make, spawner: Spawner, leases: Path
) -> None:
    box = make()
    child = os.fork()
    if child == 0:
        verdict = 1
        try:
            try:
                spawner.destroy(box.box.number)
            except SubstrateError:
                own = Spawner.start(leases=leases)
                verdict = int(spawner.usable or not own.usable)
                own.close()
        finally:
            os._exit(verdict)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    assert box.connection.ping() > 0


def test_close_leaves_no_process_no_mount_no_cgroup_no_file(
    make: Make, spawner: Spawner, leases: Path
) -> None:
    before = mounts()
    boxes = [make() for _ in range(3)]
    family = kin(spawner.process.pid)
    assert len(family) >= 6
    assert mounts() == before
    folders = [f for box in boxes for f in box.usage.folders.values()]
    spawner.close()
    assert [pid for pid in family if kin(pid)] == []
    assert [f for f in folders if f.exists() or f.parent.exists()] == []
    assert list(leases.iterdir()) == []


def test_after_the_spawners_death_every_verb_says_so(
    make: Make, spawner: Spawner, layer: Path
) -> None:
    box = make()
    stack = spawner.stack([str(layer)])
    os.kill(spawner.process.pid, signal.SIGKILL)
    with pytest.raises(SubstrateError, match="the spawner has ended") as caught:
        spawner.create(stack, BoxLimits())
    assert caught.value.retryable
    with pytest.raises(SubstrateError, match="the spawner has ended"):
        asyncio.run(spawner.create_async(stack, BoxLimits()))
    spawner.destroy(box.box.number)
    spawner.process.wait()
    assert not spawner.usable
    spawner.close()
    spawner.close()


def test_a_spawner_that_may_open_no_more_files_says_so_and_recovers(
    make: Make, spawner: Spawner
) -> None:
    make()
    held = len(list(Path(f"/proc/{spawner.process.pid}/fd").iterdir()))
    before = resource.prlimit(spawner.process.pid, resource.RLIMIT_NOFILE)
    refused: list[SubstrateError] = []
    for room in range(12):
        resource.prlimit(spawner.process.pid, resource.RLIMIT_NOFILE, (held + room, before[1]))
        try:
            make().connection.ping()
        except SubstrateError as error:
            refused.append(error)
        else:
            break
    assert len(refused) > 2, "it had no room at first"
    assert [error for error in refused if not error.retryable] == []
    resource.prlimit(spawner.process.pid, resource.RLIMIT_NOFILE, before)
    assert make().connection.ping() > 0
