"""EC2 through boto3, whose calls block and so are made in threads; it asks once and leaves retries to us."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import boto3
from botocore.config import Config
from botocore.exceptions import BotoCoreError, ClientError

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

_NO_CAPACITY = (
    "InsufficientInstanceCapacity",
    "InsufficientHostCapacity",
    "InstanceLimitExceeded",
    "MaxSpotInstanceCountExceeded",
    "VcpuLimitExceeded",
)
_THROTTLED = ("RequestLimitExceeded", "Throttling", "ThrottlingException", "EC2ThrottledException")
_UNKNOWN = ("InvalidInstanceID.NotFound",)
_BAD = (
    "InvalidAMIID",
    "InvalidParameter",
    "InvalidKeyPair",
    "Unsupported",
    "AuthFailure",
    "Unauthorized",
)
_STATES = {"pending": State.PENDING, "running": State.RUNNING}


def has_credentials() -> bool:
    return boto3.Session().get_credentials() is not None


class Ec2:
    """One region of one account."""

    name = "ec2"

    def __init__(self, options: Options) -> None:
        self._options = options
        self._made: Any = None

    async def create(self, name: str, labels: Mapping[str, str]) -> str:
        tags = [{"Key": key, "Value": value} for key, value in {**labels, "Name": name}.items()]
        more = {} if self._options.key_name is None else {"KeyName": self._options.key_name}
        found = await self._ask(
            "run_instances",
            ImageId=self._options.image,
            InstanceType=self._options.type,
            MinCount=1,
            MaxCount=1,
            ClientToken=name,
            InstanceInitiatedShutdownBehavior="terminate",
            TagSpecifications=[{"ResourceType": "instance", "Tags": tags}],
            **more,
        )
        return str(found["Instances"][0]["InstanceId"])

    async def look(self, machine: str) -> Look:
        found = await self._ask("describe_instances", InstanceIds=[machine])
        instance = next(_instances(found), None)
        if instance is None:
            raise Unknown(machine)
        state = _STATES.get(instance["State"]["Name"], State.GONE)
        return Look(state, instance.get("PublicIpAddress") or instance.get("PrivateIpAddress"))

    async def delete(self, machine: str) -> None:
        with contextlib.suppress(Unknown):
            await self._ask("terminate_instances", InstanceIds=[machine])

    async def owned(self) -> Sequence[Owned]:
        filters = [
            {"Name": f"tag:{MINE}", "Values": ["1"]},
            {
                "Name": "instance-state-name",
                "Values": ["pending", "running", "stopping", "stopped"],
            },
        ]
        return await asyncio.to_thread(self._list, filters)

    async def close(self) -> None:
        if self._made is not None:
            self._made.close()
            self._made = None

    def _list(self, filters: list[dict[str, Any]]) -> list[Owned]:
        with _translated():
            pages = self._client().get_paginator("describe_instances").paginate(Filters=filters)
            return [
                Owned(each["InstanceId"], _tags(each))
                for page in pages
                for each in _instances(page)
            ]

    async def _ask(self, verb: str, **arguments: Any) -> Any:
        def ask() -> Any:
            with _translated():
                return getattr(self._client(), verb)(**arguments)

        return await asyncio.to_thread(ask)

    def _client(self) -> Any:
        if self._made is None:
            once = Config(retries={"total_max_attempts": 1}, connect_timeout=10, read_timeout=30)
            self._made = boto3.client(
                "ec2",
                region_name=self._options.region,
                endpoint_url=self._options.endpoint,
                config=once,
            )
        return self._made


@contextlib.contextmanager
def _translated() -> Iterator[None]:
    try:
        yield
    except ClientError as error:
        raise error_of(error.response["Error"]) from error
    except BotoCoreError as error:
        raise CloudError(str(error)) from error


def error_of(said: Mapping[str, str]) -> CloudError:
    """What an answer that is an error means."""
    code, text = said.get("Code", ""), f"{said.get('Code')}: {said.get('Message')}"
    if code in _NO_CAPACITY:
        return NoCapacity(text)
    if code in _THROTTLED:
        return Throttled(text)
    if code in _UNKNOWN:
        return Unknown(text)
    return BadRequest(text) if code.startswith(_BAD) else CloudError(text)


def _instances(found: Mapping[str, Any]) -> Iterator[dict[str, Any]]:
    for reservation in found["Reservations"]:
        yield from reservation["Instances"]


def _tags(instance: Mapping[str, Any]) -> dict[str, str]:
    return {tag["Key"]: tag["Value"] for tag in instance.get("Tags", ())}
