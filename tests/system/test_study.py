"""The study as a program: started, killed, interrupted, resumed, refused. Fakes and the bare process only."""

import json
import signal
import subprocess
import time
from collections import Counter
from pathlib import Path

import pytest

from excise.measure.conduct import planned_trials
from excise.measure.store import read_study

pytestmark = pytest.mark.timeout(180)
FAKE = "fake:create_s=0.05"


def study_of(out, blocks=5):
    plan = ("--substrate", FAKE, "--workload", "T0", "--blocks", blocks, "--seed", "7")
    return ("study", "run", "--out", out, *plan)


def wait_for_trials(process: subprocess.Popen, out: Path, count: int) -> None:
    trials = out / "trials.jsonl"
    while not trials.exists() or trials.read_bytes().count(b"\n") < count:
        assert process.poll() is None, process.communicate()[1]
        time.sleep(0.02)


def assert_each_trial_once(out: Path) -> None:
    study = read_study(out)
    assert len(study.trials) == planned_trials(study.record) == 3 * 6
    assert Counter(Counter(t.key for t in study.trials).values()) == {1: 3 * 6}
    assert {t.outcome for t in study.trials} == {"ok"}


def test_a_small_study_on_the_bare_process_goes_through(excise, tmp_path):
    out = tmp_path / "s"
    code, _, err = excise(
        "study", "run", "--out", out, "--substrate", "local", "--workload", "T0", "--blocks", "2",
        "--size", "1x4",
    )  # fmt: skip
    assert code == 0, err
    study = read_study(out)
    assert Counter(t.outcome for t in study.trials) == {"ok": 6}
    assert {c.label for c in study.record.cells} == {"bare", "bare-again"}
    for trial in study.trials:
        assert trial.actions[0].inside_ns > 0
        assert trial.noise.cpu_s > 0
    assert study.record.overhead.trial_us[0] > 0
    assert study.record.substrates["bare"]["inside_cores"] == "1"
    assert study.record.limits["memory_bytes"] == 4 * 1024**3


def test_a_study_that_is_killed_loses_and_repeats_no_trial(excise, tmp_path):
    out = tmp_path / "s"
    for done in (4, 10):
        process = excise.start(*study_of(out))
        wait_for_trials(process, out, done)
        process.send_signal(signal.SIGKILL)
        process.wait()
    with (out / "trials.jsonl").open("ab") as file:
        file.write(b'{"format":1,"study":"torn')
    code, _, err = excise("study", "run", "--out", out)
    assert code == 0, err
    assert_each_trial_once(out)
    before = (out / "trials.jsonl").read_bytes()
    code, _, err = excise("study", "run", "--out", out)
    assert (code, "is complete" in err) == (0, True)
    assert (out / "trials.jsonl").read_bytes() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupted_study_is_valid_and_says_how_to_go_on(excise, tmp_path, number):
    out = tmp_path / "s"
    process = excise.start(*study_of(out))
    wait_for_trials(process, out, 4)
    process.send_signal(number)
    _, err = process.communicate(timeout=60)
    assert process.returncode == 130, err
    assert f"excise study run --out {out}" in err
    assert "Traceback" not in err
    assert not read_study(out).torn
    assert excise("study", "run", "--out", out)[0] == 0
    assert_each_trial_once(out)


def test_going_on_with_another_plan_is_refused_and_says_how_it_differs(excise, tmp_path):
    out = tmp_path / "s"
    process = excise.start(*study_of(out))
    wait_for_trials(process, out, 3)
    process.kill()
    process.wait()
    before = (out / "trials.jsonl").read_bytes()
    for flags, says in (
        (("--preset", "quick"), "preset smoke, not quick"),
        (("--seed", "8"), "seed 7, not 8"),
        (("--blocks", "3"), "blocks 5, not 3"),
        (("--substrate", "fake"), f"substrates {FAKE}, not fake"),
        (("--workload", "T0x300"), "workloads T0, not T0x300"),
        (("--size", "1x4"), "size 1x2, not 1x4"),
    ):
        code, _, err = excise("study", "run", "--out", out, *flags)
        assert (code, says in err) == (2, True), err
    head = json.loads((out / "study.json").read_text())
    head["host"]["cpu"] = "another"
    (out / "study.json").write_text(json.dumps(head))
    code, _, err = excise("study", "run", "--out", out)
    assert (code, "another host (cpu: another" in err) == (2, True), err
    assert (out / "trials.jsonl").read_bytes() == before


def test_a_burst_counts_from_the_intended_time(excise, tmp_path):
    out = tmp_path / "s"
    code, _, err = excise(
        "study", "run", "--out", out, "--substrate", FAKE, "--load", "burst:6", "--seed", "1"
    )
    assert code == 0, err
    study = read_study(out)
    assert Counter(t.cell for t in study.trials) == {
        "bare/T0@burst:6": 6,
        f"{FAKE}/T0@burst:6": 6,
    }
    assert all(t.marks["due"] == t.intended_ns for t in study.trials)
    code, _, err = excise("study", "run", "--out", out)
    assert (code, "is complete" in err) == (0, True)


def test_a_burst_of_which_a_crash_left_a_part_is_run_again_as_a_whole(excise, tmp_path):
    out = tmp_path / "s"
    words = ("study", "run", "--out", out, "--substrate", FAKE, "--load", "burst:6", "--json")
    assert excise(*words)[0] == 0
    lines = (out / "trials.jsonl").read_bytes().splitlines(keepends=True)
    (out / "trials.jsonl").write_bytes(b"".join([*lines[:9], lines[9][:40]]))
    assert excise("study", "run", "--out", out, "--json")[0] == 0
    study = read_study(out)
    assert len({t.key for t in study.trials}) == len(study.trials) == 12
    assert (out / "trials.jsonl").read_bytes().splitlines(keepends=True)[:6] == lines[:6]
    (due,) = {t.intended_ns for t in study.trials[6:]}
    assert due > json.loads(lines[6])["intended_ns"]
