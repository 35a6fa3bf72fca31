"""Command lines: what every machine must have been started with, whatever its shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.substrates.vm.config import Shape
from excise.substrates.vm.lines import uml_line, walled
from excise.substrates.vm.qemu_line import KVM, TCG, Files, qemu_line

SHAPE = Shape(512, 1, 1 << 30, 100, None, network=False)
shapes = st.builds(
    Shape,
    memory_mib=st.integers(64, 1 << 20),
    processors=st.integers(1, 64),
    disk_bytes=st.integers(1 << 24, 1 << 40),
    pids=st.none() | st.integers(1, 1 << 20),
    cpuset=st.none(),
    network=st.booleans(),
)


def qemu(shape=SHAPE, **more):
    files = Files(kernel=5, initrd=6, memory=7, chain=more.pop("chain", (8,)))
    how = {"accel": TCG, "port": 3, "monitor": 4, **more}
    return qemu_line("qemu", shape, files, **how)


def after(words, option):
    return [words[at + 1] for at, word in enumerate(words) if word == option]


@given(shapes)
def test_user_mode_linux_can_never_mount_what_its_process_can_read(shape):
    words = uml_line("linux", shape, initrd=3, disk=4, port=5)
    assert "hostfs=/nonexistent" in words
    assert f"mem={shape.memory_mib}M" in words
    assert (f"excise_tasks={shape.pids}" in words) == (shape.pids is not None)


@given(shapes, st.sampled_from([KVM, TCG]))
def test_qemu_has_no_device_that_was_not_asked_for_and_may_start_nothing(shape, accel):
    words = qemu(shape, accel=accel)
    assert {"-nodefaults", "-no-user-config", "-no-reboot"} <= set(words)
    assert "spawn=deny" in after(words, "-sandbox")[0]
    assert bool(after(words, "-netdev")) == shape.network
    assert ("mitigations=off" in after(words, "-append")[0]) == (accel == TCG)


@given(st.integers(1, 6))
def test_each_disk_lies_over_the_one_before_and_only_the_guest_s_own_is_written(depth):
    disks = after(qemu(chain=tuple(range(10, 10 + depth))), "-blockdev")
    written = [disk for disk in disks if "read-only=on" not in disk]
    assert written == [
        "file,locking=off,node-name=own,filename=cow",
        f"qcow2,node-name=disk,file=own,backing=n{depth - 1}",
    ]
    for level in range(1, depth):
        assert any(f"backing=n{level - 1},node-name=n{level}," in disk for disk in disks)


def test_a_copy_keeps_its_writes_to_itself_and_waits():
    words = qemu(private=True, incoming=True)
    assert "share=off" in after(words, "-object")[0]
    assert after(words, "-incoming") == ["defer"]
    assert "share=on" in after(qemu(), "-object")[0]


@pytest.mark.parametrize("own_network", [True, False])
def test_root_s_machines_are_nobody_s(own_network):
    words = walled(["x"], processors=(1, 2), root=True, own_network=own_network)
    assert {"--no-new-privs", "--bounding-set=-all", "--reuid=65534", "--regid=65534"} <= set(words)
    assert ("--net" in words) == own_network
    assert "--reuid=65534" not in walled(["x"], processors=(1,), root=False)
