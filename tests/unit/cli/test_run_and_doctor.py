"""`excise run` ends as its command does; `excise doctor` has an answer for every substrate."""

from __future__ import annotations

import json
import sys

import pytest

from excise.cli import main
from excise.errors import Phase, SubstrateError
from excise.substrates import registry
from excise.substrates.base import Availability
from excise.substrates.fake import Fake
from excise.substrates.registry import Row


class Broken:
    """A plug-in whose sandboxes never get ready and whose own check fails."""

    @staticmethod
    def open_substrate(**options):
        error = SubstrateError("it is on fire", substrate="broken", phase=Phase.READY)
        return Fake(fail={Phase.READY: error})

    @staticmethod
    async def availability(**options):
        raise OSError("no matches")


class Absent(Broken):
    @staticmethod
    async def availability(**options):
        return Availability(False, "the engine does not run", "systemctl start engine")


@pytest.fixture
def plug_in(monkeypatch):
    for name, module in (("broken", Broken), ("absent", Absent)):
        monkeypatch.setitem(sys.modules, f"excise_test_{name}", module)
        monkeypatch.setitem(registry.TABLE, name, Row(f"excise_test_{name}"))


@pytest.mark.parametrize(
    ("argv", "code", "out"),
    [
        (["run", "-s", "fake", "--", "echo", "-n", "hi"], 0, "-n hi\n"),
        (["run", "-s", "fake", "bash", "-c", "exit 7"], 7, ""),
        (["run", "-s", "fake:create_s=0", "nonesuch"], 127, ""),
        (["run", "-s", "fake", "--timeout", "0.01", "sleep", "9"], 137, ""),
    ],
)
def test_the_exit_code_and_the_output_are_the_commands(argv, code, out, capfd):
    assert main(argv) == code
    assert capfd.readouterr().out == out


def test_environment_directory_and_input_reach_the_command(capfd, tmp_path):
    (tmp_path / "in").write_text("fed\n")
    script = "echo $A; cat; pwd -P"
    argv = ["run", "-e", "A=b=c", "--cwd", "/", "--stdin", str(tmp_path / "in")]
    assert main([*argv, "--", "bash", "-c", script]) == 0
    assert capfd.readouterr().out == "b=c\nfed\n/\n"


def test_json_has_the_observation_and_a_breakdown_that_adds_up(capfd):
    assert main(["run", "-s", "fake", "--json", "--", "bash", "-c", "echo hi; exit 3"]) == 3
    said = json.loads(capfd.readouterr().out)
    assert (said["outcome"], said["observation"]["stdout"]) == ("ok", "hi\n")
    b = said["breakdown"]
    parts = ("queue", "create", "ready", "set_up", "dispatch", "inside", "gap", "cleanup")
    assert sum(b[f"{p}_ns"] for p in parts) == b["total_ns"]


def test_a_failing_substrate_is_told_apart_from_a_command_that_ends_with_1(plug_in, capfd):
    assert main(["run", "-s", "broken", "true"]) == 1
    assert capfd.readouterr().err.strip() == "excise: broken: ready failed: it is on fire"
    assert main(["run", "-s", "broken", "--json", "true"]) == 1
    said = json.loads(capfd.readouterr().out)
    assert (said["outcome"], said["error"]["phase"]) == ("substrate_error", "ready")


@pytest.mark.parametrize(
    "argv",
    [
        ["run", "-s", "dokcer", "true"],
        ["run", "-s", "fake:nope=1", "true"],
        ["run", "-s", "local", "--image", "debian", "true"],
        ["run", "-s", "fake", "-e", "novalue", "true"],
        ["run", "-s", "fake", "--stdin", "/no/such/file", "true"],
        ["run", "--no-such-option", "true"],
        ["run"],
        ["no-such-command"],
    ],
)
def test_bad_input_is_one_line_and_exit_code_2(argv, capfd):
    assert main(argv) == 2
    said = capfd.readouterr()
    assert (said.out, said.err.count("\n")) == ("", 1)
    assert said.err.startswith("excise: ")


def test_the_doctor_answers_for_every_substrate_also_the_broken(plug_in, capfd):
    assert main(["doctor", "--json"]) == 0
    rows = {r["name"]: r for r in json.loads(capfd.readouterr().out)["substrates"]}
    assert set(rows) == set(registry.names())
    assert (rows["local"]["usable"], rows["local"]["isolation"]) == (True, "none")
    assert rows["absent"]["remedy"] == "systemctl start engine"
    assert rows["broken"]["usable"] is False
    assert "no matches" in rows["broken"]["reason"]


def test_the_doctors_table_fits_80_columns(plug_in, capfd, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert main(["doctor"]) == 0
    said = capfd.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "run: systemctl start engine" in said
