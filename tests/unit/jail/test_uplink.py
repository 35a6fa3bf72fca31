"""The tools of a jail's network are asked for what keeps it closed."""

from __future__ import annotations

from ipaddress import ip_address

from hypothesis import given
from hypothesis import strategies as st

from excise.jail.uplink import (
    NAME_SERVER,
    Resolving,
    allowed_resolv_conf,
    dnsmasq_command,
    naming,
    pasta_command,
)  # fmt: skip

STUB = Resolving((ip_address("127.0.0.53"),), ("lan",))
REAL = Resolving((ip_address("10.1.1.1"), ip_address("2001:db8::53")), ("corp.example",))


def test_a_resolv_conf_is_read_as_the_c_library_reads_it() -> None:
    text = "# x\nnameserver 10.1.1.1 # y\nsearch a.b c.d\nnameserver fe80::1%eth0\noptions edns0\n"
    assert Resolving.of(text) == Resolving((ip_address("10.1.1.1"),), ("a.b", "c.d"))


def test_a_stub_on_the_loopback_is_passed_over_for_the_servers_behind_it() -> None:
    found = naming([STUB, REAL])
    assert (
        found.resolv_conf == "search corp.example\nnameserver 10.1.1.1\nnameserver 2001:db8::53\n"
    )
    assert found.stub == ""


def test_a_lone_stub_is_asked_for_the_jail_which_asks_its_own_loopback() -> None:
    found = naming([STUB, Resolving()])
    assert found.resolv_conf == f"search lan\nnameserver {NAME_SERVER}\n"
    assert found.stub == "127.0.0.53"
    assert found.servers == ()


def test_a_host_without_resolvers_gives_its_jails_none() -> None:
    assert naming([Resolving()]).resolv_conf == ""


@given(st.text())
def test_any_text_is_a_resolv_conf(text: str) -> None:
    assert all(not s.is_loopback for s in Resolving.of(text).beyond_loopback)


@given(st.sets(st.sampled_from([4, 6]), min_size=1))
def test_pasta_maps_neither_ports_nor_the_loopback_of_the_host(versions: set[int]) -> None:
    command = pasta_command("/usr/bin/pasta", "/x", versions, ())
    assert "--no-map-gw" in command
    for each in ("-t", "-u", "-T", "-U"):
        assert command[command.index(each) + 1] == "none"
    assert ("--ipv4-only" in command) == (versions == {4})
    assert ("--ipv6-only" in command) == (versions == {6})


def test_the_name_server_of_a_list_has_nobody_to_ask() -> None:
    command = dnsmasq_command("/usr/sbin/dnsmasq", "/hosts", "nobody")
    assert {"--no-resolv", "--no-hosts", "--local=/#/"} <= set(command)
    assert not any(part.startswith(("--server", "--rev-server")) for part in command)
    assert NAME_SERVER in allowed_resolv_conf(["pypi.org"])
    assert allowed_resolv_conf([]) == ""
