"""What goes to a cloud and to ssh, and what their answers mean."""

from __future__ import annotations

import json

import pytest

from excise.errors import InputError
from excise.substrates.container.owner import Owner, myself
from excise.substrates.vm.cloud import ec2, hetzner
from excise.substrates.vm.cloud.config import Options
from excise.substrates.vm.cloud.control import (
    BadRequest,
    CloudError,
    NoCapacity,
    Throttled,
    Unknown,
)
from excise.substrates.vm.cloud.labels import is_left_behind, labels_of
from excise.substrates.vm.cloud.ssh import Account, ssh_line


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("InsufficientInstanceCapacity", NoCapacity),
        ("VcpuLimitExceeded", NoCapacity),
        ("RequestLimitExceeded", Throttled),
        ("InvalidInstanceID.NotFound", Unknown),
        ("InvalidAMIID.NotFound", BadRequest),
        ("UnauthorizedOperation", BadRequest),
        ("InternalError", CloudError),
    ],
)
def test_an_error_of_ec2_is_what_can_be_done_about_it(code, kind):
    assert type(ec2.error_of({"Code": code, "Message": "because"})) is kind


@pytest.mark.parametrize(
    ("status", "code", "kind"),
    [
        (412, "resource_unavailable", NoCapacity),
        (403, "resource_limit_exceeded", NoCapacity),
        (429, "rate_limit_exceeded", Throttled),
        (404, "not_found", Unknown),
        (401, "unauthorized", BadRequest),
        (500, "server_error", CloudError),
    ],
)
def test_an_error_of_hetzner_is_what_can_be_done_about_it(status, code, kind):
    body = json.dumps({"error": {"code": code, "message": "because"}}).encode()
    found = hetzner.error_of(status, body, {"Retry-After": "7"})
    assert type(found) is kind
    if isinstance(found, Throttled):
        assert found.after_s == 7.0


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"error": 5}'])
def test_an_answer_that_is_no_answer_is_an_error_all_the_same(body):
    assert type(hetzner.error_of(502, body, {})) is CloudError


def test_only_the_machines_of_certainly_dead_owners_are_left_behind():
    mine = labels_of(myself())
    assert not is_left_behind(mine)
    boot, space, pid, start = mine["excise-owner"].split(".")
    dead = {**mine, "excise-owner": f"{boot}.{space}.{pid}.{int(start) + 1}"}
    assert is_left_behind(dead)
    other_host = {**dead, "excise-owner": f"{boot[::-1]}.{space}.{pid}.1"}
    for labels in (other_host, {"excise": "1"}, {**mine, "excise-owner": "../x"}, {}):
        assert not is_left_behind(labels)


def test_an_owner_is_a_label_that_every_cloud_takes():
    longest = Owner("01234567-89ab-cdef-0123-456789abcdef", "4294967295", 4194304, 10**12)
    for value in labels_of(longest).values():
        assert len(value) <= 63
        assert set(value) <= set("0123456789abcdef.")


def test_ssh_is_told_everything_and_asks_nobody(tmp_path):
    words = ssh_line(Account("admin", tmp_path / "key"), "::1", 2222, tmp_path / "hosts", 99)
    assert words[0] == "ssh"
    assert {"BatchMode=yes", "StrictHostKeyChecking=accept-new", "IdentitiesOnly=yes"} <= set(words)
    assert words[words.index("--") + 1] == "::1"
    assert "head -c 99" in words[-1]
    assert "sudo -n" in words[-1]
    assert "sudo" not in ssh_line(Account("root"), "h", 22, tmp_path, 1)[-1]


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"provider": "garage"}, "provider=garage is not one of"),
        ({"colour": "red"}, "no option colour"),
        ({"key": "/no/such"}, "is not a file"),
        ({"boot_s": "-1"}, "not a number of seconds"),
    ],
)
def test_an_option_that_cannot_be_is_bad_input(given, said):
    with pytest.raises(InputError, match=said):
        Options.of(given)
