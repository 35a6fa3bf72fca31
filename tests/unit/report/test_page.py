"""The page needs nothing but itself, hides no failure, and trusts nothing that comes out of a record."""

from __future__ import annotations

import json
import math
import re
from html.parser import HTMLParser

import pytest

from excise.measure.record import Cell
from excise.report import units
from excise.report.figures import FIGURES, draw, latency
from excise.report.figures.look import DARK, Drawing, NotDrawn, ink_of
from excise.report.html import page
from excise.report.summary import summarise
from excise.report.tables import main, tables
from excise.report.text import markdown, table_csv, terminal
from excise.report.words import finding
from excise.report.write import summary_json

DOCKER = Cell(label="docker", substrate="docker", workload="T0")
VOID = {"meta", "link", "br", "use", "path", "img"}


class Seen(HTMLParser):
    """Every tag with its attributes, and the visible text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag) -> None:
        if tag not in VOID:
            assert self.open.pop() == tag, f"</{tag}> closes something else"

    def handle_data(self, data) -> None:
        if not {"style", "script"} & set(self.open):
            self.text += data


def rendered(summary) -> Seen:
    """The page without its figures, which take long to draw."""
    return Seen(page(summary, (), tables(summary)))


@pytest.fixture(scope="module")
def small(build):
    return summarise(*build.study(("bare", "docker"), blocks=6, fail={"docker": 0.3}))


@pytest.fixture(scope="module")
def drawings(small):
    return draw(small)


@pytest.fixture(scope="module")
def seen(small, drawings):
    return Seen(page(small, drawings, tables(small)))


def test_nothing_is_fetched_from_anywhere(small, drawings, seen) -> None:
    for tag, attributes in seen.tags:
        for name in ("src", "href", "xlink:href", "srcset", "action", "data"):
            target = attributes.get(name)
            assert target is None or target.startswith(("#", "data:")), (tag, name, target)
    text = page(small, drawings, tables(small))
    assert not re.search(r"https?://|@import|url\((?!#)", text)
    assert seen.open == []


def test_every_id_is_there_once_and_every_link_leads_to_one(seen) -> None:
    ids = [a["id"] for _, a in seen.tags if a.get("id")]
    assert len(ids) == len(set(ids))
    links = [a["href"] for _, a in seen.tags if (a.get("href") or "").startswith("#")]
    assert {link.removeprefix("#") for link in links} <= set(ids)


def test_figures_and_tables_say_what_they_are_to_those_who_do_not_see_them(seen) -> None:
    figures = [a for tag, a in seen.tags if tag == "svg"]
    assert len(figures) == 6
    assert all(a["role"] == "img" and len(a["aria-label"]) > 40 for a in figures)
    assert all(a.get("scope") for tag, a in seen.tags if tag == "th")


def test_the_page_says_the_numbers_of_the_summary(small, seen) -> None:
    read = json.loads(summary_json(small))
    cell = next(c for c in read["cells"] if (c["label"], c["tier"]) == ("bare", "T2"))
    assert units.seconds(cell["episode_p50"]["estimate"]) in seen.text
    assert units.seconds(cell["total_mean"]["estimate"]) in seen.text
    hours = next(h for h in read["hours"] if h["label"] == "docker")
    assert units.hours(hours["sandbox"]["estimate"]) in seen.text
    assert units.hours(hours["tax"]["estimate"]) in seen.text


def test_a_time_that_never_ended_is_null_in_the_summary(build) -> None:
    summary = summarise(build.head((DOCKER,), blocks=1), [build.broken(DOCKER, 0)])
    assert math.isinf(summary.cells[0].tti_p50.estimate)
    assert json.loads(summary_json(summary))["cells"][0]["tti_p50"]["estimate"] is None


def test_hostile_names_and_messages_stay_text(build) -> None:
    evil = '<script>alert("x")</script>'
    cell = Cell(label=evil, substrate=evil, workload="T0")
    head = build.head(
        (cell,), blocks=2, id=evil, skipped={evil: evil}, placement=evil, host={evil: evil}
    )
    trials = [build.trial(cell, 0, build.times()), build.broken(cell, 1, message=evil)]
    summary = summarise(head, trials)
    drawings = draw(summary)
    text = page(summary, drawings, tables(summary))
    assert text.count("<script>") == 1, "the page's own, which switches light and dark"
    assert evil in Seen(text).text
    assert "<script>" not in markdown(summary, drawings, tables(summary))


def test_failing_trials_are_on_the_page_one_by_one(build) -> None:
    failing = [build.broken(DOCKER, b, message=f"no space left on device {b}") for b in range(3)]
    summary = summarise(build.head((DOCKER,), blocks=3), failing)
    seen = rendered(summary)
    assert "None of 3 trials came through" in seen.text
    assert "0 / 3" in seen.text
    assert all(f"no space left on device {b}" in seen.text for b in range(3))


def test_a_study_of_one_trial_has_a_page(build) -> None:
    summary = summarise(build.head((DOCKER,), blocks=1), [build.trial(DOCKER, 0, build.times())])
    seen = Seen(page(summary, draw(summary), tables(summary)))
    assert "no bare baseline" in seen.text
    assert "Not drawn: no trial of T2 went through." in seen.text


def test_an_unfinished_study_says_so_first(build) -> None:
    head, trials = build.study(("bare", "docker"), ("T0",), blocks=4)
    summary = summarise(head, trials[:-3])
    assert "Unfinished: 5 of 8 trials" in rendered(summary).text
    assert rendered(summarise(head, [])).text.count("Nothing has been measured yet") == 1


def test_what_was_skipped_is_named_with_its_reason(build) -> None:
    head, trials = build.study(("bare",), ("T0",), blocks=2)
    head = type(head)(
        **{f: getattr(head, f) for f in head.__struct_fields__}
        | {"skipped": {"docker": "not running"}}
    )
    text = rendered(summarise(head, trials)).text
    assert "skipped: docker" in text
    assert "not running" in text


def test_the_finding_names_tax_substrate_and_think_time(build) -> None:
    said = finding(summarise(*build.study(("bare", "docker", "vm"), blocks=6)))
    assert "(docker)" in said
    assert "(vm)" in said
    assert "once the model thinks 4 s per action" in said


def test_the_main_table_has_a_row_per_substrate_and_a_rate_beside_it(small) -> None:
    table = main(small)
    assert [row[0].text for row in table.rows] == ["bare", "docker"]
    failed = sum(c.failed for c in small.cells)
    assert failed > 0
    assert f"{failed} substrate error" in table.rows[1][2].detail
    assert all(len(row) == len(t.columns) for t in tables(small) for row in t.rows)


def test_a_csv_has_the_interval_in_a_column_of_its_own(small) -> None:
    lines = table_csv(main(small)).splitlines()
    assert lines[0].startswith("substrate,substrate: interval or remark")
    assert len(lines) == 3


def test_drawing_twice_gives_the_same_bytes(small, drawings) -> None:
    assert len(drawings) == 6
    for first, again in zip(drawings[:2], draw(small, FIGURES[:2]), strict=True):
        assert isinstance(first, Drawing)
        assert (first.svg, first.png) == (again.svg, again.png)
        assert not re.search(r"<dc:date>|20\d\d-\d\d-\d\dT", first.svg)


def test_every_figure_says_n_failures_host_and_date(drawings) -> None:
    for d in drawings:
        assert isinstance(d, Drawing)
        assert "n=" in d.svg, d.name
        assert "failed" in d.svg or "\N{BALLOT X}" in d.svg, d.name
        assert "Written-down CPU" in d.svg
        assert "2026-11-18" in d.svg
        assert "docker 1.2.3" in d.caption


def test_what_is_not_known_is_drawn_as_such(build) -> None:
    summary = summarise(*build.study(("bare", "hosted"), ("T2:attrs-1417",), blocks=3))
    f1 = draw(summary, FIGURES[:1])[0]
    assert isinstance(f1, Drawing)
    assert "not separable" in f1.svg
    assert "does not tell slowdown from dispatch" in f1.caption


def test_a_study_of_loads_alone_has_its_figure_its_table_and_no_empty_ones(build) -> None:
    cell = Cell(label="docker", substrate="docker", workload="T0", load="staggered:3:0.2")
    waits = (0.0, 300.0, 50.0)
    trials = [
        build.trial(cell, b, build.times(queue=1.0, create=w + 1), load=cell.load)
        for b, w in enumerate(waits)
    ]
    summary = summarise(build.head((cell,), blocks=5), trials)
    drawn = {d.name for d in draw(summary) if isinstance(d, Drawing)}
    assert drawn == {"F7"}
    assert {t.name for t in tables(summary)} == {"loads", "isolation", "T1"}
    text = rendered(summary).text
    assert "3 of 3 planned trials under load (staggered:3:0.2)" in text
    assert "No trial has been measured" not in text
    assert "staggered:3:0.2" in markdown(summary, (), tables(summary))
    from io import StringIO

    from rich.console import Console

    console = Console(file=StringIO(), width=80)
    console.print(terminal(summary))
    printed = console.file.getvalue()
    assert "Under load" in printed
    assert "What a rollout takes" not in printed


def test_the_ratios_of_declared_pairs_stand_in_the_figure_of_the_tiers(build) -> None:
    labels = ("bare", "hosted", "docker", "vm")
    summary = summarise(*build.study(labels, ("T0", "T2:attrs-1417"), blocks=6))
    (drawn,) = draw(summary, (latency.tiers,))
    for workload in ("T0", "T2:attrs-1417"):
        (ratio,) = [
            r.ratio
            for r in summary.ratios
            if (r.a, r.b, r.workload, r.metric) == ("vm", "hosted", workload, "episode")
        ]
        assert f"vm / hosted: {units.ratio_interval(ratio)}" in drawn.svg
    assert "docker / bare:" not in drawn.svg


def test_every_colour_of_a_figure_has_a_dark_twin(drawings) -> None:
    for d in drawings:
        assert isinstance(d, Drawing | NotDrawn)
        if isinstance(d, Drawing):
            assert set(re.findall(r"#[0-9a-f]{6}\b", d.svg)) <= set(DARK)


def test_the_table_of_a_terminal_fits_eighty_columns_and_cuts_nothing_off(build) -> None:
    from io import StringIO

    from rich.console import Console

    summary = summarise(*build.study(("bare", "docker", "vm"), blocks=6))
    console = Console(file=StringIO(), width=80)
    console.print(terminal(summary))
    printed = console.file.getvalue()
    assert "\N{HORIZONTAL ELLIPSIS}" not in printed
    assert all(s in printed for s in ("docker", "vm", "tax-hours at 1M", "doubt: "))


def test_a_substrate_keeps_its_colour_and_two_never_share_one() -> None:
    labels = ("bare", "docker:network=host", "docker:runtime=runc", "mine", "yours")
    assert ink_of("docker:network=host", labels) == ink_of("docker", ("docker",))
    assert len({ink_of(x, labels) for x in labels}) == len(labels)


def test_lengths_that_were_not_run_yet_are_not_lengths(build) -> None:
    head, trials = build.study(("bare",), blocks=2)
    summary = summarise(head, [t for t in trials if not t.workload.startswith("K150")])
    assert summary.lengths() == (10, 50)


def test_a_tax_that_may_be_none_is_not_claimed(build) -> None:
    head, trials = build.study(("bare", "docker"), blocks=1)
    assert finding(summarise(head, trials)).startswith("Too few or too disturbed trials")
