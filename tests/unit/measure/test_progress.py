"""The time to go is what the trials of each cell have taken so far, times how many are left."""

from io import StringIO

import pytest

from excise.measure import plan
from excise.measure.progress import Forecast, Lines, spoken


@pytest.fixture
def slots(rig):
    cells = [rig.cell("a", "short"), rig.cell("b", "short"), rig.cell("a", "long")]
    return plan.slots(cells, blocks=4, warm_ups=0, seed=1)


def test_nothing_is_forecast_before_something_has_ended(slots):
    assert Forecast(slots).seconds() is None


def test_a_cell_that_has_not_run_is_taken_to_last_as_its_workload_does_elsewhere(slots):
    forecast = Forecast(slots)
    forecast.ended("a/short", 1.0)
    forecast.ended("a/short", 3.0)
    assert forecast.seconds() == (2 + 4 + 4) * 2.0
    forecast.ended("a/long", 50.0)
    assert forecast.seconds() == (2 + 4) * 2.0 + 3 * 50.0
    forecast.ended("b/short", 5.0)
    assert forecast.seconds() == 2 * 2.0 + 3 * 5.0 + 3 * 50.0


def test_at_the_end_nothing_is_left(slots):
    forecast = Forecast(slots)
    for slot in slots:
        forecast.ended(slot.cell.name, 2.0)
    assert forecast.seconds() == 0


def test_a_log_gets_a_line_now_and_then_and_one_at_the_end(slots):
    class Ended:
        outcome = "ok"

    log = StringIO()
    lines = Lines(log)
    lines.begin(slots)
    for slot in slots:
        record = Ended()
        record.cell = slot.cell.name
        lines.ended(record, 4.0)
    assert log.getvalue().splitlines() == [
        "3/12 trials, 0 failed, 36 s to go",
        "6/12 trials, 0 failed, 24 s to go",
        "9/12 trials, 0 failed, 12 s to go",
        "12/12 trials, 0 failed, 0 s to go",
    ]


@pytest.mark.parametrize(
    ("seconds", "words"), [(None, "?"), (0.4, "0 s"), (59.6, "1 min 00 s"), (125, "2 min 05 s")]
)
def test_a_time_is_spoken_in_minutes_and_seconds(seconds, words):
    assert spoken(seconds) == words
