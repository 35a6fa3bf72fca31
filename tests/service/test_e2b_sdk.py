"""The unmodified E2B SDKs, Python's two kinds and JavaScript's, by addresses and by names; and what is said of them."""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from excise.service import tls

from . import sdk_tables
from .installed import ROOT, node_folder
from .names import named

HERE = Path(__file__).parent
LONGEST_S = 200
DOMAIN = "sandboxes.test"
KINDS = ("blocking", "async", "javascript")
NO_NODE = "the JavaScript SDK needs node and npm"


def words_of(kind: str) -> tuple[str, ...]:
    """The command that runs all exercises."""
    if kind != "javascript":
        return (sys.executable, "-W", "ignore", str(HERE / "e2b_exercises"), kind)
    if not (shutil.which("node") and shutil.which("npm")):
        if "node" in os.environ.get("EXCISE_REQUIRE", "").split(","):
            pytest.fail(NO_NODE, pytrace=False)
        pytest.skip(NO_NODE)
    newest = sdk_tables.recorded("e2b-js")[-1]["version"]
    folder = node_folder(f"e2b-js-{newest}", f"e2b@{newest}")
    return ("node", str(HERE / "e2b_exercises.mjs"), str(folder))


async def ran(words: tuple[str, ...], told: dict[str, str]) -> dict:
    """What came of all exercises in a process of their own."""
    env = {key: value for key, value in os.environ.items() if "E2B" not in key}
    pipe = asyncio.subprocess.PIPE
    process = await asyncio.create_subprocess_exec(*words, env=env | told, stdout=pipe, stderr=pipe)
    out, err = await asyncio.wait_for(process.communicate(), LONGEST_S)
    assert process.returncode == 0, err.decode()[-4000:]
    return json.loads(out)


def failures(found: dict) -> str:
    return "\n".join(f"{name}: {why}" for name, why in found["found"].items() if why != "works")


@pytest.mark.timeout(LONGEST_S + 30)
@pytest.mark.parametrize("kind", KINDS)
def test_what_the_sdk_does_works_unmodified(serve, kind):
    words = words_of(kind)

    async def work():
        async with serve("jail+pool") as served:
            url = served.url
            told = {"E2B_API_URL": url, "E2B_SANDBOX_URL": url, "E2B_API_KEY": served.token}
            found = await ran(words, told)
            assert not failures(found), failures(found)
            assert len(served.cloud.census) == 0, "every sandbox was killed"
        newest = sdk_tables.recorded("e2b-js" if kind == "javascript" else "e2b")[-1]
        assert newest["version"] == found["version"], "make sdk-matrix"
        assert newest["found"] == found["found"], "make sdk-matrix"

    asyncio.run(work())


@pytest.mark.timeout(LONGEST_S + 30)
@pytest.mark.parametrize("kind", KINDS)
def test_the_sdk_comes_by_the_names_of_a_domain_over_tls(serve, kind, jail, tmp_path):
    """Without the two addresses: `api.DOMAIN`, and a name of its own for each sandbox, all signed by our authority."""
    words = words_of(kind)

    async def work():
        context, authority = tls.generated(tmp_path / "tls", tls.below(DOMAIN))
        async with (
            serve("jail+pool", tls=context, domain=DOMAIN) as served,
            named(tmp_path) as apart,
        ):
            told = {
                "E2B_DOMAIN": f"{DOMAIN}:{served.url.rpartition(':')[2]}",
                "E2B_API_KEY": served.token,
                "SSL_CERT_FILE": str(authority),
                "NODE_EXTRA_CA_CERTS": str(authority),
            }
            found = await ran((*apart, *words), told)
            assert not failures(found), failures(found)

    asyncio.run(work())


@pytest.mark.parametrize("page", ["daytona.md", "e2b.md"])
def test_the_tables_of_the_documentation_are_what_was_found(page):
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert text == sdk_tables.written(text, sdk_tables.pages()[page]), "make sdk-matrix"
