"""Hetzner's cloud by its REST interface, with nothing but the standard library."""

from __future__ import annotations

import asyncio
import contextlib
import json
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Mapping, Sequence
from typing import Any

from excise.substrates.vm.cloud.config import Options
from excise.substrates.vm.cloud.control import (
    BadRequest,
    CloudError,
    Look,
    NoCapacity,
    Owned,
    State,
    Throttled,
    Unknown,
)
from excise.substrates.vm.cloud.labels import MINE

ENDPOINT = "https://api.hetzner.cloud/v1"
ANSWER_S = 30.0
_NO_CAPACITY = ("resource_unavailable", "resource_limit_exceeded", "placement_error")
_STATES = {"initializing": State.PENDING, "starting": State.PENDING, "running": State.RUNNING}


class Hetzner:
    """One project, whose token it is."""

    name = "hetzner"

    def __init__(self, options: Options, token: str) -> None:
        self._options = options
        self._token = token

    async def create(self, name: str, labels: Mapping[str, str]) -> str:
        wanted: dict[str, Any] = {
            "name": name,
            "image": self._options.image,
            "server_type": self._options.type,
            "labels": dict(labels),
        }
        if self._options.region is not None:
            wanted["location"] = self._options.region
        if self._options.key_name is not None:
            wanted["ssh_keys"] = [self._options.key_name]
        found = await self._ask("POST", "servers", wanted)
        return str(found["server"]["id"])

    async def look(self, machine: str) -> Look:
        found = (await self._ask("GET", f"servers/{machine}"))["server"]
        address = ((found.get("public_net") or {}).get("ipv4") or {}).get("ip")
        return Look(_STATES.get(found["status"], State.GONE), address)

    async def delete(self, machine: str) -> None:
        with contextlib.suppress(Unknown):
            await self._ask("DELETE", f"servers/{machine}")

    async def owned(self) -> Sequence[Owned]:
        found: list[Owned] = []
        page: int | None = 1
        while page is not None:
            answer = await self._ask("GET", f"servers?label_selector={MINE}%3D1&page={page}")
            found += [Owned(str(each["id"]), each["labels"]) for each in answer["servers"]]
            page = answer.get("meta", {}).get("pagination", {}).get("next_page")
        return found

    async def close(self) -> None:
        """Nothing is kept."""

    async def _ask(self, verb: str, path: str, body: object | None = None) -> dict[str, Any]:
        return await asyncio.to_thread(self._ask_now, verb, path, body)

    def _ask_now(self, verb: str, path: str, body: object | None) -> dict[str, Any]:
        data = None if body is None else json.dumps(body).encode()
        headers = {"Authorization": f"Bearer {self._token}", "Content-Type": "application/json"}
        url = f"{self._options.endpoint or ENDPOINT}/{path}"
        request = urllib.request.Request(url, data, headers, method=verb)  # noqa: S310  # as chosen by the user
        try:
            with urllib.request.urlopen(request, timeout=ANSWER_S) as answer:  # noqa: S310
                return dict(json.loads(answer.read() or b"{}"))
        except urllib.error.HTTPError as error:
            with error:
                raise error_of(error.code, error.read(), dict(error.headers)) from error
        except (OSError, ValueError) as error:
            raise CloudError(f"{verb} {path}: {error}") from error


def error_of(status: int, body: bytes, headers: Mapping[str, str]) -> CloudError:
    """What an answer that is an error means."""
    try:
        said = json.loads(body)["error"]
        code, text = str(said["code"]), f"{said['code']}: {said['message']}"
    except (ValueError, KeyError, TypeError):
        code, text = "", f"status {status}"
    if code in _NO_CAPACITY:
        return NoCapacity(text)
    if status == 429:
        after = headers.get("Retry-After", "")
        return Throttled(text, float(after) if after.isdigit() else None)
    if status == 404:
        return Unknown(text)
    return BadRequest(text) if status in {400, 401, 403, 422} else CloudError(text)
