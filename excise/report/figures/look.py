"""How every figure looks: one colour per substrate and per component, light and dark, and how it is written."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.figure import Figure

WIDTH_IN = 10.0
FOOT_IN = 0.22
FONT = "'DejaVu Sans'"
"""Comes with matplotlib and is wide: where a reader has another, its texts are shorter and cover nothing."""

INK, MUTED, GRID, PAPER = "#1b1f24", "#59616b", "#d8dce1", "#ffffff"
DARK = {INK: "#e8eaed", MUTED: "#a3abb5", GRID: "#3a4149", PAPER: "#16191d"}
"""Dark twin of every light colour; the rest is entered below."""


@dataclass(frozen=True, slots=True)
class Ink:
    """A colour of a series: its light and its dark form, and a marker for those who see no colours."""

    light: str
    dark: str
    marker: str = "o"


SUBSTRATES = {
    "bare": Ink("#6b7280", "#9aa3ad", "o"),
    "bare-again": Ink("#a3a9b2", "#737b86", "o"),
    "docker": Ink("#0072b2", "#4aa3df", "s"),
    "hosted": Ink("#00795c", "#2fbf95", "^"),
    "kubernetes": Ink("#d98200", "#f0a530", "D"),
    "vm": Ink("#b8460b", "#f07f45", "v"),
    "podman": Ink("#a8487f", "#d88ab8", "P"),
    "jail": Ink("#14202e", "#f4f6f8", "*"),
    "gvisor": Ink("#857000", "#d6bf4c", "X"),
    "jail+pool": Ink("#3b4a63", "#b9c7dd", "*"),
    "docker+agent": Ink("#3d8fc4", "#86c5f0", "s"),
    "podman+agent": Ink("#c070a0", "#e8b4d2", "P"),
    "gvisor+agent": Ink("#a89030", "#e6d685", "X"),
    "kubernetes+agent": Ink("#e0a040", "#f6c878", "D"),
    "bwrap": Ink("#6b4f8a", "#b79bd6", "h"),
    "vm-uml": Ink("#d0703c", "#f5a277", "v"),
    "vm-cloud": Ink("#8a3208", "#d9693a", "v"),
    "service": Ink("#0f6b78", "#4cc3d4", ">"),
    "e2b": Ink("#00795a", "#2fbf93", "^"),
    "daytona": Ink("#4f8f1f", "#93cf5c", "d"),
    "modal": Ink("#7aa800", "#b8e04a", "p"),
}
SPARE = (
    Ink("#4c4a9e", "#9a98e8", "<"),
    Ink("#008b9c", "#3fc6d6", ">"),
    Ink("#7a5230", "#c79a70", "h"),
    Ink("#c2185b", "#f06292", "p"),
    Ink("#5f7f1f", "#a5c95a", "d"),
)

COMPONENTS = {
    "fixed": ("fixed Q+C+R+S+F", Ink("#0b5f95", "#3f93cf")),
    "queue": ("queue Q", Ink("#3f3f46", "#d4d4d8")),
    "create": ("create C", Ink("#0b5f95", "#3f93cf")),
    "ready": ("ready R", Ink("#6bb7e3", "#8fd0f5")),
    "set_up": ("set-up S", Ink("#0f7b60", "#38b593")),
    "work": ("work Σw", Ink("#c3c8ce", "#68717c")),
    "slowdown": ("slowdown ΣX-Σw", Ink("#e5a020", "#f3bb52")),
    "dispatch": ("dispatch ΣD", Ink("#cc5500", "#ee7d33")),
    "unsplit": ("slowdown + dispatch, not separable", Ink("#d97a10", "#f09c42")),
    "acting": ("actions, work not known", Ink("#9b8f7f", "#b9ad9c")),
    "gap": ("harness G", Ink("#8d949d", "#818994")),
    "cleanup": ("clean-up F", Ink("#a55a8a", "#cf8ab7")),
}

DARK |= {ink.light: ink.dark for ink in (*SUBSTRATES.values(), *SPARE)}
DARK |= {ink.light: ink.dark for _, ink in COMPONENTS.values()}

RC: dict[Any, Any] = {
    "font.family": "DejaVu Sans",
    "font.size": 9.5,
    "axes.titlesize": 10.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.labelsize": 9.5,
    "axes.edgecolor": MUTED,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "axes.facecolor": PAPER,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.axisbelow": True,
    "axes.grid": True,
    "grid.color": GRID,
    "grid.linewidth": 0.7,
    "figure.facecolor": PAPER,
    "text.color": INK,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "legend.frameon": False,
    "legend.fontsize": 9,
    "hatch.linewidth": 1.4,
    "svg.fonttype": "none",
    "svg.hashsalt": "excise",
    "path.simplify": True,
}


@dataclass(frozen=True, slots=True)
class Drawing:
    """One finished figure; `alt` says in words what it shows."""

    name: str
    title: str
    caption: str
    alt: str
    svg: str
    png: bytes


@dataclass(frozen=True, slots=True)
class NotDrawn:
    """A figure this study has no data for, and why."""

    name: str
    title: str
    reason: str


def ink_of(label: str, labels: Sequence[str]) -> Ink:
    """The colour of a substrate: its kind's (`docker` for `docker:network=host`), else one by place."""
    kinds = {x.partition(":")[0]: x for x in reversed(labels)}
    own = {x: SUBSTRATES[kind] for kind, x in kinds.items() if kind in SUBSTRATES}
    if label in own:
        return own[label]
    strangers = [x for x in labels if x not in own]
    return SPARE[strangers.index(label) % len(SPARE)] if label in strangers else SPARE[0]


def render(figure: Figure) -> tuple[str, bytes]:
    """The same bytes for the same figure, always: no date, no random ids."""
    svg, png = io.BytesIO(), io.BytesIO()
    with mpl.rc_context(RC):
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": None})
        figure.savefig(png, format="png", dpi=160, metadata={"Software": None})
    text = svg.getvalue().decode().replace(FONT, f"{FONT}, Verdana, Arial, sans-serif")
    text = re.sub(r"(\d\.\d\d)\d{2,}", r"\1", text)
    return text, png.getvalue()


def themed(svg: str, name: str) -> str:
    """The SVG as it is put into a page: colours as variables, ids of its own, no prologue, its box kept."""
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"#[0-9a-f]{6}\b", lambda m: variable(m.group()), svg)
    svg = svg.replace('id="', f'id="{name}-').replace("url(#", f"url(#{name}-")
    svg = svg.replace('xlink:href="#', f'href="#{name}-')
    return re.sub(r' xmlns(:xlink)?="[^"]*"', "", svg)


def variable(colour: str) -> str:
    """The page's name for a colour, with the light form as what it is when the page says nothing."""
    return f"var(--c{colour[1:]}, {colour})" if colour in DARK else colour


def sheet(dark: bool) -> str:
    """The colours as style-sheet variables."""
    return "".join(f"--c{a[1:]}:{b if dark else a};" for a, b in DARK.items())


def is_wide(values: Sequence[float]) -> bool:
    """Whether positive values span more than a factor of ten, so that a log axis is due."""
    known = [v for v in values if 0 < v < float("inf")]
    return bool(known) and max(known) > 10 * min(known)


def legend_below(
    figure: Figure, handles: Sequence[Artist], names: Sequence[str], columns: int
) -> None:
    """One legend for all panels, below them and above the footer; the figure grows by its height."""
    legend = figure.legend(
        handles,
        names,
        loc="lower left",
        bbox_to_anchor=(0.0, FOOT_IN),
        bbox_transform=figure.dpi_scale_trans,
        ncols=columns,
        handlelength=1.6,
        borderaxespad=0.2,
    )
    below_in = FOOT_IN + 0.1 + legend.get_window_extent().height / figure.dpi
    height_in = figure.get_figheight() + below_in
    figure.set_figheight(height_in)
    foot = below_in / height_in
    figure.set_layout_engine("constrained", rect=(0.0, foot, 1.0, 1 - foot), wspace=0.05)
