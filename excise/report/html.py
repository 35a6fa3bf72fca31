"""One page that needs nothing but itself: no request leaves it, everything taken from records is escaped."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from importlib.resources import files
from string import Template

from excise.report import units, words
from excise.report.figures.look import Drawing, NotDrawn, ink_of, sheet, themed, variable
from excise.report.table import Said, Table
from excise.report.tables import FIRST
from excise.report.values import Summary

TEXT_COLUMNS = {"load", "each", "workload", "isolation", "in between", "and past it"}
NAMES = {"substrate", "pair", "of"}
SHOWN_DOUBTS = 4


def page(summary: Summary, drawings: Sequence[Drawing | NotDrawn], tables: Sequence[Table]) -> str:
    """The whole report as one HTML document."""
    unfinished = words.completeness(summary)
    return Template(_resource("page.html")).substitute(
        title=escape(f"The rollout infrastructure tax: study {summary.id}"),
        style=Template(_resource("page.css")).substitute(
            light=sheet(dark=False), dark=sheet(dark=True)
        ),
        measured=escape(words.measured(summary)),
        host=escape(words.host(summary)),
        date=escape(summary.started[:10]),
        version=escape(summary.version),
        unfinished=f'<p class="unfinished">{escape(unfinished)}</p>' if unfinished else "",
        finding=escape(words.finding(summary)),
        main="".join(_table(t, summary) for t in tables if t.name in FIRST),
        doubts=_doubts(summary),
        figures="\n".join(_figure(d) for d in drawings),
        claims=_claims(summary),
        advice=_advice(summary),
        tables="\n".join(_table(t, summary) for t in tables if t.name not in FIRST),
        failures=_failures(summary),
        method=_method(summary),
    )


def _resource(name: str) -> str:
    return files("excise.report").joinpath(name).read_text("utf-8")


def _table(table: Table, summary: Summary) -> str:
    text = [_class(c) for c in table.columns]
    head = "".join(
        f'<th scope="col"{t}>{escape(c)}</th>' for c, t in zip(table.columns, text, strict=True)
    )
    body = "".join(
        "<tr>"
        + "".join(
            _cell(c, first=i == 0, text=text[i], labels=summary.labels) for i, c in enumerate(row)
        )
        + "</tr>\n"
        for row in table.rows
    )
    return (
        f'<div class="scroll" tabindex="0" role="region" aria-label="{escape(table.title)}">'
        f'<table id="table-{escape(table.name)}"><caption>{escape(table.title)}</caption>'
        f"<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table></div>"
        f'<p class="note">{escape(table.note)}</p>'
    )


def _class(column: str) -> str:
    """How a column is set: running text, names on the left, numbers on the right."""
    return ' class="text"' if column in TEXT_COLUMNS else ' class="left"' if column in NAMES else ""


def _cell(said: Said, *, first: bool, text: str, labels: Sequence[str]) -> str:
    swatch = ""
    if said.text in labels:
        colour = variable(ink_of(said.text, labels).light)
        swatch = f'<span class="swatch" style="background:{colour}"></span>'
    detail = f"<small>{escape(said.detail)}</small>" if said.detail else ""
    tag = 'th scope="row"' if first else f"td{text}"
    return f"<{tag}>{swatch}{escape(said.text)}{detail}</{tag.split(maxsplit=1)[0]}>"


def _figure(drawing: Drawing | NotDrawn) -> str:
    if isinstance(drawing, NotDrawn):
        return f"<h3>{escape(drawing.title)}</h3><p>Not drawn: {escape(drawing.reason)}.</p>"
    svg = themed(drawing.svg, drawing.name.lower())
    named = svg.replace("<svg", f'<svg role="img" aria-label="{escape(drawing.alt)}"', 1)
    return (
        f"<figure><h3>{escape(drawing.title)}</h3>{named}"
        f"<figcaption>{escape(drawing.caption)}</figcaption></figure>"
    )


def _doubts(summary: Summary) -> str:
    """By kind: what is wrong once per case, what to do about it once."""
    if not summary.doubts:
        return ""
    kinds: dict[tuple[str, str], list[str]] = {}
    for d in summary.doubts:
        kinds.setdefault((d.kind, d.advice), []).append(d.text)
    items = "".join(_doubt(texts, advice) for (_, advice), texts in kinds.items())
    return (
        f'<section class="doubts"><h2>{len(summary.doubts)} reasons to doubt these numbers, and what to do</h2>'
        f"<ul>{items}</ul></section>"
    )


def _doubt(texts: Sequence[str], advice: str) -> str:
    shown = "; ".join(escape(t) for t in texts[:SHOWN_DOUBTS])
    rest = texts[SHOWN_DOUBTS:]
    more = (
        f" <details><summary>and {len(rest)} more of this kind</summary>{'; '.join(escape(t) for t in rest)}</details>"
        if rest
        else ""
    )
    return f'<li>{shown}. <span class="muted">{escape(advice[:1].upper() + advice[1:])}.</span>{more}</li>'


def _claims(summary: Summary) -> str:
    counts = [sum(c.verdict == v for c in summary.claims) for v in words.VERDICTS]
    lead = ", ".join(f"{n} {v}" for n, v in zip(counts, words.VERDICTS, strict=True))
    rows = "".join(
        f'<tr><th scope="row" class="text">{escape(c.words)}</th><td>{escape(c.section)}</td>'
        f'<td class="{_verdict(c.verdict)}">{escape(c.verdict)}</td>'
        f'<td class="text">{escape(words.evidence(c))}</td></tr>'
        for c in sorted(summary.claims, key=lambda c: words.VERDICTS.index(c.verdict))
    )
    return (
        f"<p>{escape(lead)}. Confirmed only where the whole interval is on the claim's side; ordering, direction and "
        "arithmetic are tested, absolute latencies are not expected to agree. Where the A/A gate failed, a difference "
        "must also exceed what one substrate differed from itself.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Claims"><table id="table-claims"><thead><tr>'
        '<th scope="col" class="text">what the paper says</th><th scope="col">section</th>'
        '<th scope="col">verdict</th><th scope="col" class="text">rests on</th></tr></thead>'
        f"<tbody>{rows}</tbody></table></div>"
    )


def _verdict(verdict: str) -> str:
    return {"confirmed": "confirmed", "not confirmed": "not-confirmed"}.get(verdict, "not-testable")


def _advice(summary: Summary) -> str:
    if not summary.advice:
        return (
            "<p>None: it needs trajectories of an isolated substrate and of the bare baseline.</p>"
        )
    items = "".join(
        f"<li>{escape(a.text[:1].upper() + a.text[1:])} "
        f'<span class="muted">({escape(units.share(a.sure))} of bootstrap resamples agree)</span>.</li>'
        for a in summary.advice
    )
    return f"<p>Of the tax alone, on this host; choose by the isolation you need first.</p><ul>{items}</ul>"


def _failures(summary: Summary) -> str:
    if not summary.failures:
        return f"<p>None of {summary.measured + summary.loads_measured} trials failed.</p>"
    rows = "".join(
        f'<tr><th scope="row">{escape(f.cell)}</th><td>{f.block}</td><td class="text">{escape(f.outcome.replace("_", " "))}</td>'
        f'<td class="text">{escape(f.phase or "-")}</td><td>{"-" if f.action is None else f.action}</td>'
        f'<td class="text">{escape(f.message[:500])}</td></tr>'
        for f in summary.failures
    )
    return (
        f"<p>{len(summary.failures)} trials failed. None was repeated or left out: in quantiles they never end.</p>"
        '<div class="scroll" tabindex="0" role="region" aria-label="Failed trials"><table id="table-failures"><thead><tr>'
        '<th scope="col">cell</th><th scope="col">block</th><th scope="col" class="text">outcome</th>'
        '<th scope="col" class="text">phase</th><th scope="col">action</th><th scope="col" class="text">what it said</th>'
        f"</tr></thead><tbody>{rows}</tbody></table></div>"
    )


def _method(summary: Summary) -> str:
    facts = {str(k).replace("_", " "): str(v) for k, v in summary.host.items() if v is not None}
    settings = {
        label: ", ".join(f"{k.replace('_', ' ')} {v}" for k, v in known.items())
        for label, known in summary.substrates.items()
    }
    limits = {k: v for k, v in summary.limits.items() if v is not None}
    design = {
        "seed": str(summary.seed),
        "sessions": str(summary.sessions),
        "placement": summary.placement or "not recorded",
        "limits": ", ".join(f"{k} {v}" for k, v in limits.items()) or "not recorded",
        "A/A gate": words.gate(summary),
        "noise": words.noise(summary),
        **{f"skipped: {label}": reason for label, reason in summary.skipped.items()},
    }
    return (
        f"{''.join(f'<p>{escape(p)}</p>' for p in words.method(summary))}"
        f"<h3>Design</h3>{_listed(design)}<h3>Substrates</h3>{_listed(settings)}<h3>Host</h3>{_listed(facts)}"
        "<h3>Data</h3><p>Every number here is computed from <code>study.json</code> (the head) and <code>trials.jsonl</code> "
        "(one line per trial, failures and warm-ups included) in the study's directory; "
        "<code>summary.json</code> beside this page has the same numbers unrounded.</p>"
    )


def _listed(facts: dict[str, str]) -> str:
    return (
        "<dl>"
        + "".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in facts.items())
        + "</dl>"
    )
