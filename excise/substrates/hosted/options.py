"""What a cloud is asked to be like: the options of its name, checked before anything is asked of anybody. Pure.

Keys are no options: they stand in the environment, because options are written into every study.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from excise.errors import InputError
from excise.substrates.remote import LOOPBACK, is_loopback

WORKSPACE = "/work"
LIFETIME_S = 3600.0
_NUMBERS = {"lifetime_s": (30.0, 86_400.0), "create_s": (1.0, 3600.0)}


@dataclass(frozen=True, slots=True)
class Options:
    """`region`, `image`: the provider's own words for where and of what; None is its default.

    `on=loopback` says that this is no cloud but a service on this machine: the label of every figure then says so.
    `host` is the address at which a sandbox reaches a server on this machine.
    """

    url: str | None = None
    on: str | None = None
    image: str | None = None
    region: str | None = None
    user: str = "root"
    workspace: str = WORKSPACE
    lifetime_s: float = LIFETIME_S
    create_s: float = 300.0
    host: str | None = None

    @classmethod
    def of(cls, cloud: str, given: Mapping[str, str], known: tuple[str, ...]) -> Options:
        """From what a command line says; InputError for what this cloud has no word for."""
        if unknown := sorted(set(given) - set(known)):
            raise InputError(
                f"{cloud} has no option {', '.join(unknown)}; it has: {', '.join(known)}"
            )
        numbers = {name: _number(cloud, name, given[name]) for name in _NUMBERS if name in given}
        made = cls(**{**given, **numbers})  # type: ignore[arg-type]
        if made.on not in {None, LOOPBACK}:
            raise InputError(f"{cloud}: on={made.on}: on=loopback, or nothing for the cloud itself")
        if not made.workspace.startswith("/"):
            raise InputError(f"{cloud}: workspace={made.workspace}: give an absolute path")
        return made


def stated(cloud: str, options: Options, url: str) -> None:
    """Refuse to pass a service on this machine off as a cloud, or a cloud as that."""
    here = is_loopback(url)
    if here and options.on != LOOPBACK:
        raise InputError(
            f"{cloud} at {url} is a service on this machine: name it {cloud}:on=loopback, "
            "so that every record and figure says so"
        )
    if options.on == LOOPBACK and not here:
        raise InputError(
            f"{cloud}:on=loopback, but {url} is no service on this machine: `excise serve` "
            "says which variables to export"
        )


def _number(cloud: str, name: str, text: str) -> float:
    least, most = _NUMBERS[name]
    try:
        value = float(text)
    except ValueError:
        value = float("nan")
    if not least <= value <= most:
        raise InputError(f"{cloud}: {name}={text}: seconds, from {least:g} to {most:g}")
    return value
