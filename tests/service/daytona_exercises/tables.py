"""What the exercises found, as the tables of the documentation."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

BEGIN = "<!-- what follows is written by `make sdk-matrix` from what the tests found -->"
END = "<!-- until here -->"


def versions(results: Iterable[Mapping]) -> str:
    """One line for each version of the SDK: how many of its methods work, and how many are refused."""
    lines = ["| SDK | its methods | work | refused, with the reason |", "|---|---|---|---|"]
    for found in results:
        offers = set(found["offers"])
        works, refused = offers & set(found["works"]), offers & set(found["refused"])
        lines.append(f"| {found['version']} | {len(offers)} | {len(works)} | {len(refused)} |")
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


def written(text: str, tables: str) -> str:
    """A page with these tables between the marks."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables}\n\n{END}{after}"
