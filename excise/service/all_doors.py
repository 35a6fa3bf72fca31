"""The doors of a service, in the order in which they are asked whether a request is theirs."""

from __future__ import annotations

from excise.service.daytona.door import Daytona
from excise.service.doors import Door
from excise.service.e2b.door import E2B
from excise.service.native.door import Native


def all_doors() -> list[Door]:
    """The native door comes last: what nobody else owns is its to refuse."""
    return [E2B(), Daytona(), Native()]
