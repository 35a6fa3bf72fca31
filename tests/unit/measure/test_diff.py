"""A budget for the tax between two studies, on written-down time."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from excise.cli.app import app
from excise.measure import synthetic as written
from excise.measure.diff import TAX, diff
from excise.measure.plan import BARE
from excise.measure.store import Study, read_study
from excise.substrates.fake import Latencies

WORKLOADS = ("T0",)


def study(folder: Path, name: str, factor: float, **changes: float) -> Study:
    """A container whose own latencies are `factor` times what they were; the bare process is as ever."""
    bare, container = written.SUBSTRATES[BARE], written.SUBSTRATES["container"]
    slower = Latencies(*(getattr(container.latencies, n) * factor for n in Latencies.__slots__))
    drawn = replace(container, latencies=slower, slowdown=1.0, **changes)
    return written.synthetic(
        folder / name,
        preset="quick",
        seed=len(name),
        substrates={BARE: bare, "container": drawn},
        workloads=WORKLOADS,
    )


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("studies")
    for name, factor in (("before", 1.0), ("again", 1.0), ("slower", 1.5)):
        study(folder, name, factor)
    study(folder, "failing", 1.0, failing=1.0)
    return folder


def held(folder: Path, after: str, *words: str) -> tuple[int, str]:
    found = CliRunner().invoke(
        app, ["study", "diff", f"{folder}/before", f"{folder}/{after}", *words]
    )
    return found.exit_code, found.output


def test_the_tax_is_what_a_trial_took_beyond_the_bare_process(folder: Path) -> None:
    changes = diff(*(read_study(folder / name) for name in ("before", "slower")))
    found = {c.cell: c for c in changes if c.metric == TAX}
    assert set(found) == {f"container/{w}" for w in WORKLOADS}
    for change in found.values():
        assert change.plain is not None
        assert change.plain.estimate == pytest.approx(1.5, rel=0.1)
        assert (change.over(0.3), change.over(1.0)) == (True, False)


def test_a_tax_that_outgrew_its_budget_fails_and_is_named(folder: Path) -> None:
    code, said = held(folder, "slower", "--budget", "30")
    assert code == 1
    assert "grown by more than 30 % with confidence: container/T0" in said
    assert held(folder, "slower", "--budget", "30", "--json")[0] == 1


def test_what_did_not_grow_or_not_so_much_passes(folder: Path) -> None:
    assert held(folder, "again", "--budget", "10")[0] == 0
    assert held(folder, "slower", "--budget", "100")[0] == 0
    assert held(folder, "slower")[0] == 0


def test_what_only_fails_now_is_over_any_budget(folder: Path) -> None:
    code, said = held(folder, "failing", "--budget", "1000")
    assert code == 1
    assert "container/T0" in said
