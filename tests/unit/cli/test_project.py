import json
import math

import msgspec
import pytest
import typer

from excise.cli.project import project
from excise.errors import InputError
from excise.measure.record import ActionRecord, StudyRecord, TrialRecord
from excise.measure.rollouts import choose, family, rollouts

MS = 1_000_000


@pytest.fixture
def run(capsys):
    app = typer.Typer()
    app.command()(project)

    def call(*args):
        app(args=[str(a) for a in args], standalone_mode=False)
        return capsys.readouterr().out

    return call


def trial(
    label, workload, k, block, *, create_ms=0, action_ms=10, inside_ms=10, gap_ms=0, **changes
):
    """A trial whose every part is written down; cleanup takes 5 ms."""
    now = create_ms * MS
    marks = {"due": 0, "requested": 0, "created": now, "ready": now, "set_up": now}
    actions = []
    for _ in range(k):
        now += gap_ms * MS
        actions.append(
            ActionRecord(
                kind="command",
                sent_ns=now,
                received_ns=now + action_ms * MS,
                inside_ns=inside_ms * MS,
                exit_code=0,
            )
        )
        now += action_ms * MS
    given = {
        "study": "s",
        "block": block,
        "position": 0,
        "cell": f"{label}/{workload}",
        "substrate": "fake",
        "workload": workload,
        "task": "attrs-1417",
        "actions_planned": k,
        "seed": 1,
        "marks": marks | {"teardown": now, "gone": now + 5 * MS},
        "actions": tuple(actions),
        "outcome": "ok",
    }
    return TrialRecord(**(given | changes))


def both(k, block):
    """Bare: 10 ms per action. Docker: 300 ms once and 15 ms per action."""
    name = f"K{k}:attrs-1417"
    return [
        trial("bare", name, k, block),
        trial("docker", name, k, block, create_ms=295, action_ms=15, inside_ms=11),
    ]


@pytest.fixture
def study(tmp_path):
    record = StudyRecord(
        id="s",
        started="2026",
        preset="smoke",
        seed=1,
        blocks=3,
        warm_ups=0,
        version="0",
        cells=(),
        host={},
    )
    trials = [t for k in (10, 50) for block in range(3) for t in both(k, block)]
    trials.append(trial("docker", "K50:attrs-1417", 50, 3, outcome="mismatch"))
    trials.append(trial("docker", "K50:attrs-1417", 50, 0, create_ms=9999, warm_up=True))
    trials.append(trial("bare", "T0x300", 300, 0, task=None))
    (tmp_path / "study.json").write_bytes(msgspec.json.encode(record))
    lines = [msgspec.json.encode(t) + b"\n" for t in trials]
    (tmp_path / "trials.jsonl").write_bytes(b"".join(lines))
    return tmp_path


def test_two_numbers_give_the_papers_table_2(run):
    found = json.loads(run("--slow", 42.5196, "--fast", 23.382, "--json"))
    assert [round(row["sandbox_hours"]) for row in found["rows"]] == [11_811, 6_495]
    assert round(found["difference"]["sandbox_hours"]) == 5_316
    assert found["occupied_ratio_by_think_s"]["4"] == pytest.approx(1.031, abs=1e-3)


def test_two_numbers_are_projected_over_every_input_too(run):
    pair = ("--slow", 42.5196, "--fast", 23.382)
    found = json.loads(run(*pair, "--json"))
    assert [row["actions"] for row in found["by_actions"]["slow"]] == list(range(25, 301, 25))
    assert found["by_actions"]["slow"][-1]["hours"] == pytest.approx(2 * 11_811, rel=1e-4)
    assert found["by_trajectories"]["fast"][0]["hours"] == pytest.approx(64.95, rel=1e-4)
    assert found["by_failure_rate"]["fast"][0]["hours"] == pytest.approx(6_495, rel=1e-4)
    assert "rollouts per sandbox" not in run(*pair), "nothing is known to be paid once"
    once = json.loads(run(*pair, "--slow-once", 20, "--fast-once", 1, "--json"))
    by_reuse = [row["hours"] for row in once["by_reuse"]["slow"]]
    assert by_reuse == sorted(by_reuse, reverse=True)


def test_the_tables_fit_eighty_columns_whole(run, study):
    for shown in (run("--slow", 42.5196, "--fast", 23.382), run(study, "--think", 4)):
        assert max(map(len, shown.splitlines())) <= 80
        assert "…" not in shown
        assert "occupied-hours" in shown


def test_tables_for_people_show_the_same_numbers(run):
    shown = run("--slow", 42.5196, "--fast", 23.382, "--think", 4)
    assert all(number in shown for number in ("11,811", "6,495", "5,316", "1.818x", "1.031x"))


def test_the_price_of_small_delays_needs_no_input(run):
    shown = run("--table1")
    assert all(number in shown for number in ("277.8", "416.7", "4,166.7"))
    assert len(json.loads(run("--table1", "--json"))["rows"]) == 43


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ([], "both --slow and --fast"),
        (["--slow", 1], "both --slow and --fast"),
        (["--slow", 0, "--fast", 1], "slow: a latency is above zero"),
        (["--slow", 1, "--fast", -2], "fast: a latency is above zero"),
        (["--slow", "nan", "--fast", 1], "above zero"),
        (["--slow", 1, "--fast", 1, "--actions", 0], "at least one action"),
        (["--slow", 1, "--fast", 1, "--trajectories", 0], "above zero"),
        (["--slow", 1, "--fast", 1, "--failure-rate", 1], "failure rate"),
        (["--slow", 1, "--fast", 1, "--think", -1], "think_s"),
        (["--slow", 1, "--fast", 1, "--reuse", 2], "--slow-once"),
        (["/nowhere", "--slow", 1], "not both"),
        (["/nowhere"], "is not a study"),
    ],
)
def test_impossible_input_is_refused_with_what_to_do(run, arguments, says):
    with pytest.raises(InputError, match=says):
        run(*arguments)


def test_reuse_lowers_what_is_paid_once(run):
    found = json.loads(
        run(
            *("--slow", 10, "--fast", 5, "--slow-once", 8, "--fast-once", 2),
            *("--reuse", 4, "--reset", 0.5, "--json"),
        )
    )
    assert [row["latency_s"] for row in found["rows"]] == pytest.approx([4.5, 4.0])


def test_a_study_is_projected_with_tax_and_failures(run, study):
    found = json.loads(run(study, "--trajectories", 3600, "--json"))
    bare, docker = found["rows"]
    assert (found["workload"], docker["n"], docker["failures"]) == ("K50:attrs-1417", 3, 1)
    assert docker["latency_s"]["estimate"] == pytest.approx(0.3 + 50 * 0.015)
    assert docker["tax_hours"]["estimate"] == pytest.approx(0.3 + 50 * 0.005)
    assert docker["sandbox_hours"]["high"] == pytest.approx(1.05)
    assert bare["tax_hours"]["estimate"] == pytest.approx(0.005)


def test_other_lengths_are_projected_and_marked_beyond_the_measured(run, study):
    rows = json.loads(run(study, "--trajectories", 3600, "--json"))["by_actions"]["docker"]
    by_length = {row["actions"]: row for row in rows}
    assert by_length[100]["hours"] == pytest.approx(0.3 + 100 * 0.015)
    assert [k for k in sorted(by_length) if not by_length[k]["extrapolated"]] == [10, 25, 50]
    shown = run(study)
    assert "100*" in shown
    assert "50*" not in shown.replace("150*", "").replace("250*", "")


def test_a_workload_that_the_study_lacks_is_refused_with_those_it_has(run, study):
    with pytest.raises(InputError, match="it has: K10:attrs-1417, K50:attrs-1417, T0x300"):
        run(study, "--workload", "T2:attrs-1417")


def test_without_a_bare_process_there_are_no_tax_hours():
    (docker,) = rollouts([both(10, 0)[1]], "K10:attrs-1417", 10)
    assert docker.mean.tax_per_action_s is None


def test_a_length_that_was_not_measured_uses_the_trials_of_all_lengths():
    trials = [t for k in (10, 50) for t in both(k, 0)]
    docker = rollouts(trials, "K50:attrs-1417", 200)[1]
    assert len(docker.trials) == 2
    assert docker.mean.measured == (10, 50)
    assert docker.mean.extrapolates(200)


def test_the_harness_is_in_the_hours_but_not_in_the_tax():
    name = "K10:attrs-1417"
    trials = [both(10, 0)[0], trial("docker", name, 10, 0, action_ms=15, gap_ms=1)]
    docker = rollouts(trials, name, 10)[1].mean
    assert docker.per_action_s == pytest.approx(0.016)
    assert docker.tax_per_action_s == pytest.approx(0.005)


@pytest.mark.parametrize("apart", [{"load": "burst:8"}, {"warm_up": True}])
def test_bursts_and_warm_ups_are_left_out(apart):
    trials = [
        *both(10, 0),
        trial("docker", "K10:attrs-1417", 10, 1, create_ms=9000, **apart),
    ]
    assert len(rollouts(trials, "K10:attrs-1417", 10)[1].trials) == 1


def test_nothing_to_project_is_refused():
    with pytest.raises(InputError, match="run it first"):
        choose([])
    with pytest.raises(InputError, match="no trial of T2"):
        rollouts(both(10, 0), "T2", 10)


def test_lengths_are_one_family_and_variants_are_not():
    assert family("K10:attrs-1417") == family("K150:attrs-1417")
    assert family("K150:attrs-1417+arc") != family("K150:attrs-1417")
    assert family("T2:attrs-1417") == "T2:attrs-1417"


def test_a_distribution_of_lengths_enters_as_its_mean(run, tmp_path):
    recorded = tmp_path / "lengths.txt"
    recorded.write_text("10\n50\n240\n")
    pair = ("--slow", "42.5", "--fast", "23.4", "--json")
    constant = json.loads(run(*pair, "--think", "1"))
    of_file = json.loads(run(*pair, "--think", "1", "--lengths", recorded))
    assert of_file["scenario"]["actions"] == 100
    assert of_file["lengths"] == "3 recorded lengths"
    slow, slower = of_file["rows"][0], constant["rows"][0]
    assert slow["sandbox_hours"] == pytest.approx(slower["sandbox_hours"] * 100 / 150)
    drawn = json.loads(run(*pair, "--lengths", "lognormal:53:0.55"))
    assert drawn["scenario"]["actions"] == pytest.approx(53 * math.exp(0.55**2 / 2))
    capped = json.loads(run(*pair, "--lengths", "lognormal:53:0.55:60"))
    assert capped["scenario"]["actions"] < 60


def test_idle_slots_are_in_the_occupied_hours(run):
    pair = ("--slow", "42.5", "--fast", "23.4", "--json")
    full = json.loads(run(*pair))["rows"][0]
    half = json.loads(run(*pair, "--utilisation", "0.5"))["rows"][0]
    assert half["occupied_hours"] == pytest.approx(2 * full["occupied_hours"])
    assert half["sandbox_hours"] == full["sandbox_hours"]


@pytest.mark.parametrize(
    "flags",
    [
        ("--lengths", "lognormal:x:1"),
        ("--lengths", "lognormal:50"),
        ("--lengths", "nowhere.txt"),
        ("--lengths", "{empty}"),
        ("--lengths", "{words}"),
        ("--lengths", "lognormal:50:0.5", "--actions", "50"),
        ("--lengths", "lognormal:-5:0.5"),
        ("--utilisation", "0"),
    ],
)
def test_lengths_and_slots_that_cannot_be_are_refused(run, tmp_path, flags):
    (tmp_path / "empty").write_text("")
    (tmp_path / "words").write_text("ten\n")
    named = {"empty": tmp_path / "empty", "words": tmp_path / "words"}
    with pytest.raises(InputError):
        run("--slow", "42.5", "--fast", "23.4", *(f.format(**named) for f in flags))


def test_a_study_is_projected_over_every_input(run, study):
    found = json.loads(run(study, "--reset", "0.1", "--json"))
    for name, count in (("think_s", 5), ("failure_rate", 4), ("reuse", 5), ("trajectories", 6)):
        for rows in found[f"by_{name}"].values():
            assert len(rows) == count
    by_n = [r["hours"] for r in found["by_trajectories"]["docker"]]
    assert by_n[-1] == pytest.approx(1000 * by_n[0])
    thinking = [r["hours"] for r in found["by_think_s"]["docker"]]
    assert thinking == sorted(thinking)
    assert "by failure rate" in run(study)
