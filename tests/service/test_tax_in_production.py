"""Live rollouts as studies: kept by a real service, exported, reported and projected by the command line."""

from __future__ import annotations

import json

import pytest

from excise.cli import main
from excise.substrates.remote.blocking import Service
from excise.types import Action


@pytest.mark.timeout(240)
def test_what_a_service_saw_can_be_reported_and_projected(start, tmp_path, capsys):
    daemon = start("--substrate", "local")
    with Service(daemon.url, daemon.token) as service:
        for turn in range(6):
            with service.create() as box:
                for _ in range(turn + 2):
                    box.run(Action(("true",)))
        watching = "".join(daemon.said).partition("#key=")[2].split()[0]
        assert main(["top", "--once", "--url", daemon.url, "--key", watching]) == 0
        assert "rollouts that ended: 6 ok; actions: 27" in capsys.readouterr().out
    daemon.end()
    out = tmp_path / "study"
    assert main(["study", "live", str(out), "--state", str(daemon.folder)]) == 0
    assert "6 rollouts" in capsys.readouterr().out
    trials = [json.loads(line) for line in (out / "trials.jsonl").read_text().splitlines()]
    assert [len(trial["actions"]) for trial in trials] == [2, 3, 4, 5, 6, 7]
    assert all(trial["outcome"] == "ok" for trial in trials)
    assert main(["study", "report", str(out)]) == 0
    assert "live:host" in capsys.readouterr().out
    assert main(["project", str(out)]) == 0
    assert "native" in capsys.readouterr().out


@pytest.mark.timeout(120)
def test_the_books_can_be_switched_off(start):
    daemon = start("--substrate", "fake", "--no-tax")
    with Service(daemon.url, daemon.token) as service, service.create() as box:
        box.run(Action(("true",)))
    daemon.end()
    assert not (daemon.folder / "rollouts.jsonl").exists()
