"""Google's Compute Engine by its REST interface. `type` and `image` are names or paths as its documentation has them."""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from excise.errors import InputError
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

ENDPOINT = "https://compute.googleapis.com/compute/v1"
PROJECT = "GOOGLE_CLOUD_PROJECT"
_NO_CAPACITY = ("ZONE_RESOURCE_POOL_EXHAUSTED", "QUOTA_EXCEEDED", "quotaExceeded")
_THROTTLED = ("rateLimitExceeded", "userRateLimitExceeded", "RESOURCE_OPERATION_RATE_EXCEEDED")
_STATES = {"PROVISIONING": State.PENDING, "STAGING": State.PENDING, "RUNNING": State.RUNNING}
_REPAIRED = {"REPAIRING": State.PENDING}


class Gcp:
    """One zone (`region` names it) of one project. A machine's id is its name."""

    name = "gcp"

    def __init__(self, options: Options, token: str) -> None:
        project = os.environ.get(PROJECT)
        if not project or options.region is None:
            raise InputError(f"vm-cloud: gcp needs the option region=ZONE, and {PROJECT} to be set")
        self._options = options
        self._zone = f"projects/{project}/zones/{options.region}"
        self._rest = Rest(options.endpoint or ENDPOINT, token, error_of)
        self._asked: dict[str, str] = {}
        """By machine, the operation that makes it: only that tells why one was not made."""

    async def create(self, name: str, labels: Mapping[str, str]) -> str:
        disk = {"boot": True, "autoDelete": True}
        disk_of = {"initializeParams": {"sourceImage": self._options.image}}
        public = {"type": "ONE_TO_ONE_NAT", "name": "External NAT"}
        wanted: dict[str, Any] = {
            "name": name,
            "machineType": f"{self._zone}/machineTypes/{self._options.type}",
            "labels": {key: value.replace(".", "_") for key, value in labels.items()},
            "disks": [{**disk, **disk_of}],
            "networkInterfaces": [{"accessConfigs": [public]}],
        }
        if self._options.key_name is not None:
            keys = f"{self._options.user}:{self._options.key_name}"
            wanted["metadata"] = {"items": [{"key": "ssh-keys", "value": keys}]}
        operation = await self._rest.ask("POST", f"{self._zone}/instances", wanted)
        self._asked[name] = str(operation["name"])
        return name

    async def look(self, machine: str) -> Look:
        await self._check(machine)
        found = await self._rest.ask("GET", f"{self._zone}/instances/{machine}")
        state = (_STATES | _REPAIRED).get(found["status"], State.GONE)
        return Look(state, _address_in(found))

    async def delete(self, machine: str) -> None:
        self._asked.pop(machine, None)
        with contextlib.suppress(Unknown):
            await self._rest.ask("DELETE", f"{self._zone}/instances/{machine}")

    async def owned(self) -> Sequence[Owned]:
        found: list[Owned] = []
        page = ""
        while True:
            path = f"{self._zone}/instances?filter=labels.{MINE}%3D1{page}"
            answer = await self._rest.ask("GET", path)
            for each in answer.get("items", ()):
                labels = {key: value.replace("_", ".") for key, value in each["labels"].items()}
                found.append(Owned(each["name"], labels))
            if "nextPageToken" not in answer:
                return found
            page = f"&pageToken={answer['nextPageToken']}"

    async def close(self) -> None:
        """Nothing is kept."""

    async def _check(self, machine: str) -> None:
        """Whether the operation that makes it has failed; a machine that was not made is merely not there."""
        if machine not in self._asked:
            return
        path = f"{self._zone}/operations/{self._asked[machine]}"
        operation = await self._rest.ask("GET", path)
        if operation.get("status") == "DONE":
            del self._asked[machine]
            errors = (operation.get("error") or {}).get("errors") or ()
            for error in errors:
                raise _kind(str(error.get("code")), str(error.get("message")), 0)


def error_of(status: int, body: bytes, _: Mapping[str, str]) -> CloudError:
    """What an answer that is an error means."""
    try:
        said = json.loads(body)["error"]
        reason = said["errors"][0]["reason"] if said.get("errors") else ""
        return _kind(str(reason), str(said["message"]), status)
    except (ValueError, KeyError, TypeError, IndexError):
        return CloudError(f"status {status}")


def _kind(reason: str, message: str, status: int) -> CloudError:
    text = f"{reason}: {message}" if reason else message
    if reason.startswith(_NO_CAPACITY):
        return NoCapacity(text)
    if reason in _THROTTLED or status == 429:
        return Throttled(text)
    if status == 404:
        return Unknown(text)
    return BadRequest(text) if status in {400, 401, 403} else CloudError(text)


def _address_in(instance: Mapping[str, Any]) -> str | None:
    for card in instance.get("networkInterfaces", ()):
        for way in card.get("accessConfigs", ()):
            if way.get("natIP"):
                return str(way["natIP"])
        if card.get("networkIP"):
            return str(card["networkIP"])
    return None
