"""Attempts to get out of a jail, or at the host from inside one: every one is held, by the mechanism that is named.

The attempts are a C program (escape/attempts.c). So that none of them is held by an accident, those that
cannot hurt are also made without a jail, where they must succeed.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from excise.agent.errors import AgentRefused
from excise.jail.blocking import Jail, Sandbox
from excise.types import Action

SECCOMP = "the system call, or what it asks for, is not on the list"
ANSWERED = "the system call filter says that it is done, and nothing is"
FLAGS = "the system call filter refuses name spaces, and says of clone3 that it is not there"
NO_CAPABILITY = "the jail's root has not got the capability"
NOT_OURS = "the capability counts only in the jail's own user name space, which does not own this"
READ_ONLY = "it is mounted read-only"
NOT_THERE = "it is not there"
PID_SPACE = "the jail sees and reaches only the processes of its own name space"
NOT_DUMPABLE = "the agent cannot be looked into: it is not dumpable, and of another credential"
NET_SPACE = "the network name space is the jail's own, and only its loopback is up"
LANDLOCK = "landlock forbids it"

REASONS = {
    SECCOMP: """mount_tmpfs mount_proc mount_cgroup bind_mount remount_writable unmount_cover pivot new_mount clone_tree
        move_tree change_mount join_own load_kernel load_kernel_file load_module load_module_file remove_module load_bpf
        count_events fault_handler add_key read_keyring ask_key ring watch_files read_log restart swap_on account quota
        open_handle set_clock set_other_clock tune_clock rename_host rename_domain ports port_range segments weak_layout
        old_table other_table link_packets host_socket crypto_socket type_into_terminal paste_into_console
        migrate_memory set_policy hang_up generic_netlink odd_protocol odd_type odd_pair take_all_requests""",
    ANSWERED: "flush_disks",
    FLAGS: "nested_users nested_mounts nested_network nested_time clone_users clone_hidden",
    NO_CAPABILITY: """raw_packets gain_capability other_ids raise_hard_limit dump_core jump_the_queue be_dearer
        lock_file_for_good overlay_attribute add_address low_hardware_address gain_privilege drop_filter""",
    NOT_DUMPABLE: """join_mounts root_of_agent directory_of_agent trace_agent seize_agent memory_of_agent map_of_agent
        words_of_agent read_agent write_agent descriptors_of_agent take_descriptor""",
    PID_SPACE: "kill_agent kill_host_process see_host_processes",
    READ_ONLY: "write_programs core_handler kernel_knob forwarding make_device_in_dev",
    NOT_THERE: """chroot_climb magic_key helper_program release_agent raise_limit kernel_image kernel_keys timers shadow
        symbols memory_device disk_device inherited_descriptors other_sandbox""",
    LANDLOCK: "make_memory_device make_disk_device",
    NET_SPACE: "host_service abstract_socket",
}  # fmt: skip
ATTEMPTS = {name: reason for reason, names in REASONS.items() for name in names.split()}

GRANTED_OUTSIDE = """mount_tmpfs mount_proc bind_mount new_mount clone_tree nested_users nested_mounts nested_network
    nested_time clone_users clone_hidden join_own count_events fault_handler add_key read_keyring ring watch_files
    raw_packets link_packets jump_the_queue be_dearer dump_core make_memory_device make_disk_device
    other_ids weak_layout set_policy rename_host rename_domain gain_privilege symbols kernel_keys see_host_processes
    host_service abstract_socket kill_host_process map_of_agent words_of_agent descriptors_of_agent
    root_of_agent directory_of_agent overlay_attribute low_hardware_address shadow
    generic_netlink odd_pair take_all_requests flush_disks""".split()  # noqa: SIM905  # a word list

ABOUT_THE_HOST = {"host_service", "abstract_socket", "kill_host_process", "see_host_processes"}


@pytest.fixture(scope="module")
def box(able: None, attempts: Path) -> Iterator[Sandbox]:
    with Jail() as jail, jail.create() as made:
        made.write("/tmp/attempts", attempts.read_bytes())
        made.run(Action(("chmod", "755", "/tmp/attempts")))
        yield made


def test_every_attempt_has_a_reason_and_every_reason_an_attempt(attempts: Path) -> None:
    listed = subprocess.run([attempts], capture_output=True, text=True, check=True).stdout.split()
    assert sorted(listed) == sorted(ATTEMPTS)
    assert len(listed) >= 60
    assert set(GRANTED_OUTSIDE) <= set(listed)


@pytest.mark.parametrize("name", sorted(ATTEMPTS))
def test_an_attempt_from_inside_is_held(box: Sandbox, targets: dict[str, str], name: str) -> None:
    found = box.run(Action(("/tmp/attempts", name, targets.get(name, "")), timeout_s=20))
    assert found.exit_code == 0, f"{name}: {found.text}; meant to be held because {ATTEMPTS[name]}"
    assert found.text.startswith("held E"), found.text
    assert box.run(Action(("true",))).ok


@pytest.mark.parametrize("name", sorted(GRANTED_OUTSIDE))
def test_the_same_attempt_without_a_jail_succeeds(
    able: None, attempts: Path, targets: dict[str, str], name: str
) -> None:
    """As root, in name spaces that keep what is changed from the host; only those that can hurt nobody."""
    argument = targets.get(name, "")
    words = [str(attempts), name, argument]
    if name not in ABOUT_THE_HOST:
        script = 'exec 9<"$1"; mount -t tmpfs none /tmp; shift; exec /proc/self/fd/9 "$@"'
        private = ("unshare", "--mount", "--uts", "--net", "--pid", "--fork", "--mount-proc")
        words = [*private, "bash", "-c", script, "bash", str(attempts), name, argument]
    done = subprocess.run(words, capture_output=True, text=True, timeout=30, check=False)
    assert done.stdout.startswith("escaped"), f"{done.stdout} {done.stderr}"


def test_a_jails_agent_keeps_to_itself_what_it_was_started_with() -> None:
    with Jail() as jail, jail.create() as box, pytest.raises(AgentRefused, match="EPERM"):
        box._agent.environment()


def test_what_the_kernel_counts_per_user_is_not_taken_from_the_host_or_a_neighbour(
    box: Sandbox, attempts: Path
) -> None:
    """Instances of inotify: 128 for each user, as most hosts have it."""
    with Jail() as jail, jail.create() as neighbour:
        neighbour.write("/tmp/attempts", attempts.read_bytes())
        neighbour.run(Action(("chmod", "755", "/tmp/attempts")))
        with _hoard(box) as taken:
            assert taken > 0
            with _hoard(box) as more:
                assert more == 0
            with _hoard(neighbour) as others:
                assert others == taken
            instance = ctypes.CDLL(None).inotify_init()
            assert instance >= 0
            os.close(instance)


@contextlib.contextmanager
def _hoard(box: Sandbox) -> Iterator[int]:
    """How many it could take; it keeps them for the block."""
    with box.stream(Action(("/tmp/attempts", "hoard"), timeout_s=None)) as hoarder:
        yield int(next(hoarder).data.split()[1])
