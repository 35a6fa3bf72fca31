from pathlib import Path

import pytest
from msgspec.structs import replace

from excise.errors import InputError
from excise.measure.conduct import planned_trials
from excise.measure.diff import diff
from excise.measure.export import action_rows, trial_rows
from excise.measure.merge import merge
from excise.measure.store import Study, read_study, write_study
from excise.measure.synthetic import SUBSTRATES, synthetic
from excise.report.summary import summarise
from excise.substrates.fake import Latencies


@pytest.fixture(scope="module")
def one(tmp_path_factory):
    return synthetic(tmp_path_factory.mktemp("studies") / "one", seed=1, loads=("burst:3",))


@pytest.fixture(scope="module")
def other(tmp_path_factory):
    return synthetic(tmp_path_factory.mktemp("studies") / "other", seed=2)


def test_a_written_down_study_goes_through_and_is_the_same_for_its_seed(one, tmp_path):
    assert {t.outcome for t in one.trials} == {"ok"}
    few = {"workloads": ("T0", "T2:attrs-1417"), "loads": ("burst:3",)}
    marks = [
        [t.marks for t in synthetic(tmp_path / name, seed=seed, **few).trials]
        for name, seed in (("a", 1), ("b", 1), ("c", 2))
    ]
    assert marks[0] == marks[1] != marks[2]


def test_merged_studies_become_sessions_and_keep_every_trial(one, other, tmp_path):
    merged = merge([one, other])
    assert merged.record.session == 2
    assert len(merged.done) == len(one.trials) + len(other.trials)
    assert {t.session for t in merged.trials} == {1, 2}
    write_study(tmp_path / "merged", merged.record, merged.trials)
    again = read_study(tmp_path / "merged")
    assert again.trials == merged.trials
    assert merge([again, replaced(other, id="third")]).record.session == 3


def replaced(study, **changes):
    return Study(replace(study.record, **changes), study.trials)


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"host": {"cpu": "another"}}, "another host"),
        ({"version": "9"}, "by 9"),
        ({"limits": {"cpus": 9}}, "limits"),
        ({"references": {"T0": "x"}}, "observations"),
        ({"substrates": {"container": {"version": "2"}}}, "versions or settings"),
    ],
)
def test_studies_that_do_not_belong_together_refuse_to_merge(one, other, changes, says):
    one = replaced(one, references={"T0": "y"})
    with pytest.raises(InputError, match=says):
        merge([one, replaced(other, **changes)])


def test_a_label_that_means_something_else_refuses_to_merge(one, other):
    cells = tuple(replace(c, options={"create_s": "1"}) for c in other.record.cells)
    with pytest.raises(InputError, match="not the same substrate"):
        merge([one, replaced(other, cells=cells)])


def test_the_same_study_does_not_merge_with_itself(one, other):
    with pytest.raises(InputError, match="twice"):
        merge([merge([one, other]), other])
    with pytest.raises(InputError, match="at least two"):
        merge([one])


def test_a_difference_is_shown_where_there_is_one_and_not_where_there_is_none(one, tmp_path):
    fast = SUBSTRATES["container"]
    slow = type(fast)(Latencies(create_s=0.32, ready_s=0.008, run_s=0.023, destroy_s=0.032))
    changed = synthetic(
        tmp_path / "changed",
        seed=5,
        substrates={"bare": SUBSTRATES["bare"], "container": slow},
        workloads=("T0", "K10:attrs-1417"),
    )
    found = {(c.cell, c.metric): c for c in diff(one, changed)}
    tti = found["container/T0", "tti"]
    assert tti.verdict == "slower"
    assert tti.plain.low < 1.8 < tti.plain.high
    assert found["bare/T0", "tti"].to_bare is None
    assert found["container/K10:attrs-1417", "episode"].verdict != "slower"


def test_a_single_trial_is_too_few_for_a_verdict(one):
    few = Study(one.record, [t for t in one.trials if t.block == 0])
    assert {c.verdict for c in diff(few, few)} == {"too few"}


def test_failed_trials_are_counted_and_not_averaged(one):
    short = [t for t in one.trials if t.workload == "T0"]
    failed = [
        replace(t, outcome="timeout") if t.cell == "vm/T0" and t.block == 0 else t for t in short
    ]
    before, after = (Study(one.record, trials) for trials in (short, failed))
    found = {(c.cell, c.metric): c for c in diff(before, after)}
    assert found["vm/T0", "tti"].failures == (0, 1)


def test_rows_are_one_per_trial_and_one_per_action(one):
    rows = list(trial_rows(one))
    assert len(rows) == len(one.trials)
    assert {len(r) for r in rows} == {len(rows[0])}
    assert all(r["total_ns"] > 0 for r in rows)
    actions = list(action_rows(one))
    assert len(actions) == sum(len(t.set_up) + len(t.actions) for t in one.trials)


def test_parquet_holds_what_the_study_holds(one, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet")
    from excise.measure.export import export

    trials, actions = export(one, tmp_path / "tables")
    assert parquet.read_table(trials).num_rows == len(one.trials)
    table = parquet.read_table(actions)
    assert table.schema.metadata[b"excise.study"]
    assert sum(table["received_ns"].to_pylist()) == sum(
        a.received_ns for t in one.trials for a in (*t.set_up, *t.actions)
    )
    with pytest.raises(InputError):
        export(one, tmp_path / "tables")


@pytest.mark.parametrize("out", ["new/tables", "empty", "."])
def test_what_is_made_as_a_whole_goes_where_it_is_told(one, tmp_path, monkeypatch, out):
    from excise.measure.export import export

    (tmp_path / "empty").mkdir()
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / ("here" if out == "." else ""))
    export(one, Path(out))
    assert {p.name for p in Path(out).iterdir()} == {"trials.parquet", "actions.parquet"}
    write_study(tmp_path / "studies" / out.replace(".", "s"), one.record, one.trials)
    assert len(read_study(tmp_path / "studies" / out.replace(".", "s")).trials) == len(one.trials)


def test_what_fails_on_its_way_leaves_an_empty_place_empty(one, tmp_path):
    class Stop(Exception):
        pass

    def stopping():
        yield one.trials[0]
        raise Stop

    place = tmp_path / "empty"
    place.mkdir()
    for out in (place, tmp_path / "new" / "deep"):
        with pytest.raises(Stop):
            write_study(out, one.record, stopping())
    assert [p.name for p in tmp_path.rglob("*")] == ["empty"]


def test_a_study_with_failures_exports_too(tmp_path):
    vm = SUBSTRATES["vm"]
    failing = type(vm)(vm.latencies, failing=1.0)
    failing_vm = {"bare": SUBSTRATES["bare"], "vm": failing}
    study = synthetic(tmp_path / "f", substrates=failing_vm, workloads=("T0",))
    rows = [r for r in trial_rows(study) if r["cell"].startswith("vm/")]
    assert rows
    assert {r["outcome"] for r in rows} == {"substrate_error"}
    assert {r["total_ns"] for r in rows} == {None}
    assert {r["error_phase"] for r in rows} == {"create"}


def test_a_merged_study_counts_what_its_parts_have_planned(one, other):
    """Also where they have different workloads and numbers of blocks: it is complete if they are."""
    parts = [summarise(s.record, s.trials) for s in (one, other)]
    merged = merge([one, other])
    whole = summarise(merged.record, merged.trials)
    assert whole.planned == sum(p.planned for p in parts)
    assert whole.finished == all(p.finished for p in parts)
    assert planned_trials(merged.record) == sum(planned_trials(s.record) for s in (one, other))
