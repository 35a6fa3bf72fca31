"""The live page in a real browser: what it shows, by keyboard, on a small screen, and without an asset from elsewhere."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import sys
import time
from pathlib import Path

import aiohttp
import pytest

from excise.service.keys import Ring, Scope, new_key
from excise.service.sandbox import Wanted
from excise.types import Action

PICTURES = os.environ.get("EXCISE_PICTURES")
"""A folder to keep the pictures in, for whoever wants to look at them."""


@pytest.fixture(scope="module")
def chromium():
    source = Path(__file__).with_name("chromium.py")
    spec = importlib.util.spec_from_file_location("chromium", source)
    module = importlib.util.module_from_spec(spec)
    sys.modules["chromium"] = module
    spec.loader.exec_module(module)
    module.program()
    return module


def watcher(served) -> str:
    key, token = new_key("ops", time.time(), scope=Scope.WATCH)
    mine, mine_token = new_key("alice", time.time())
    served.desk.ring = Ring([key, mine])
    served.token = mine_token
    return token


async def traffic(cloud) -> None:
    """Rollouts that ended, some that live, and one that failed."""
    for turn in range(12):
        box = await cloud.create("alice", Wanted(template="base", labels={"group": str(turn // 4)}))
        for number in range(turn % 5 + 2):
            await cloud.run(box, Action.shell(f"exit {number % 2}"))
        await cloud.destroy(box)
    for name in ("<img src=x onerror=alert(1)>", "plain"):
        box = await cloud.create("bob", Wanted(labels={"x": name}))
        for _ in range(20):
            await cloud.run(box, Action(("true",)))
    paused = await cloud.create("alice", Wanted())
    await cloud.pause(paused)
    cloud.metrics.failed("sandbox_gone", "run")


@pytest.mark.timeout(180)
def test_whoever_is_on_call_sees_what_happens_by_keyboard_and_on_a_phone(serve, chromium, tmp_path):
    async def work():
        async with serve("jail+pool") as served, chromium.opened(tmp_path / "profile") as tab:
            token = watcher(served)
            await traffic(served.cloud)
            await tab.size(1280, 900)
            await tab.do("Page.navigate", url=f"{served.url}/#key={token}")
            await tab.until("document.querySelectorAll('#boxes tbody tr').length === 3")
            assert await tab.ask("location.hash") == "", "the key does not stay in the address"
            assert await tab.ask("document.querySelectorAll('#bars g').length") == 12
            assert await tab.ask("document.querySelectorAll('#series path.p99').length") == 1
            phases = await tab.ask(
                "[...document.querySelectorAll('#latency tbody tr')].map(r => r.cells[0].textContent)"
            )
            assert {"create", "ready", "dispatch", "work", "cleanup"} <= set(phases)
            assert "sandbox_gone" in await tab.ask(
                "document.getElementById('failures').textContent"
            )
            assert "idle" in await tab.ask("document.getElementById('pool-status').textContent")
            assert "straggler" in await tab.ask("document.getElementById('spent').textContent")
            if PICTURES:
                await tab.picture(Path(PICTURES) / "page.png")
            await tab.key("ArrowDown")
            await tab.key("ArrowDown")
            focused = await tab.ask("document.activeElement.dataset.id")
            await tab.key("Enter", "\r")
            await tab.until(
                "document.getElementById('one').open && document.querySelectorAll('#timeline g').length > 0"
            )
            assert (
                await tab.ask("document.getElementById('one-h').textContent.split(' ')[0]")
                == focused
            )
            assert await tab.ask("document.querySelectorAll('#timeline g').length") == 20
            if PICTURES:
                await tab.picture(Path(PICTURES) / "timeline.png")
            await tab.ask("document.getElementById('close').click()")
            await tab.until(f"document.activeElement.dataset.id === '{focused}'")
            await tab.key("Enter", "\r")
            await tab.until("document.getElementById('one').open")
            await tab.ask(
                "document.getElementById('close').click(), document.getElementById('find').focus(),"
                "new Promise(done => setTimeout(done, 50))"
            )
            assert await tab.ask("document.activeElement.id") == "find", "closing took the focus"
            await tab.ask("document.activeElement.blur()")
            await tab.key("/", "/")
            assert await tab.ask("document.activeElement.id") == "find"
            for letter in "paused":
                await tab.key(letter, letter)
            await tab.until("document.querySelectorAll('#boxes tbody tr').length === 1")
            for width in (360, 768, 1280):
                await tab.size(width, 800)
                over = "document.documentElement.scrollWidth - innerWidth"
                assert await tab.ask(over) <= 0, width
            await tab.size(360, 800)
            if PICTURES:
                await tab.picture(Path(PICTURES) / "phone.png")
            assert tab.complaints == []

    asyncio.run(work())


@pytest.mark.timeout(120)
def test_an_owner_sees_his_own_and_a_wrong_key_sees_nothing(serve, chromium, tmp_path):
    async def work():
        async with serve("jail") as served, chromium.opened(tmp_path / "profile") as tab:
            watcher(served)
            await traffic(served.cloud)
            await tab.do("Page.navigate", url=f"{served.url}/#key={served.token}")
            await tab.until("document.querySelectorAll('#boxes tbody tr').length === 1")
            assert await tab.ask("document.getElementById('latency').closest('section').hidden")
            await tab.do("Page.navigate", url=f"{served.url}/?#key=wrong")
            await tab.until(
                "document.getElementById('what')?.textContent.includes('no valid API key')"
            )

    asyncio.run(work())


def test_nothing_of_the_page_comes_from_elsewhere_and_numbers_want_a_watchers_key(serve):
    async def work():
        async with serve("fake") as served, aiohttp.ClientSession() as http:
            token = watcher(served)
            for path in ("/", "/page/page.css", "/page/page.js"):
                async with http.get(served.url + path) as answer:
                    assert answer.status == 200
                    text = await answer.text()
                    assert "default-src 'none'" in answer.headers["Content-Security-Policy"]
                    assert not re.search(
                        r"(?:src|href|url\(|import)[^\n]{0,20}//(?!www\.w3\.org)", text
                    )
            box = await served.cloud.create("bob", Wanted())
            await served.cloud.run(box, Action(("true",)))
            timeline = f"/v1/sandboxes/{box.id}/timeline"
            wanted = {
                "/metrics": (401, 200),
                "/v1/live": (200, 200),
                "/v1/rollouts": (401, 200),
                timeline: (404, 200),
            }
            for path, (owner, watching) in wanted.items():
                for key, status in ((served.token, owner), (token, watching), ("no", 401)):
                    async with http.get(served.url + path, headers={"X-API-Key": key}) as answer:
                        assert answer.status == status, (path, key)
            async with http.get(
                f"{served.url}/metrics", headers={"Authorization": f"Bearer {token}"}
            ) as answer:
                lines = (await answer.text()).splitlines()
            assert 'excise_sandboxes{state="running"} 1' in lines
            assert any(
                line.startswith('excise_phase_seconds_count{phase="work"} 1') for line in lines
            )
            form = re.compile(
                r'# (HELP|TYPE) \w+ .+|\w+(\{\w+="[^"]*"(,\w+="[^"]*")*\})? -?[0-9.e+-]+'
            )
            assert all(form.fullmatch(line) for line in lines)
            async with http.get(
                f"{served.url}/v1/live", headers={"X-API-Key": served.token}
            ) as answer:
                mine = await answer.json()
            assert mine["sandboxes"] == []
            assert "latency_ms" not in mine

    asyncio.run(work())
