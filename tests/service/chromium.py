"""A real Chromium, driven over its own debugging protocol: navigate, ask, press keys, take pictures."""

from __future__ import annotations

import asyncio
import base64
import json
import os
import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest


def program() -> str:
    """Its path; a skip without it, and a failure where it is required."""
    for name in ("chromium", "chromium-browser", "google-chrome"):
        if found := shutil.which(name):
            return found
    if "browser" in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail("EXCISE_REQUIRE asks for a browser, and there is no chromium", pytrace=False)
    pytest.skip("no chromium to open the page in")


SHOWN = """[
    `focus: ${document.activeElement?.outerHTML.slice(0, 200)}`,
    `fields: ${[...document.querySelectorAll("input:not([type=password])")].map(x => `${x.id}=${x.value}`)}`,
    `pressed: ${[...document.querySelectorAll("[aria-pressed=true]")].map(x => x.id)}`,
    `dialogs: ${[...document.querySelectorAll("dialog[open]")].map(x => x.id)}`,
    `hidden: ${document.hidden}`,
    document.body.innerText,
].join("\\n")"""
"""What a person would see, for whoever reads the test's failure."""


class Tab:
    """One page that is open."""

    def __init__(self, socket: aiohttp.ClientWebSocketResponse) -> None:
        self._socket = socket
        self._number = 0
        self.complaints: list[str] = []

    async def do(self, method: str, **more: Any) -> dict[str, Any]:
        self._number += 1
        await self._socket.send_json({"id": self._number, "method": method, "params": more})
        while True:
            said = await self._socket.receive_json(timeout=30)
            if said.get("id") == self._number:
                assert "error" not in said, said
                return said["result"]
            entry = said.get("params", {}).get("entry", {})
            if said.get("method") == "Runtime.exceptionThrown" or entry.get("level") == "error":
                self.complaints.append(json.dumps(said["params"])[:500])

    async def ask(self, script: str) -> Any:
        found = await self.do(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    async def until(self, script: str) -> None:
        try:
            async with asyncio.timeout(30):
                while not await self.ask(script):  # noqa: ASYNC110
                    await asyncio.sleep(0.05)
        except TimeoutError:
            shown = await self.ask(SHOWN)
            raise AssertionError(f"never: {script}\n{shown}\n{self.complaints}") from None

    async def key(self, name: str, text: str = "") -> None:
        await self.do("Input.dispatchKeyEvent", type="keyDown", key=name, text=text)
        await self.do("Input.dispatchKeyEvent", type="keyUp", key=name)

    async def size(self, width: int, height: int) -> None:
        await self.do(
            "Emulation.setDeviceMetricsOverride",
            width=width, height=height, deviceScaleFactor=1, mobile=width < 500,
        )  # fmt: skip

    async def picture(self, path: Path) -> None:
        found = await self.do("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        path.write_bytes(base64.b64decode(found["data"]))  # noqa: ASYNC240


@asynccontextmanager
async def opened(folder: Path) -> AsyncIterator[Tab]:
    """A browser with one empty tab, gone at the end with all it left."""
    process = await asyncio.create_subprocess_exec(
        program(), "--headless", "--no-sandbox", "--disable-gpu", "--no-first-run",
        "--remote-debugging-port=0", f"--user-data-dir={folder}", "about:blank",
        stdout=asyncio.subprocess.DEVNULL, stderr=asyncio.subprocess.DEVNULL,
        start_new_session=True,
    )  # fmt: skip
    try:
        port_file = folder / "DevToolsActivePort"
        async with asyncio.timeout(45):
            while not port_file.exists() or not port_file.read_text().strip():  # noqa: ASYNC110
                await asyncio.sleep(0.05)
        port = port_file.read_text().split()[0]
        async with aiohttp.ClientSession() as http:
            async with http.get(f"http://127.0.0.1:{port}/json") as answer:
                tabs = [t for t in await answer.json() if t["type"] == "page"]
            address = tabs[0]["webSocketDebuggerUrl"]
            async with http.ws_connect(address, max_msg_size=0) as socket:
                tab = Tab(socket)
                for domain in ("Page", "Runtime", "Log"):
                    await tab.do(f"{domain}.enable")
                yield tab
    finally:
        os.killpg(process.pid, 9)
        await process.wait()
        await asyncio.sleep(0.1)
