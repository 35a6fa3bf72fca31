"""Hetzner's cloud by its REST interface."""

from __future__ import annotations

import contextlib
import json
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
from excise.substrates.vm.cloud.rest import Rest

ENDPOINT = "https://api.hetzner.cloud/v1"
_NO_CAPACITY = ("resource_unavailable", "resource_limit_exceeded", "placement_error")
_STATES = {"initializing": State.PENDING, "starting": State.PENDING, "running": State.RUNNING}


class Hetzner:
    """One project, whose token it is."""

    name = "hetzner"

    def __init__(self, options: Options, token: str) -> None:
        self._options = options
        self._rest = Rest(options.endpoint or ENDPOINT, token, error_of)

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
        found = await self._rest.ask("POST", "servers", wanted)
        return str(found["server"]["id"])

    async def look(self, machine: str) -> Look:
        found = (await self._rest.ask("GET", f"servers/{machine}"))["server"]
        address = ((found.get("public_net") or {}).get("ipv4") or {}).get("ip")
        return Look(_STATES.get(found["status"], State.GONE), address)

    async def delete(self, machine: str) -> None:
        with contextlib.suppress(Unknown):
            await self._rest.ask("DELETE", f"servers/{machine}")

    async def owned(self) -> Sequence[Owned]:
        found: list[Owned] = []
        page: int | None = 1
        while page is not None:
            answer = await self._rest.ask("GET", f"servers?label_selector={MINE}%3D1&page={page}")
            found += [Owned(str(each["id"]), each["labels"]) for each in answer["servers"]]
            page = answer.get("meta", {}).get("pagination", {}).get("next_page")
        return found

    async def close(self) -> None:
        """Nothing is kept."""


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
