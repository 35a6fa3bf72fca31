"""What is required must be there: EXCISE_REQUIRE=docker turns a skipped substrate into a failure."""

from __future__ import annotations

import asyncio
import os

import pytest

from excise.substrates.registry import availability


def need(name: str, **options: str) -> None:
    """Skip where the substrate cannot be used, unless the environment says that it must be."""
    found = asyncio.run(availability(name, **options))
    if found.usable:
        return
    text = f"{name}: {found.reason} ({found.remedy})"
    real = "harnesses" if "@" in name else name.partition("+")[0].partition("-")[0]
    if real in os.environ.get("EXCISE_REQUIRE", "").split(","):
        pytest.fail(text, pytrace=False)
    pytest.skip(text)


@pytest.fixture(scope="session")
def docker() -> None:
    need("docker")


@pytest.fixture(scope="session")
def podman() -> None:
    need("podman")


@pytest.fixture(scope="session")
def jail() -> None:
    need("jail")


@pytest.fixture(scope="session")
def gvisor() -> None:
    need("gvisor")


@pytest.fixture(scope="session")
def bwrap() -> None:
    need("bwrap")


@pytest.fixture(scope="session")
def vm_uml() -> None:
    need("vm-uml")
