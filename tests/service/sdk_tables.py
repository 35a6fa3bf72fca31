"""What the SDK matrix found, as it is recorded beside the tests, and as the tables of the documentation.

`sdk_results/PART.json` holds what each version of an SDK did when `make sdk-matrix` ran last. Tests hold the newest one
of them to what is found now, and the pages to what is recorded.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

BEGIN = "<!-- what follows is written by `make sdk-matrix` from what the tests found -->"
END = "<!-- until here -->"
RESULTS = Path(__file__).parent / "sdk_results"
SIGNS = {"works": "yes", "absent": "-", "failed": "**no**"}

Found = Mapping[str, object]


def recorded(part: str) -> list[dict]:
    """Oldest version first."""
    return json.loads((RESULTS / f"{part}.json").read_text(encoding="utf-8"))


def record(part: str, found: Sequence[Found]) -> None:
    RESULTS.mkdir(exist_ok=True)
    (RESULTS / f"{part}.json").write_text(json.dumps(found, indent=1, sort_keys=True) + "\n")


def outcome(said: str) -> str:
    """One of `SIGNS`."""
    return "works" if said == "works" else "absent" if said.startswith("absent") else "failed"


def together(kinds: Sequence[Mapping[str, str]]) -> dict[str, str]:
    """What works in every kind of one version's SDK."""
    order = ("failed", "absent", "works")
    return {
        name: min((outcome(each[name]) for each in kinds), key=order.index) for name in kinds[0]
    }


def matrix(sdks: Mapping[str, Sequence[Mapping]]) -> str:
    """A line for each exercise, a column for each version of each SDK."""
    columns = [(name, each) for name, versions in sdks.items() for each in versions]
    head = " | ".join(f"{name} {each['version']}" for name, each in columns)
    lines = [f"| | {head} |", f"|---|{'---|' * len(columns)}"]
    exercises = dict.fromkeys(name for _, each in columns for name in each["found"])
    for exercise in exercises:
        signs = " | ".join(SIGNS[each["found"].get(exercise, "absent")] for _, each in columns)
        lines.append(f"| {exercise.replace('_', ' ')} | {signs} |")
    return "\n".join(lines)


def versions(results: Sequence[Mapping]) -> str:
    """One line for each version of the SDK: how many of its methods work, and how many are refused."""
    lines = ["| SDK | its methods | work | refused, with the reason |", "|---|---|---|---|"]
    for found in results:
        offers = set(found["offers"])
        work, refuse = offers & set(found["works"]), offers & set(found["refused"])
        lines.append(f"| {found['version']} | {len(offers)} | {len(work)} | {len(refuse)} |")
    return "\n".join(lines)


def works(found: Mapping) -> str:
    """By class, the methods of one version that work."""
    methods: dict[str, list[str]] = {}
    for name in sorted(set(found["works"]) & set(found["offers"])):
        kind, _, method = name.partition(".")
        methods.setdefault(kind, []).append(f"`{method}`")
    lines = ["| class | methods that work |", "|---|---|"]
    return "\n".join(
        [*lines, *(f"| {kind} | {', '.join(names)} |" for kind, names in methods.items())]
    )


def refused(found: Mapping) -> str:
    """The methods that are refused, by the reason that their caller is told."""
    methods: dict[str, list[str]] = {}
    for name, why in sorted(found["refused"].items()):
        methods.setdefault(why, []).append(f"`{name}`")
    lines = ["| refused | what its caller is told |", "|---|---|"]
    return "\n".join(
        [*lines, *(f"| {', '.join(names)} | {why} |" for why, names in methods.items())]
    )


def pages() -> dict[str, str]:
    """The tables of each page, of what is recorded."""
    daytona = recorded("daytona")
    e2b = {"Python": recorded("e2b"), "JS": recorded("e2b-js")}
    return {
        "daytona.md": "\n\n".join((versions(daytona), works(daytona[-1]), refused(daytona[-1]))),
        "e2b.md": matrix(e2b),
    }


def written(text: str, tables: str) -> str:
    """A page with these tables between the marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"
