"""What takes all there is takes all of its own jail: the host and the neighbour notice nothing."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.errors import SandboxGone
from excise.jail.blocking import Jail, Sandbox
from excise.types import MIB, Action, Limits, Spec

SMALL = Limits(cpus=0.5, memory_bytes=128 * MIB, pids=64, disk_bytes=32 * MIB)

BOMBS = {
    "forks": ":(){ :|:& };:; wait",
    "processes": "for i in $(seq 500); do sleep 60 & done; wait",
    "zombies": "for i in $(seq 2000); do (sleep 0.01 &) ; done",
    "orphans in sessions of their own": "for i in $(seq 200); do setsid -f sleep 60; done",
    "memory": "head -c 1G /dev/zero | tail",
    "memory in files": "head -c 1G /dev/zero > /dev/shm/full",
    "disk": "head -c 1G /dev/zero > full; ls -l full; df .",
    "one disk after the other": "for d in /work /tmp /dev/shm /root /run; do head -c 1G /dev/zero > $d/full; done",
    "inodes": "i=0; while mkdir d$i; do i=$((i+1)); done",
    "depth": "while mkdir d && cd d; do :; done",
    "open files": "exec perl -e 'my @f; while (open(my $f, \"<\", \"/dev/null\")) { push @f, $f } print scalar @f'",
    "pipes": "exec perl -e 'my @p; while (pipe(my $r, my $w)) { push @p, $r, $w; syswrite($w, \"x\" x 60000) } print scalar @p'",
    "terminals": "exec perl -e 'my @t; while (open(my $t, \"+<\", \"/dev/ptmx\")) { push @t, $t } print scalar @t'",
    "output": "yes | head -c 2000000000",
    "a link for every file": "touch f; i=0; while ln f l$i; do i=$((i+1)); done",
    "sockets": "exec perl -MSocket -e 'my @s; while (socket(my $s, AF_INET, SOCK_DGRAM, 0)) { push @s, $s } print scalar @s'",
}  # fmt: skip


@pytest.fixture(scope="module")
def jail(able: None) -> Iterator[Jail]:
    with Jail() as made:
        yield made


@pytest.fixture
def neighbour(jail: Jail) -> Iterator[Sandbox]:
    with jail.create(Spec(limits=SMALL)) as box:
        box.write("canary", b"alive")
        yield box


@pytest.mark.parametrize("name", sorted(BOMBS))
def test_a_bomb_harms_nobody_but_its_own_jail(jail: Jail, neighbour: Sandbox, name: str) -> None:
    with jail.create(Spec(limits=SMALL)) as box:
        spaces = [_space(box)]
        try:
            action = Action(("bash", "-c", BOMBS[name]), timeout_s=2, output_limit_bytes=MIB)
            seen = box.run(action)
        except SandboxGone:
            seen = None
        assert neighbour.read("canary") == b"alive"
        assert neighbour.run(Action.shell("echo > new; cat new; rm new; exec true")).ok
        assert len(_members(spaces[0])) <= SMALL.pids + 1
        if seen is not None:
            assert len(seen.stdout) <= MIB
            box.reset()
            spaces.append(_space(box))
            assert box.run(Action(("true",))).ok
    _until(lambda: not any(map(_members, spaces)))


def test_a_jail_that_ran_out_of_memory_says_so(jail: Jail) -> None:
    with jail.create(Spec(limits=SMALL)) as box:
        eats = "exec perl -e '$x .= \"x\" x 1000000 while 1'"
        seen = box.run(Action.shell(eats))
        assert (seen.exit_code, seen.oom, seen.timed_out) == (137, True, False)
        killed = box.run(Action.shell("kill -9 $$"))
        assert (killed.exit_code, killed.oom) == (137, False)


def test_the_agent_outlives_what_eats_the_memory_of_its_jail(jail: Jail) -> None:
    with jail.create(Spec(limits=SMALL)) as box:
        for _ in range(3):
            assert box.run(Action.shell("head -c 1G /dev/zero | tail")).oom
        assert box.run(Action.shell("echo here")).stdout == b"here\n"


def test_the_kernel_is_told_to_take_commands_before_the_agent(jail: Jail) -> None:
    with jail.create(Spec(limits=SMALL)) as box:
        told = "cat /proc/self/oom_score_adj; sleep 0.1; cat /proc/1/oom_score_adj"
        assert box.run(Action(("sh", "-c", told))).stdout == b"300\n0\n"
        shell = box.open_shell()
        assert shell.run("cat /proc/self/oom_score_adj").stdout == b"300\n"


def test_a_full_disk_is_an_error_of_the_command(jail: Jail) -> None:
    with jail.create(Spec(limits=SMALL)) as box:
        seen = box.run(Action.shell("head -c 64M /dev/zero > full"))
        assert not seen.ok
        assert b"No space left" in seen.stderr
        assert box.run(Action.shell("rm full; echo > new")).ok


def test_a_share_of_a_cpu_is_no_more_than_that(jail: Jail) -> None:
    """Counted in CPU time that was given, and not in time that went by."""
    with jail.create(Spec(limits=SMALL)) as box:
        spin = "end=$(( $(date +%s%N) + 2000000000 )); while [ $(date +%s%N) -lt $end ]; do :; done"
        seen = box.run(Action(("bash", "-c", spin)))
        assert seen.inside_ns is not None
        assert seen.cpu_ns is not None
        assert seen.cpu_ns <= 0.75 * seen.inside_ns


def _space(box: Sandbox) -> Path:
    """The name space of the jail's processes."""
    return Path(f"/proc/{box.pid}/ns/pid").readlink()


def _members(space: Path) -> list[str]:
    """Its processes, as the host sees them."""
    return [each.parts[2] for each in Path("/proc").glob("[0-9]*/ns/pid") if _leads(each, space)]


def _leads(link: Path, space: Path) -> bool:
    try:
        return link.readlink() == space
    except OSError:
        return False


def _until(true) -> None:
    for _ in range(500):
        if true():
            return
        time.sleep(0.02)
    pytest.fail("waited in vain: something was left")
