"""What layers cost when they were last built here."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from excise.layers import prices
from excise.layers.prices import Price, Prices
from excise.pools.stage import Kind


def built(seconds: float, size: int = 1):
    return [SimpleNamespace(facts=SimpleNamespace(build_s=seconds, bytes=size))]


def test_a_price_outlives_the_process_that_took_it(tmp_path) -> None:
    Prices(tmp_path).note("dependencies", "a", built(12.5, 7))
    assert Prices(tmp_path).of("dependencies", "a") == Price("dependencies", 12.5, 7)


def test_what_was_never_built_costs_what_its_kind_costs_here_or_else_a_guess(tmp_path) -> None:
    known = Prices(tmp_path)
    assert known.of("repository", "new").seconds == prices.UNKNOWN_S["repository"]
    known.note("repository", "a", built(1.0))
    known.note("repository", "b", built(3.0))
    known.note("dependencies", "c", built(100.0))
    assert known.of("repository", "new").seconds == 2.0


@pytest.mark.parametrize("kind", Kind)
def test_every_kind_of_stage_has_a_price(tmp_path, kind: Kind) -> None:
    assert Prices(tmp_path).of(kind, "never built").seconds >= 0


def test_the_last_price_stands_and_several_layers_add_up(tmp_path) -> None:
    known = Prices(tmp_path)
    known.note("image", "a", [*built(1.0, 10), *built(2.0, 5)])
    assert known.of("image", "a") == Price("image", 3.0, 15)
    known.note("image", "a", built(4.0, 20))
    assert known.of("image", "a") == Price("image", 4.0, 20)


def test_two_processes_add_to_the_same_file(tmp_path) -> None:
    one, other = Prices(tmp_path), Prices(tmp_path)
    one.note("image", "a", built(1.0))
    other.note("image", "b", built(2.0))
    assert {Prices(tmp_path).of("image", key).seconds for key in "ab"} == {1.0, 2.0}


def test_prices_do_not_gather(tmp_path, monkeypatch) -> None:
    monkeypatch.setattr(prices, "MOST", 3)
    known = Prices(tmp_path)
    for number in range(5):
        known.note("image", str(number), built(float(number)))
    assert len(known._known) == 3
    assert known.of("image", "4").seconds == 4.0


def test_a_damaged_file_is_no_reason_to_stop(tmp_path) -> None:
    (tmp_path / "prices.json").write_text("{")
    known = Prices(tmp_path)
    known.note("image", "a", built(1.0))
    assert Prices(tmp_path).of("image", "a").seconds == 1.0


def test_what_cannot_be_written_is_measured_again(tmp_path) -> None:
    known = Prices(tmp_path / "nowhere")
    known.note("image", "a", built(1.0))
    assert known.of("image", "a").seconds == 1.0
