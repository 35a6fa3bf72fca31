"""What an egress list may say, and the packet filter that is made of it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from ipaddress import IPv4Address, IPv6Address, ip_address

import pytest
from hypothesis import given
from hypothesis import strategies as st

from excise.errors import InputError
from excise.jail.destinations import Destination, destinations, is_refused, names
from excise.jail.firewall import Known, allow_rules, elements, full_rules, hosts_file, set_elements
from excise.types import Allow

ADDRESSES = st.one_of(st.ip_addresses(v=4), st.ip_addresses(v=6))
REACHABLE = ADDRESSES.filter(lambda a: not is_refused(a))
PORTS = st.integers(1, 65535)
NAMES = st.from_regex(r"[a-z][a-z0-9-]{0,10}[a-z0-9](\.[a-z]{2,8}){0,2}", fullmatch=True)
PROTOCOLS = st.sampled_from(["tcp", "udp"])
DESTINATIONS = st.builds(Destination, st.one_of(NAMES, REACHABLE.map(str)), PORTS, PROTOCOLS)
ANSWERS = st.dictionaries(NAMES, st.lists(ADDRESSES, max_size=4), max_size=4)


@given(st.sets(DESTINATIONS, max_size=8))
def test_a_list_that_is_written_down_is_read_back(wanted: set[Destination]) -> None:
    assert set(destinations(Allow(tuple(map(str, wanted))))) == wanted


def test_a_name_is_the_same_in_any_case_and_with_its_final_dot() -> None:
    listed = Allow(("PyPI.org:443", "pypi.org.:443", "pypi.org:443/tcp"))
    assert destinations(listed) == (Destination("pypi.org", 443),)
    assert names(destinations(listed)) == ("pypi.org",)


@pytest.mark.parametrize(
    "target",
    [
        "", "pypi.org", "pypi.org:", ":443", "pypi.org:0", "pypi.org:65536", "pypi.org:http",
        "*.pypi.org:443", "https://pypi.org:443", "pypi.org:443/sctp", "pypi.org:443 ", "a b:1",
        "2001:db8::1:443", "[2001:db8::g]:443", "[pypi.org]:443", "1.2.3:80", "256.1.1.1:80",
        "-a.org:80", "a..b:80", f"{'a' * 64}.org:80", "10.0.0.0/8:80", "pypi.org\n:443",
        "127.0.0.1:22", "[::1]:22", "169.254.169.254:80", "[fd00:ec2::254]:80",
        "[::ffff:169.254.169.254]:80", "[fe80::1]:80", "0.0.0.0:80", "100.100.100.200:80",
    ],
)  # fmt: skip
def test_a_target_that_cannot_be_is_refused_in_one_line(target: str) -> None:
    with pytest.raises(InputError) as refused:
        destinations(Allow((target,)))
    assert len(str(refused.value).splitlines()) == 1


@given(st.ip_addresses(v=4))
def test_a_translator_makes_no_address_reachable_that_is_not(address: IPv4Address) -> None:
    translated = IPv6Address(int(IPv6Address("64:ff9b::")) + int(address))
    assert is_refused(translated) == is_refused(address)


def test_a_string_is_no_list_of_targets() -> None:
    with pytest.raises(InputError, match="tuple"):
        destinations(Allow("pypi.org:443"))  # type: ignore[arg-type]


@given(st.lists(DESTINATIONS, max_size=8), st.lists(ANSWERS, max_size=3))
def test_only_listed_addresses_and_answers_for_listed_names_are_let_out(
    wanted: list[Destination], rounds: list[dict[str, list[IPv4Address | IPv6Address]]]
) -> None:
    known = Known()
    for at, answers in enumerate(rounds):
        known = known.after(answers, float(at), 100.0)
    let_out = {
        (str(address), port, protocol)
        for (protocol, _), pairs in elements(wanted, known).items()
        for address, port in pairs
    }
    asked = {(d.host, d.port, d.protocol) for d in wanted}
    answered = {(n, str(a)) for answers in rounds for n, found in answers.items() for a in found}
    for address, port, protocol in let_out:
        by_name = any((n, port, protocol) in asked for n, a in answered if a == address)
        assert (address, port, protocol) in asked or by_name
        assert not is_refused(ip_address(address))


@given(ANSWERS, ANSWERS)
def test_the_answers_of_now_are_let_out_and_nothing_that_was_not_answered(
    before: dict[str, list[IPv4Address | IPv6Address]],
    now: dict[str, list[IPv4Address | IPv6Address]],
) -> None:
    known = Known().after(before, 0.0, 10.0).after(now, 100.0, 10.0)
    current = known.current()
    for name in {*before, *now}:
        usable = {a for a in now.get(name, ()) if not is_refused(a)}
        old = {a for a in before.get(name, ()) if not is_refused(a)}
        assert set(current.get(name, ())) == (usable or old)


@given(ANSWERS)
def test_an_answer_that_no_sandbox_may_reach_is_not_passed_on(
    answers: dict[str, list[IPv4Address | IPv6Address]],
) -> None:
    told = hosts_file(Known().after(answers, 0.0, 10.0))
    assert not any(is_refused(ip_address(line.split()[0])) for line in told.splitlines())


def test_an_address_stays_let_out_for_a_while_after_its_name_has_moved() -> None:
    old, new = ip_address("203.0.113.1"), ip_address("203.0.113.2")
    moved = Known().after({"a.b": [old]}, 0.0, 60.0).after({"a.b": [new]}, 30.0, 60.0)
    assert {a for _, a in moved.seen} == {old, new}
    assert moved.current() == {"a.b": (new,)}
    later = moved.after({"a.b": [new]}, 90.0, 60.0)
    assert {a for _, a in later.seen} == {new}


def test_a_name_that_is_not_answered_any_more_keeps_its_last_addresses() -> None:
    last = ip_address("203.0.113.1")
    known = Known().after({"a.b": [last]}, 0.0, 60.0).after({"a.b": []}, 1000.0, 60.0)
    assert known.current() == {"a.b": (last,)}


@given(st.lists(DESTINATIONS, max_size=6), ANSWERS)
def test_the_filter_of_a_list_refuses_by_default_and_accepts_only_through_its_sets(
    wanted: list[Destination], answers: dict[str, list[IPv4Address | IPv6Address]]
) -> None:
    rules = allow_rules(wanted, Known().after(answers, 0.0, 10.0))
    leaving = rules[rules.index("chain leaving") :]
    chain = leaving[: leaving.index("\n}")]
    assert "policy drop" in chain
    accepts = [line.strip() for line in chain.splitlines() if line.endswith(" accept")]
    through_sets = [a for a in accepts if re.search(r"@(tcp|udp)[46] accept", a)]
    assert len(through_sets) == 4
    assert {a.split()[0] for a in accepts if a not in through_sets} == {
        "oifname", "meta", "icmpv6", "ct",
    }  # fmt: skip
    assert "reject" in chain.rstrip().splitlines()[-2]


@given(st.lists(ADDRESSES, max_size=3))
def test_full_egress_refuses_metadata_before_it_accepts_the_rest(
    resolvers: list[IPv4Address | IPv6Address],
) -> None:
    lines = [line.strip() for line in full_rules(resolvers).splitlines()]
    refusal = lines.index("ip daddr @refused4 reject with icmpx type admin-prohibited")
    before = [line for line in lines[:refusal] if line.endswith(" accept")]
    assert sum("dport 53" in line for line in before) == len(resolvers)
    assert "accept" in lines[refusal:]


def test_nft_takes_the_rules_as_they_are_written() -> None:
    nft = shutil.which("nft") or shutil.which("nft", path="/usr/sbin:/sbin")
    if nft is None:
        reason = "nft is not installed (apt install nftables)"
        if "egress" in os.environ.get("EXCISE_REQUIRE", "").split(","):
            pytest.fail(reason, pytrace=False)
        pytest.skip(reason)
    wanted = destinations(Allow(("a.b:443", "10.0.0.1:9418", "[2001:db8::1]:53/udp")))
    known = Known().after({"a.b": [ip_address("203.0.113.1"), ip_address("2001:db8::2")]}, 0, 1)
    resolvers = [ip_address("169.254.169.253"), ip_address("fe80::1")]
    texts = [
        full_rules(resolvers),
        allow_rules(wanted, known),
        allow_rules((), Known()) + set_elements(wanted, known),
    ]
    for text in texts:
        command = ["unshare", "--user", "--map-root-user", "--net", nft, "-f", "-"]
        done = subprocess.run(command, input=text, text=True, capture_output=True, check=False)
        assert done.returncode == 0, done.stderr
