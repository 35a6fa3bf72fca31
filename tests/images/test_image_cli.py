"""`excise image`, as one types it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.fixture
def excise(store, monkeypatch):
    monkeypatch.setenv("EXCISE_STORE", str(store.root))

    def run(*args: str) -> subprocess.CompletedProcess[str]:
        command = [Path(sys.executable).with_name("excise"), "image", *args]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_pull_list_and_inspect_tell_the_same_story(excise, layout, two_layers) -> None:
    entry = layout.add(two_layers)
    text = f"oci:{layout.folder}:latest"
    pulled = json.loads(excise("pull", text, "--json").stdout)
    assert pulled["digest"] == entry["digest"]
    (listed,) = json.loads(excise("list", "--json").stdout)["images"]
    assert listed.items() >= pulled.items()
    assert entry["digest"][7:19] in excise("list").stdout
    inspected = json.loads(excise("inspect", text).stdout)
    assert inspected.items() >= {k: v for k, v in pulled.items() if k != "layers"}.items()
    assert [layer["id"] for layer in inspected["layers"]] == pulled["layers"]
    assert inspected["config"]["env"]["EQUAL"] == "a=b"
    assert inspected["layers"][0]["whiteouts"] == 2


def test_pull_prints_one_line(excise, layout, two_layers) -> None:
    layout.add(two_layers)
    done = excise("pull", f"oci:{layout.folder}")
    assert done.returncode == 0
    assert done.stdout.splitlines()[0].startswith(f"oci:{layout.folder}  sha256:")
    assert "2 layers" in done.stdout
    assert len(done.stdout.splitlines()) == 1


@pytest.mark.parametrize(
    ("reference", "code"),
    [
        ("host", 2),
        ("dir:relative", 2),
        ("UPPER/case", 2),
        ("oci:/none/there", 1),
        ("docker-archive:/none/there.tar", 1),
    ],
)
def test_what_cannot_be_pulled_is_one_line_and_changes_nothing(
    excise, store, reference, code
) -> None:
    done = excise("pull", reference)
    assert done.returncode == code
    assert len(done.stderr.splitlines()) == 1
    assert done.stderr.startswith("excise: ")
    assert store.layers() == ()


def test_what_was_never_pulled_cannot_be_inspected(excise) -> None:
    done = excise("inspect", "python:3.12")
    assert done.returncode == 1
    assert "pull it" in done.stderr
