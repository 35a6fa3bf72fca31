"""A full disk: whatever was there before stays valid, nothing half-made is left, and one line says what to do."""

import os
import subprocess
from pathlib import Path

import pytest

from excise.measure.store import read_study
from excise.measure.synthetic import synthetic

pytestmark = pytest.mark.timeout(180)
FAKE = ("study", "run", "--substrate", "fake", "--workload", "T0", "--seed", "7")


@pytest.fixture
def disk(tmp_path):
    """Make a disk of so many bytes, with so many of them taken."""
    place = tmp_path / "disk"
    place.mkdir()
    mounted = []

    def disk(size, taken=0):
        mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(place)]
        if subprocess.run(mount, capture_output=True, check=False).returncode:
            why = "a small disk cannot be mounted here: that needs root"
            if "jail" in os.environ.get("EXCISE_REQUIRE", "").split(","):
                pytest.fail(f"{why}, as jails do, which are required", pytrace=False)
            pytest.skip(why)
        mounted.append(place)
        if taken:
            (place / "taken").write_bytes(bytes(taken))
        return place

    yield disk
    for path in mounted:
        subprocess.run(["umount", str(path)], check=True)


def files(place):
    return {str(p.relative_to(place)) for p in place.rglob("*")}


def last_of(err):
    """What is said after the progress."""
    return f"{err.strip().splitlines()[-1]}\n"


def assert_one_line(err, *said):
    assert err.count("\n") == 1, err
    assert err.startswith("excise: ")
    for words in said:
        assert words in err


def test_the_records_so_far_stay_valid_and_the_study_goes_on_when_there_is_room(excise, disk):
    out = disk("160k") / "s"
    (out.parent / "ballast").write_bytes(bytes(140_000))
    code, _, err = excise(*FAKE, "--blocks", 9, "--out", out)
    assert code == 1, err
    assert_one_line(last_of(err), "No space left", "make room")
    study = read_study(out)
    assert 0 < len(study.trials) < 30
    assert not study.torn
    before = (out / "trials.jsonl").read_bytes()
    (out.parent / "ballast").unlink()
    excise("study", "run", "--out", out, "--json")
    study = read_study(out)
    assert len({t.key for t in study.trials}) == len(study.trials) == 30
    assert (out / "trials.jsonl").read_bytes().startswith(before)


def test_a_study_that_cannot_even_begin_leaves_nothing(excise, disk):
    place = disk("16k", taken=16_384)
    code, _, err = excise(*FAKE, "--out", place / "deep" / "s")
    assert code == 1
    assert_one_line(last_of(err), "No space left", "choose another --out")
    assert files(place) == {"taken"}


def test_an_earlier_report_stays_when_there_is_no_room_for_a_new_one(excise, disk, tmp_path):
    synthetic(tmp_path / "s", workloads=("T0",))
    out = disk("100k") / "report"
    out.mkdir()
    (out / "report.html").write_text("earlier")
    code, printed, err = excise("study", "report", tmp_path / "s", "--out", out)
    assert (code, printed) == (1, "")
    assert_one_line(err, "No space left", "the study is as it was")
    assert files(out) == {"report.html"}
    assert (out / "report.html").read_text() == "earlier"


@pytest.mark.parametrize("verb", ["merge", "export"])
def test_what_is_made_as_a_whole_is_made_whole_or_not(excise, disk, tmp_path, verb):
    for seed in (1, 2):
        synthetic(tmp_path / f"s{seed}", workloads=("T0",), seed=seed)
    studies = [tmp_path / "s1", tmp_path / "s2"][: 2 if verb == "merge" else 1]
    place = disk("16k", taken=12_000)
    code, _, err = excise("study", verb, *studies, "--out", place / "new" / "m")
    assert code == 1
    assert_one_line(err, "No space left")
    assert files(place) == {"taken"}


def test_a_full_cache_is_called_that_and_not_a_broken_python(excise, disk, tmp_path):
    cache = disk("300k") / "cache"
    code, _, err = excise(
        "study", "run", "--substrate", "local", "--workload", "T1:attrs-1417",
        "--out", tmp_path / "s", EXCISE_CACHE=str(cache),
    )  # fmt: skip
    assert code == 1
    assert_one_line(last_of(err), "no room", "EXCISE_CACHE")
    assert not (tmp_path / "s").exists()


def test_a_sandbox_without_room_is_one_line_too(excise, disk, tmp_path):
    kept = Path(os.environ.get("EXCISE_CACHE") or Path.home() / ".cache/excise")
    assert excise("task", "prepare", "attrs-1417", EXCISE_CACHE=str(kept))[0] == 0
    cache = tmp_path / "cache"
    cache.mkdir()
    for part in ("archives", "pip", "tasks", "venvs"):  # and no goldens: they are to be recorded
        (kept / part).mkdir(parents=True, exist_ok=True)
        (cache / part).symlink_to(kept / part)
    code, _, err = excise(
        "study", "run", "--substrate", "local", "--workload", "T1:attrs-1417",
        "--out", tmp_path / "s", EXCISE_CACHE=str(cache), TMPDIR=str(disk("100k")),
    )  # fmt: skip
    assert code == 1
    last = last_of(err)
    assert last.startswith("excise: T1:attrs-1417 has no reference")
    assert "No space left" in last
    assert err.count("No space left") == 1
    assert not (tmp_path / "s").exists()


def test_a_study_of_which_no_trial_comes_through_is_a_failed_job(excise, disk, tmp_path):
    words = ("study", "run", "--substrate", "local", "--workload", "T0", "--blocks", "1", "--json")
    assert excise(*words, "--out", tmp_path / "first")[0] == 0
    full = disk("16k,nr_inodes=3")
    code, _, err = excise(*words, "--out", tmp_path / "s", TMPDIR=str(full))
    assert code == 1
    assert_one_line(last_of(err), "none of 4 trials came through", "No space left")
    study = read_study(tmp_path / "s")
    assert {t.outcome for t in study.trials} == {"substrate_error"}
    assert files(full) <= {"excise-0", "excise-0/local"}
