"""What a sandbox says of its own limits, from inside: that a limit was asked for does not mean that it is there."""

from __future__ import annotations

from collections.abc import Mapping

from excise.clock import Clock
from excise.errors import SubstrateError
from excise.session import Session
from excise.substrates.base import Substrate
from excise.types import Action, Spec

SCRIPT = """echo "cores $(nproc)"
v2=/sys/fs/cgroup v1=/sys/fs/cgroup
if [ -r $v2/cpu.max ]; then
  echo "cpus $(cat $v2/cpu.max)"; echo "memory $(cat $v2/memory.max)"; echo "pids $(cat $v2/pids.max)"
else
  [ -r $v1/cpu/cpu.cfs_quota_us ] && echo "cpus $(cat $v1/cpu/cpu.cfs_quota_us) $(cat $v1/cpu/cpu.cfs_period_us)"
  [ -r $v1/memory/memory.limit_in_bytes ] && echo "memory $(cat $v1/memory/memory.limit_in_bytes)"
  [ -r $v1/pids/pids.max ] && echo "pids $(cat $v1/pids/pids.max)"
fi
true"""

UNLIMITED = 1 << 60
"""cgroup v1 calls no limit a number near 2**63."""

NONE = "none"
SEEN = "inside_"
"""Before the names of what was seen, in a study's head."""

Asked = Mapping[str, str | int | float | None]


def read(said: str) -> dict[str, str]:
    """By name what is seen: `cores`, `cpus`, `memory_bytes`, `pids`; a limit that is not there is `none`."""
    seen: dict[str, str] = {}
    for line in said.splitlines():
        match line.split():
            case ["cores" | "pids" as name, value]:
                seen[name] = _limit(value)
            case ["memory", value]:
                seen["memory_bytes"] = _limit(value)
            case ["cpus", quota, period] if period.isdecimal() and int(period):
                whole = _limit(quota)
                seen["cpus"] = NONE if whole == NONE else f"{int(whole) / int(period):g}"
    return seen


def _limit(value: str) -> str:
    if not value.isdecimal():
        return NONE
    return NONE if int(value) >= UNLIMITED else value


def otherwise(seen: Mapping[str, str], asked: Asked) -> tuple[str, ...]:
    """Which limits are not what was asked for, in words; what is not seen is not judged."""
    found = []
    for name in ("cpus", "memory_bytes", "pids"):
        wanted = asked.get(name)
        if name not in seen or wanted is None:
            continue
        have = seen[name]
        if have == NONE or abs(float(have) - float(wanted)) > 0.01 * float(wanted):
            found.append(f"{name.replace('_', ' ')} {have} instead of {wanted:g}")
    return tuple(found)


async def look(substrate: Substrate, spec: Spec, clock: Clock) -> dict[str, str]:
    """Ask one sandbox; nothing where it cannot be asked, which the trials will tell."""
    try:
        async with Session(substrate, spec, clock=clock, end_within_s=60.0) as session:
            observed = await session.act(Action.shell(SCRIPT))
    except SubstrateError:
        return {}
    return read(observed.stdout.decode("utf-8", "replace")) if observed.ok else {}
