"""Names lead to substrates, and a wrong one to a line that says what to write instead."""

from __future__ import annotations

import asyncio
import re
import sys
from importlib.metadata import EntryPoint

import pytest

from excise.errors import InputError
from excise.substrates import registry
from excise.substrates.base import Availability, Substrate
from excise.substrates.fake import Fake
from excise.substrates.registry import Row, availability, names, open_substrate, parse


def test_a_name_with_options_is_parsed():
    assert parse("docker") == ("docker", {})
    assert parse("docker:network=host,runtime=runc") == (
        "docker",
        {"network": "host", "runtime": "runc"},
    )
    assert parse("local:state=/a=b") == ("local", {"state": "/a=b"})


@pytest.mark.parametrize("text", ["local:", "local:state", "local:=x", "local:state=a,state=b"])
def test_bad_options_are_refused(text):
    with pytest.raises(InputError):
        parse(text)


def test_an_unknown_name_lists_the_names_and_the_nearest():
    with pytest.raises(InputError, match=r"docker.*did you mean docker\?"):
        parse("dokcer")
    with pytest.raises(InputError, match=re.escape("there are " + ", ".join(registry.TABLE))):
        open_substrate("nothing-like-it")


@pytest.mark.parametrize("name", ["fake", "local"])
def test_what_needs_nothing_is_there(name):
    assert isinstance(open_substrate(name), Substrate)
    assert asyncio.run(availability(name)).usable


def test_an_unknown_option_is_refused_with_the_known_ones():
    with pytest.raises(InputError, match="it has: state"):
        open_substrate("local", speed="1")
    with pytest.raises(InputError, match="leave that option out"):
        open_substrate("podman", engine="docker")


def test_a_missing_dependency_names_the_extra(monkeypatch):
    row = Row("excise.no_such_module", extra="cloud")
    monkeypatch.setitem(registry.TABLE, "cloud", row)
    with pytest.raises(InputError, match=r"run pip install 'excise\[cloud\]'"):
        open_substrate("cloud")
    seen = asyncio.run(availability("cloud"))
    assert (seen.usable, seen.remedy) == (False, "pip install 'excise[cloud]'")


class Outside:
    @staticmethod
    def open_substrate(**options):
        return Fake(name=options.get("name", "outside"))

    @staticmethod
    async def availability(**options):
        return Availability(True, "always")


def test_an_entry_point_of_others_is_a_substrate_like_ours(monkeypatch):
    sys.modules["excise_test_outside"] = Outside
    try:
        found = EntryPoint("outside", "excise_test_outside", registry.GROUP)
        ours = EntryPoint("local", "excise_test_outside", registry.GROUP)
        monkeypatch.setattr(registry, "entry_points", lambda group: [found, ours])
        assert names() == (*registry.TABLE, "outside")
        assert open_substrate("outside", name="x").name == "x"
        assert open_substrate("local").name == "local"
        assert asyncio.run(availability("outside")).usable
    finally:
        del sys.modules["excise_test_outside"]
