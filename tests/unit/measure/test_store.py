import errno
import os
import threading

import msgspec
import pytest
from msgspec.structs import replace

from excise.errors import InputError
from excise.measure import store
from excise.measure.record import TrialRecord
from excise.measure.store import Ledger, RecordLost, read_study


def record(block: int, cell: str = "fake/W") -> TrialRecord:
    return TrialRecord(
        study="s1",
        block=block,
        position=0,
        cell=cell,
        substrate="fake",
        workload="W",
        actions_planned=1,
        seed=1,
        outcome="ok",
    )


@pytest.fixture
def study(tmp_path, rig):
    directory = tmp_path / "study"
    with Ledger.create(directory, rig.head()) as ledger:
        ledger.append(record(0))
        ledger.append(record(1))
    return directory


def test_what_was_written_is_read_back(study, rig):
    found = read_study(study)
    assert found.record == rig.head()
    assert [t.block for t in found.trials] == [0, 1]
    assert not found.torn


@pytest.mark.parametrize("torn", [b'{"format":1,"st', b"\0\0\0\0", b'{"format":1}\n{"fo', b"x\n"])
def test_a_torn_end_is_skipped_and_cut_off_when_resuming(study, torn):
    with (study / store.TRIALS).open("ab") as file:
        file.write(torn)
    assert len(read_study(study).trials) == 2
    assert read_study(study).torn
    ledger, found = Ledger.resume(study)
    with ledger:
        assert found.done == {(1, 0, "fake/W"), (1, 1, "fake/W")}
        ledger.append(record(2))
    assert [t.block for t in read_study(study).trials] == [0, 1, 2]
    assert not read_study(study).torn


def test_a_broken_line_among_good_ones_is_refused_by_its_number(study):
    lines = (study / store.TRIALS).read_bytes().splitlines(keepends=True)
    (study / store.TRIALS).write_bytes(b"not a trial\n" + lines[0])
    with pytest.raises(InputError, match="line 1 of"):
        read_study(study)


@pytest.mark.parametrize(("number", "says"), [(0, "older format 0"), (2, "update Excise")])
def test_a_trial_of_another_format_is_refused_by_its_line(study, number, says):
    with (study / store.TRIALS).open("ab") as file:
        file.write(msgspec.json.encode(replace(record(2), format=number)) + b"\n")
    with pytest.raises(InputError, match=f"line 3 of .*{says}"):
        read_study(study)


def test_a_study_before_its_first_trial_is_one(tmp_path, rig):
    Ledger.create(tmp_path / "new", rig.head()).close()
    assert read_study(tmp_path / "new").trials == []


@pytest.mark.parametrize(
    ("head", "says"),
    [
        (b'{"format": 99}', "update Excise"),
        (b'{"format": 0}', "older format 0"),
        (b'{"format": 1}', "not the head"),
        (b"[]", "not the head"),
        (b"\xff", "not the head"),
    ],
)
def test_a_head_that_cannot_be_read_says_what_to_do(tmp_path, head, says):
    (tmp_path / store.HEAD).write_bytes(head)
    with pytest.raises(InputError, match=says):
        read_study(tmp_path)


def test_something_that_is_no_study_is_refused(tmp_path):
    with pytest.raises(InputError, match="is not a study"):
        read_study(tmp_path)
    with pytest.raises(InputError, match="is not a study"):
        read_study(tmp_path / "missing")


def test_a_study_is_never_started_on_top_of_something_else(tmp_path, rig):
    (tmp_path / "thesis.txt").write_text("important")
    with pytest.raises(InputError, match="something else"):
        Ledger.create(tmp_path, rig.head())
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.txt"]


def test_an_output_directory_that_is_a_file_is_refused(tmp_path, rig):
    (tmp_path / "file").write_text("")
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(InputError):
            Ledger.create(path, rig.head())


def test_two_runs_cannot_write_into_one_study(study):
    ledger, _ = Ledger.resume(study)
    with ledger, pytest.raises(InputError, match="another run"):
        Ledger.resume(study)
    Ledger.resume(study)[0].close()


def test_a_full_disk_loses_the_record_and_keeps_those_before(study, monkeypatch):
    real = os.write

    def write(descriptor, data):
        if threading.current_thread() is threading.main_thread() and len(data) > 100:
            real(descriptor, data[:50])
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(descriptor, data)

    ledger, _ = Ledger.resume(study)
    with ledger:
        monkeypatch.setattr(store.os, "write", write)
        with pytest.raises(RecordLost, match="No space left"):
            ledger.append(record(2))
        monkeypatch.undo()
        assert [t.block for t in read_study(study).trials] == [0, 1]
        assert not read_study(study).torn
        ledger.append(record(3))
    assert [t.block for t in read_study(study).trials] == [0, 1, 3]


def test_a_record_keeps_its_format_number(study):
    assert (study / store.TRIALS).read_bytes().startswith(b'{"format":1,')
    assert b'"format": 1' in (study / store.HEAD).read_bytes()
