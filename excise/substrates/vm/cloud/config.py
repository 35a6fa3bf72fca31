"""Which cloud, and what to ask it for."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from pathlib import Path

from excise.errors import InputError
from excise.substrates.base import Availability
from excise.substrates.vm.cloud.control import CloudControl
from excise.substrates.vm.cloud.ssh import Account

PROVIDERS = ("ec2", "hetzner", "gcp")
TOKENS = {"hetzner": "HCLOUD_TOKEN", "gcp": "GOOGLE_OAUTH_ACCESS_TOKEN"}
"""Where they are found, for clouds that are spoken to by REST."""


@dataclass(frozen=True, slots=True)
class Options:
    """Nothing has a default that would cost somebody money unawares: image and type are to be named."""

    provider: str = "ec2"
    image: str = ""
    type: str = ""
    region: str | None = None
    user: str = "root"
    key: Path | None = None
    key_name: str | None = None
    endpoint: str | None = None
    boot_s: float = 300.0

    @property
    def account(self) -> Account:
        return Account(self.user, self.key)

    @classmethod
    def of(cls, given: Mapping[str, str]) -> Options:
        known = tuple(each.name for each in fields(cls))
        if unknown := sorted(set(given) - set(known)):
            raise InputError(
                f"vm-cloud has no option {', '.join(unknown)}; it has: {', '.join(known)}"
            )
        if (provider := given.get("provider", PROVIDERS[0])) not in PROVIDERS:
            raise InputError(f"vm-cloud: provider={provider} is not one of {', '.join(PROVIDERS)}")
        return cls(
            provider=provider,
            image=given.get("image", ""),
            type=given.get("type", ""),
            region=given.get("region"),
            user=given.get("user", "root"),
            key=_file(given.get("key")),
            key_name=given.get("key_name"),
            endpoint=given.get("endpoint"),
            boot_s=_seconds(given.get("boot_s", "300")),
        )

    def control(self) -> CloudControl:
        """The driver, which asks for nothing yet."""
        token = os.environ.get(TOKENS.get(self.provider, ""), "")
        if self.provider == "hetzner":
            from excise.substrates.vm.cloud.hetzner import Hetzner

            return Hetzner(self, token)
        if self.provider == "gcp":
            from excise.substrates.vm.cloud.gcp import Gcp

            return Gcp(self, token)
        from excise.substrates.vm.cloud.ec2 import Ec2

        return Ec2(self)

    def credentials(self) -> Availability:
        """Whether the environment has any; whether they are good, only the provider knows."""
        if token := TOKENS.get(self.provider):
            if os.environ.get(token):
                return Availability(True, f"{self.provider}, with the token of {token}")
            return Availability(False, f"{token} is not set", f"export {token}=...")
        from excise.substrates.vm.cloud.ec2 import has_credentials

        if has_credentials():
            return Availability(True, "EC2, with the credentials that boto3 finds")
        return Availability(False, "boto3 finds no credentials", "aws configure")


def _file(given: str | None) -> Path | None:
    if given is None:
        return None
    path = Path(given).expanduser()
    if not path.is_file():
        raise InputError(f"vm-cloud: key={given} is not a file")
    return path


def _seconds(given: str) -> float:
    try:
        seconds = float(given)
    except ValueError:
        seconds = math.nan
    if not 0 < seconds < math.inf:
        raise InputError(f"vm-cloud: boot_s={given} is not a number of seconds")
    return seconds
