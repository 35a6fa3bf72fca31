"""Every limit holds, is the jail's own affair, and says what it was."""

from __future__ import annotations

import os
import time

import pytest

from excise.errors import SubstrateError

from .conftest import Make, refuse


@pytest.fixture(autouse=True)
def counted(spawner: object) -> None:
    missing = [name for name in ("memory", "pids", "cpu") if name in spawner.layout.missing]  # type: ignore[attr-defined]
    if missing:
        refuse(f"this host's cgroups lack {missing}")


def test_memory_is_limited_and_running_out_of_it_is_said(make: Make) -> None:
    box, other = make(memory_bytes=48 << 20), make(memory_bytes=48 << 20)
    assert box.usage.oom_kills() == 0
    code, _ = box.sh("head -c 200000000 /dev/zero | tail -c 199000000 | wc -c")
    assert box.usage.oom_kills() == 1 or code != 0
    assert (box.usage.oom_kills() or 0) >= 1
    assert (box.usage.peak_bytes() or 0) <= 48 << 20
    assert other.usage.oom_kills() == 0
    assert box.says("echo alive") == "alive"


def test_a_jail_that_dies_of_want_of_memory_says_so(make: Make) -> None:
    box = make(memory_bytes=16 << 20)
    box.sh("head -c 100000000 /dev/zero | tail -c 99000000 | wc -c")
    box.connection.close()
    end = box.spawner.wait_gone(box.box.number)
    assert end is not None
    assert end.oom_kills >= 1


def test_a_jail_that_has_not_even_memory_to_be_made_fails_in_words(make: Make) -> None:
    with pytest.raises(SubstrateError, match=r"memory"):
        make(memory_bytes=4096)
    assert make(memory_bytes=32 << 20).connection.ping() > 0


def test_a_disk_too_small_for_its_own_folders_is_refused(make: Make) -> None:
    with pytest.raises(SubstrateError, match="upper"):
        make(inodes=2)


def test_processes_are_limited(make: Make) -> None:
    box = make(pids=24)
    code, text = box.sh("for i in $(seq 40); do sleep 60 & done; wait -n 2>/dev/null; exit 0")
    assert "fork" in text.lower() or code != 0
    assert (box.usage.processes() or 0) <= 24


def test_cpu_time_is_limited(make: Make) -> None:
    box = make(cpu_quota_us=5_000)
    box.sh("timeout 0.5 sh -c 'while :; do :; done'")
    assert (box.usage.throttled() or 0) >= 1


def test_cpus_are_those_asked_for(make: Make) -> None:
    last = max(os.sched_getaffinity(0))
    box = make(cpuset=str(last))
    assert box.says("grep Cpus_allowed_list /proc/self/status").split()[-1] == str(last)
    assert box.sh("timeout 5 nproc")[1].strip() == "1"


def test_the_disk_is_limited_in_bytes(make: Make) -> None:
    box = make(disk_bytes=4 << 20)
    code, text = box.sh("head -c 8000000 /dev/zero > /root/big")
    assert code != 0
    assert "space" in text
    assert box.says("rm /root/big && echo fits > /root/small && cat /root/small") == "fits"


def test_the_disk_is_limited_in_files(make: Make) -> None:
    box = make(inodes=64)
    code, text = box.sh("for i in $(seq 100); do : > /root/$i || exit 1; done")
    assert code != 0
    assert "space" in text


def test_open_files_are_limited_and_cores_are_never_dumped(make: Make) -> None:
    assert make(open_files=100).says("ulimit -n; ulimit -Hn; ulimit -c") == "100\n100\n0"


def test_a_jail_without_limits_has_none(make: Make) -> None:
    box = make(disk_bytes=0)
    assert box.says("seq 30 | while read i; do sleep 0 & done; wait; echo done") == "done"


def test_a_jail_can_be_held_still_and_goes_on_where_it_was(make: Make) -> None:
    box = make()
    ticks = "(while :; do echo x >> /root/ticks; sleep 0.005; done) > /dev/null 2>&1 &"
    box.says(f"{ticks} while [ ! -s /root/ticks ]; do sleep 0.01; done")
    box.usage.freeze()
    upper = box.spawner.upper(box.box.number)
    try:
        before = os.stat("root/ticks", dir_fd=upper).st_size
        time.sleep(0.05)
        assert os.stat("root/ticks", dir_fd=upper).st_size == before > 0
    finally:
        os.close(upper)
    box.usage.thaw()
    box.says(f"while [ $(stat -c %s /root/ticks) -le {before} ]; do sleep 0.01; done")


def test_what_is_held_still_can_be_destroyed(make: Make) -> None:
    box = make()
    box.usage.freeze()
    box.spawner.destroy(box.box.number)
    assert box.spawner.wait_gone(box.box.number) is not None
