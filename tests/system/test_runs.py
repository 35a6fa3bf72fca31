"""The published study's own scripts, on as little as shows that they work."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from excise.measure.store import read_study

ROOT = Path(__file__).parents[2]


def paper(*words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [str(ROOT / "runs/paper.sh"), *words], capture_output=True, text=True, check=False, timeout=170
    )  # fmt: skip


@pytest.mark.timeout(180)
@pytest.mark.skipif(os.geteuid() != 0, reason="jails that hold limits need root")
def test_parts_are_run_gone_on_with_and_put_together(tmp_path):
    words = ("--out", str(tmp_path / "paper"), "--minutes", "1", "--blocks", "2")
    words = (*words, "--substrate", "bwrap")
    for part in ("T0", "floor"):
        done = paper(*words, "--part", part)
        assert done.returncode == 0, done.stderr
    before = (tmp_path / "paper/T0/trials.jsonl").read_bytes()
    again = paper(*words, "--part", "T0")
    assert again.returncode == 0, again.stderr
    assert (tmp_path / "paper/T0/trials.jsonl").read_bytes() == before
    done = paper("--out", str(tmp_path / "paper"), "--finish")
    assert done.returncode == 0, done.stderr
    merged = read_study(tmp_path / "paper/.merged")
    assert {c.workload for c in merged.record.cells} == {"T0", "T0x300"}
    assert {p.name for p in (tmp_path / "paper/.data").iterdir()} == {
        "trials.parquet",
        "actions.parquet",
    }
    assert (tmp_path / "paper/.merged/report/report.html").is_file()


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("--part", "T9"), "no part T9"),
        (("--minutes", "soon"), "whole minutes"),
        (("--nothing",), "no option"),
        (("--out", "/nonexistent-study", "--finish"), "no part yet"),
    ],
)
def test_bad_words_are_refused_before_anything_is_run(words, says):
    done = paper(*words)
    assert done.returncode == 2
    assert says in done.stderr


def test_the_parts_are_listed():
    listed = paper("--list").stdout.split()
    assert len(listed) == len(set(listed))
    assert {"T0", "T2-1", "K150-10", "burst", "emulated", "tools"} <= set(listed)
