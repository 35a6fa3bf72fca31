"""What a sandbox uses, found by asking its kernel from inside, when somebody wants to know."""

from __future__ import annotations

import time
from typing import Any

from excise.errors import Phase, SubstrateError
from excise.service.cloud import Cloud
from excise.service.e2b.entries import moment_s
from excise.service.e2b.told import sizes
from excise.service.errors import NAME
from excise.service.sandbox import Sandbox
from excise.types import MIB, Action

_SCRIPT = r"""
ticks() { cat /proc/[0-9]*/stat 2>/dev/null | sed 's/^.*) //' | awk '{ t += $12 + $13 } END { print t + 0 }'; }
first=$(ticks); sleep 0.1; second=$(ticks)
pages=$(cat /proc/[0-9]*/statm 2>/dev/null | awk '{ p += $2 - $3 } END { print p + 0 }')
disk=$(df -Pk / | awk 'NR == 2 { print $2, $3 }')
echo $((second - first)) "$(getconf CLK_TCK)" "$pages" "$(getconf PAGESIZE)" $disk
"""
_SAMPLE_S = 0.1


async def measured(cloud: Cloud, sandbox: Sandbox) -> dict[str, Any]:
    """One entry of the list that clients expect."""
    found = await cloud.run(sandbox, Action(("sh", "-c", _SCRIPT), user="root", timeout_s=10.0))
    numbers = found.stdout.split()
    if not found.ok or len(numbers) != 6 or not all(each.isdigit() for each in numbers):
        text = "what the sandbox uses cannot be read: it has no sh, awk, sed, df or getconf"
        raise SubstrateError(text, substrate=NAME, phase=Phase.RUN)
    ticks, ticks_per_s, pages, page_bytes, disk_kib, used_kib = map(int, numbers)
    limits = sandbox.spec.limits
    size = sizes(limits)
    now_s = time.time()
    cores = limits.cpus or size["cpuCount"]
    return {
        "timestamp": moment_s(now_s),
        "timestampUnix": int(now_s),
        "cpuCount": size["cpuCount"],
        "cpuUsedPct": round(100 * ticks / ticks_per_s / _SAMPLE_S / cores, 2),
        "memUsed": pages * page_bytes,
        "memTotal": size["memoryMB"] * MIB,
        "memCache": 0,
        "diskUsed": used_kib * 1024,
        "diskTotal": limits.disk_bytes or disk_kib * 1024,
    }
