"""What the engine is asked for, and what its messages mean."""

from __future__ import annotations

import pytest

from excise.errors import InputError
from excise.substrates.container.config import (
    Abilities,
    Options,
    container_config,
    fault_in,
    missing_user_in,
)
from excise.types import GIB, Allow, Egress, Fault, Limits, Spec

PLAIN = Abilities("overlay2", "extfs", ("none", "host"))


def host_config(spec: Spec, options: Options | None = None, can: Abilities = PLAIN) -> dict:
    return container_config(spec, "image", options or Options(), can, {})["HostConfig"]


def test_every_limit_is_asked_for() -> None:
    limits = Limits(cpus=1.5, memory_bytes=GIB, pids=64, cpuset=(0, 1))
    asked = host_config(Spec(limits=limits))
    assert asked["NanoCpus"] == 1_500_000_000
    assert asked["Memory"] == asked["MemorySwap"] == GIB
    assert asked["PidsLimit"] == 64
    assert asked["CpusetCpus"] == "0,1"


def test_no_limit_asks_for_none() -> None:
    asked = host_config(Spec(limits=Limits(None, None, None, None)))
    assert asked == {"NetworkMode": "none", "Init": True}


def test_a_disk_limit_is_asked_for_only_where_the_storage_can() -> None:
    assert "StorageOpt" not in host_config(Spec())
    on_btrfs = host_config(Spec(), can=Abilities("btrfs", "", ()))
    assert on_btrfs["StorageOpt"] == {"size": str(4 * GIB)}


@pytest.mark.parametrize(
    ("egress", "chosen", "networks", "network"),
    [
        (Egress.NONE, None, ("bridge",), "none"),
        (Egress.NONE, "host", ("bridge",), "none"),
        (Egress.FULL, None, ("bridge", "host"), "bridge"),
        (Egress.FULL, None, ("host",), "host"),
        (Egress.FULL, "mine", ("bridge",), "mine"),
    ],
)
def test_egress_decides_the_network(
    egress: Egress, chosen: str | None, networks: tuple[str, ...], network: str
) -> None:
    can = Abilities("overlay2", "", networks)
    asked = host_config(Spec(egress=egress), Options(network=chosen), can)
    assert asked["NetworkMode"] == network


def test_an_egress_list_is_refused_and_not_taken_for_full_egress() -> None:
    with pytest.raises(InputError, match="egress to a list"):
        container_config(Spec(egress=Allow(("pypi.org:443",))), "i", Options(), PLAIN, {})


def test_the_environment_of_the_spec_wins() -> None:
    config = container_config(Spec(env={"LANG": "C", "A": "b=c"}), "i", Options(), PLAIN, {})
    assert config["Env"] == ["LANG=C", "A=b=c"]


def test_unknown_options_are_refused_with_the_known_ones() -> None:
    with pytest.raises(InputError, match=r"podman has no option netwrok; it has: .*network"):
        Options.of({"engine": "podman", "netwrok": "host"})
    with pytest.raises(InputError, match="pull=always is not one of never, missing"):
        Options.of({"pull": "always"})


RUNC = "OCI runtime exec failed: exec failed: unable to start container process: "


@pytest.mark.parametrize(
    ("message", "fault", "code"),
    [
        (
            f'{RUNC}exec: "nope": executable file not found in $PATH: unknown',
            "MISSING_PROGRAM",
            127,
        ),
        (f'{RUNC}exec: "/x": stat /x: no such file or directory: unknown', "MISSING_PROGRAM", 127),
        (f'{RUNC}exec: "/etc/passwd": permission denied: unknown', "NOT_EXECUTABLE", 126),
        (
            f'{RUNC}chdir to cwd ("/nope") set in config.json failed: no such file or directory',
            "MISSING_CWD",
            126,
        ),
        (
            f'{RUNC}chdir to cwd ("/f") set in config.json failed: not a directory',
            "MISSING_CWD",
            126,
        ),
        ("crun: executable file `nope` not found in $PATH: No such file", "MISSING_PROGRAM", 127),
        ("crun: chdir: No such file or directory", "MISSING_CWD", 126),
    ],
)
def test_a_command_that_did_not_start_has_a_reason(message: str, fault: str, code: int) -> None:
    assert fault_in(message) == (Fault[fault], code)


def test_a_runtime_that_failed_is_not_the_commands_fault() -> None:
    assert fault_in(f"{RUNC}process_linux.go:99: starting setns process caused: EAGAIN") is None


def test_a_missing_user_is_told_from_a_missing_program() -> None:
    told = "unable to find user nosuch: no matching entries in passwd file\r\n"
    assert missing_user_in(told) == "unable to find user nosuch: no matching entries in passwd file"
    assert missing_user_in(RUNC) is None
