"""Sandboxes that come and go by every door leave nothing in the service but what its bounded memories hold."""

from __future__ import annotations

import asyncio
import gc
import secrets
from collections import Counter, deque

import aiohttp
import pytest

WARM, MORE = 240, 240
"""What fills memories that are bounded, here to little; and what must not add to that."""


async def come_and_go(http: aiohttp.ClientSession, url: str, count: int) -> None:
    gate = asyncio.Semaphore(16)

    async def asked(method: str, path: str, **more: object) -> dict[str, str]:
        async with http.request(method, url + path, **more) as answer:
            assert answer.status < 300, (path, await answer.text())
            return await answer.json() if "json" in answer.content_type else {}

    async def native(number: int) -> None:
        headers = {"Idempotency-Key": secrets.token_hex(8)}
        box = (await asked("POST", "/v1/sandboxes", json={}, headers=headers))["id"]
        headers = {"Action-Id": f"action{number}"}
        await asked("POST", f"/v1/sandboxes/{box}/run", json={"argv": ["true"]}, headers=headers)
        await asked("DELETE", f"/v1/sandboxes/{box}")

    async def daytona(number: int) -> None:
        box = (await asked("POST", "/api/sandbox", json={"labels": {"n": str(number)}}))["id"]
        await asked("POST", f"/toolbox/{box}/process/execute", json={"command": "true"})
        await asked("GET", f"/api/sandbox/{box}/ports/80/signed-preview-url")
        await asked("DELETE", f"/api/sandbox/{box}")

    async def e2b(number: int) -> None:
        more = {"templateID": "base", "metadata": {"group": str(number // 8)}}
        made = await asked("POST", "/v2/sandboxes", json=more)
        inside = {"E2b-Sandbox-Id": made["sandboxID"], "X-Access-Token": made["envdAccessToken"]}
        await asked("POST", "/process.Process/List", json={}, headers=inside)
        await asked("DELETE", f"/sandboxes/{made['sandboxID']}")

    async def one(number: int) -> None:
        async with gate:
            await (native, daytona, e2b)[number % 3](number)

    await asyncio.gather(*(one(number) for number in range(count)))


def census() -> Counter[str]:
    gc.collect()
    return Counter(type(each).__qualname__ for each in gc.get_objects())


@pytest.mark.timeout(120)
def test_what_comes_and_goes_leaves_nothing_behind(serve, monkeypatch):
    monkeypatch.setattr("excise.service.census.TOMBSTONES", 10)
    monkeypatch.setattr("excise.service.census.DUES_OF_THE_DEAD", 0)
    monkeypatch.setattr("excise.service.actions.MOST_KEPT", 10)

    async def work():
        async with serve("fake") as served:
            cloud = served.cloud
            cloud._once._kept = 10
            cloud.taxes.recent = deque(maxlen=10)
            both = {"X-API-Key": served.token, "Authorization": f"Bearer {served.token}"}
            async with aiohttp.ClientSession(headers=both) as http:
                await come_and_go(http, served.url, WARM)
                census()  # the first one adds to what is remembered of types
                before = census()
                await come_and_go(http, served.url, MORE)
                grown = census() - before
            assert cloud.taxes.actions > 0
            assert not {name: n for name, n in grown.items() if n > MORE // 4}

    asyncio.run(work())
