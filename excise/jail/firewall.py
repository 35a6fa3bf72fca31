"""The packet filter of a jail as text for `nft -f`, and what its name server answers. Pure.

The rules stand in the jail's own network name space, where nothing inside may change them, and look at
what leaves it. They refuse at once instead of dropping, so that a rollout does not wait for a time-out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from ipaddress import IPv4Address

from excise.jail.destinations import REFUSED4, REFUSED6, Address, Destination, is_refused

PROBE_MARK = 0x65786369
"""Packets of the keeper's own probe. Marking takes a capability that nothing in a jail has."""

_MENDED_REFUSAL = (
    'iifname != "lo" tcp flags & (rst | ack) == rst tcp ackseq != 0 tcp flags set rst | ack'
)
"""pasta of 2023 acknowledges the SYN of a refused connection without saying so, and the kernel waits on."""

_SETS = (("tcp", 4), ("tcp", 6), ("udp", 4), ("udp", 6))
_ENDING = """
    meta l4proto tcp reject with tcp reset
    reject with icmpx type admin-prohibited
  }
}
"""


@dataclass(frozen=True, slots=True)
class Known:
    """The addresses that names had lately, and when each was last answered (seconds of any steady clock)."""

    seen: Mapping[tuple[str, Address], float] = field(default_factory=dict)

    def after(self, answers: Mapping[str, Iterable[Address]], now_s: float, keep_s: float) -> Known:
        """With these answers; what was not answered for `keep_s` is forgotten, except a name's last answers.

        Addresses that no sandbox may reach are not believed, whoever answers with them.
        """
        fresh = {(n, a): now_s for n, found in answers.items() for a in found if not is_refused(a)}
        merged = {**self.seen, **fresh}
        latest = _latest(merged)
        return Known(
            {
                key: seen
                for key, seen in merged.items()
                if now_s - seen < keep_s or seen == latest[key[0]]
            }
        )

    def current(self) -> dict[str, tuple[Address, ...]]:
        """What each name was last known as."""
        latest = _latest(self.seen)
        found: dict[str, list[Address]] = {}
        for (name, address), seen in self.seen.items():
            if seen == latest[name]:
                found.setdefault(name, []).append(address)
        return {name: tuple(sorted(each, key=str)) for name, each in sorted(found.items())}


def _latest(seen: Mapping[tuple[str, Address], float]) -> dict[str, float]:
    latest: dict[str, float] = {}
    for (name, _), when in seen.items():
        latest[name] = max(when, latest.get(name, when))
    return latest


def hosts_file(known: Known) -> str:
    """All that the jail's name server knows."""
    return "".join(
        f"{address} {name}\n" for name, found in known.current().items() for address in found
    )


def full_rules(resolvers: Iterable[Address]) -> str:
    """Everything, except what no sandbox reaches; name servers are spoken to wherever they are."""
    served = "".join(
        f"    {_family(a)} daddr {a} meta l4proto {{ tcp, udp }} th dport 53 accept\n"
        for a in resolvers
    )
    return _head("") + served + _refusals() + "    accept\n  }\n}\n"


def allow_rules(wanted: Iterable[Destination], known: Known) -> str:
    """These destinations and nothing else."""
    sets = "".join(
        f"  set {protocol}{version} {{ type ipv{version}_addr . inet_service; }}\n"
        for protocol, version in _SETS
    )
    accepts = "".join(
        f"    {'ip' if version == 4 else 'ip6'} daddr . {protocol} dport"
        f" @{protocol}{version} accept\n"
        for protocol, version in _SETS
    )
    established = "    ct state established,related accept\n"
    rules = _head(sets) + _refusals() + established + accepts + _ENDING.removeprefix("\n")
    return rules + set_elements(wanted, known)


def set_elements(wanted: Iterable[Destination], known: Known) -> str:
    """Make the sets hold just what is wanted, in one transaction. Connections that stand keep standing."""
    text = "".join(f"flush set inet excise {protocol}{version}\n" for protocol, version in _SETS)
    for (protocol, version), pairs in elements(wanted, known).items():
        if pairs:
            listed = ", ".join(f"{address} . {port}" for address, port in pairs)
            text += f"add element inet excise {protocol}{version} {{ {listed} }}\n"
    return text


def elements(
    wanted: Iterable[Destination], known: Known
) -> dict[tuple[str, int], list[tuple[Address, int]]]:
    """By protocol and IP version: the pairs of address and port that are let out."""
    of_name: dict[str, list[Address]] = {}
    for name, address in known.seen:
        of_name.setdefault(name, []).append(address)
    found: dict[tuple[str, int], set[tuple[Address, int]]] = {each: set() for each in _SETS}
    for each in wanted:
        addresses = of_name.get(each.host, []) if each.address is None else [each.address]
        for address in addresses:
            if not is_refused(address):
                found[each.protocol, address.version].add((address, each.port))
    return {key: sorted(pairs, key=str) for key, pairs in found.items()}


def _family(address: Address) -> str:
    return "ip" if isinstance(address, IPv4Address) else "ip6"


def _head(sets: str) -> str:
    four, six = (", ".join(map(str, nets)) for nets in (REFUSED4, REFUSED6))
    return f"""add table inet excise
delete table inet excise
table inet excise {{
  set refused4 {{ type ipv4_addr; flags interval; elements = {{ {four} }} }}
  set refused6 {{ type ipv6_addr; flags interval; elements = {{ {six} }} }}
{sets}  chain arriving {{
    type filter hook input priority raw; policy accept;
    {_MENDED_REFUSAL}
  }}
  chain leaving {{
    type filter hook output priority 0; policy drop;
    oifname "lo" accept
    meta mark {PROBE_MARK:#x} accept
    icmpv6 type {{ nd-neighbor-solicit, nd-neighbor-advert, nd-router-solicit }} accept
"""


def _refusals() -> str:
    lines = (
        f"    {family} daddr @refused{version} {rest}\n"
        for family, version in (("ip", 4), ("ip6", 6))
        for rest in (
            "meta l4proto tcp reject with tcp reset",
            "reject with icmpx type admin-prohibited",
        )
    )
    return "".join(lines)
