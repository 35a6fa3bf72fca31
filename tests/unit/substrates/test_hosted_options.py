"""What a cloud may be asked to be like, and that a service on this machine is never taken for one."""

from __future__ import annotations

import pytest

from excise.errors import InputError
from excise.substrates import registry
from excise.substrates.hosted.options import Options, stated

KNOWN = ("on", "image", "workspace", "lifetime_s")


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"imgae": "x"}, "no option imgae; it has: on, image"),
        ({"on": "moon"}, "on=loopback"),
        ({"workspace": "here"}, "absolute path"),
        ({"lifetime_s": "long"}, "seconds, from 30"),
        ({"lifetime_s": "1"}, "seconds, from 30"),
        ({"lifetime_s": "nan"}, "seconds, from 30"),
    ],
)
def test_an_option_that_makes_no_sense_is_refused(given, said):
    with pytest.raises(InputError, match=said):
        Options.of("cloud", given, KNOWN)


@pytest.mark.parametrize("url", ["http://127.0.0.1:7070", "http://localhost/api", "http://[::1]:1"])
def test_a_service_on_this_machine_says_so_or_is_refused(url):
    stated("e2b", Options(on="loopback"), url)
    with pytest.raises(InputError, match="name it e2b:on=loopback"):
        stated("e2b", Options(), url)


def test_a_cloud_is_not_passed_off_as_a_service_on_this_machine():
    stated("e2b", Options(), "https://api.e2b.app")
    with pytest.raises(InputError, match="no service on this machine"):
        stated("e2b", Options(on="loopback"), "https://api.e2b.app")


@pytest.mark.parametrize(
    ("name", "key", "url"),
    [("e2b", "E2B_API_KEY", "E2B_API_URL"), ("daytona", "DAYTONA_API_KEY", "DAYTONA_API_URL")],
)
def test_without_a_key_it_is_said_which_and_beside_loopback_what_to_write(
    monkeypatch, name, key, url
):
    import asyncio

    monkeypatch.delenv(key, raising=False)
    found = asyncio.run(registry.availability(name))
    assert (found.usable, found.remedy) == (False, f"export {key}=...")
    monkeypatch.setenv(key, "x")
    monkeypatch.setenv(url, "http://127.0.0.1:1/api")
    found = asyncio.run(registry.availability(name))
    assert not found.usable
    assert f"{name}:on=loopback" in found.reason
    nobody = asyncio.run(registry.availability(name, on="loopback"))
    assert not nobody.usable
    assert "not reached" in nobody.reason
