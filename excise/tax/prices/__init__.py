"""Prices are dated data with their sources, read from a file and never written into code."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from typing import Literal

import msgspec

from excise.errors import InputError

LATEST = "2026-11"


class Price(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What one provider asks for a sandbox, in USD."""

    provider: str
    per_vcpu_hour: float
    per_gib_hour: float = 0.0
    billing: Literal["wall", "active"] = "wall"
    """wall: from create to destroy. active: the processor only while commands run, so think time is free."""
    minimum_s: float = 0.0
    source: str
    note: str = ""
    substrates: tuple[str, ...] = ()
    """Our names of what is bought there."""


class Gpu(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A range of prices for one accelerator-hour, in USD: what waits while rollouts are late."""

    name: str
    low: float
    high: float
    source: str


class PriceTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One price file."""

    date: str
    note: str = ""
    price: tuple[Price, ...]
    gpu: tuple[Gpu, ...] = ()

    def of(self, provider: str) -> Price:
        for price in self.price:
            if price.provider == provider:
                return price
        known = ", ".join(p.provider for p in self.price)
        raise InputError(f"no price for {provider!r} in the table of {self.date}; known: {known}")


def parse(text: str, origin: str) -> PriceTable:
    """A price file's content, checked."""
    try:
        table = msgspec.convert(tomllib.loads(text), PriceTable)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise InputError(f"{origin} is not a price table: {error}") from error
    if any(p.per_vcpu_hour < 0 or p.per_gib_hour < 0 or p.minimum_s < 0 for p in table.price):
        raise InputError(f"{origin}: a price is not negative")
    return table


def latest() -> PriceTable:
    """The newest table that comes with the package."""
    name = f"{LATEST}.toml"
    return parse(files(__package__ or "excise.tax.prices").joinpath(name).read_text("utf-8"), name)
