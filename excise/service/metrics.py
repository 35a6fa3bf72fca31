"""Counts and latencies of bounded size, and the text that Prometheus reads them in. Pure."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping

BOUNDS_NS = tuple(
    round(base * 10**power) for power in range(4, 12) for base in (1, 1.5, 2.2, 3.3, 4.7, 6.8)
)
"""From 10 microseconds to some 11 minutes, six to a decade."""

SHOWN_NS = BOUNDS_NS[::2]
"""Those of them that are told to Prometheus."""


class Histogram:
    """How often something took how long."""

    __slots__ = ("count", "counts", "sum_ns")

    def __init__(self) -> None:
        self.counts = [0] * (len(BOUNDS_NS) + 1)
        self.count = 0
        self.sum_ns = 0

    def add(self, ns: int) -> None:
        self.counts[bisect_left(BOUNDS_NS, ns)] += 1
        self.count += 1
        self.sum_ns += ns

    def quantile_ns(self, share: float) -> float | None:
        """Interpolated within its bucket; None where nothing was counted."""
        if not self.count:
            return None
        wanted, below = share * self.count, 0
        for index, count in enumerate(self.counts):
            if count and below + count >= wanted:
                low = BOUNDS_NS[index - 1] if index else 0
                high = BOUNDS_NS[index] if index < len(BOUNDS_NS) else low
                return low + (high - low) * max(0.0, wanted - below) / count
            below += count
        return float(BOUNDS_NS[-1])

    def lines(self, name: str, labels: Mapping[str, str]) -> Iterator[str]:
        """In the text format: cumulative, in seconds."""
        below, at = 0, 0
        for bound in SHOWN_NS:
            while at < len(BOUNDS_NS) and BOUNDS_NS[at] <= bound:
                below += self.counts[at]
                at += 1
            yield f"{name}_bucket{labelled(labels, le=f'{bound / 1e9:g}')} {below}"
        yield f"{name}_bucket{labelled(labels, le='+Inf')} {self.count}"
        yield f"{name}_sum{labelled(labels)} {self.sum_ns / 1e9:.9g}"
        yield f"{name}_count{labelled(labels)} {self.count}"


class Windows:
    """Latencies by stretches of time, the last `kept` of them: how a percentile moves."""

    def __init__(self, every_ns: int = 10 * 10**9, kept: int = 360) -> None:
        self.every_ns = every_ns
        self._kept: deque[tuple[int, Histogram]] = deque(maxlen=kept)

    def add(self, now_ns: int, ns: int) -> None:
        begun = now_ns - now_ns % self.every_ns
        if not self._kept or self._kept[-1][0] != begun:
            self._kept.append((begun, Histogram()))
        self._kept[-1][1].add(ns)

    def series(self) -> list[tuple[int, int, float, float]]:
        """For each stretch with anything in it: when it began, how many, p50 and p99 in nanoseconds."""
        return [
            (begun, each.count, each.quantile_ns(0.5) or 0.0, each.quantile_ns(0.99) or 0.0)
            for begun, each in self._kept
        ]


class Metrics:
    """All of one service."""

    def __init__(self) -> None:
        self.phases: dict[str, Histogram] = {}
        self.requests: dict[str, Histogram] = {}
        self.answers: Counter[tuple[str, int]] = Counter()
        self.failures: Counter[tuple[str, str]] = Counter()

    def took(self, phase: str, ns: int) -> None:
        """A phase of a rollout took so long: create, ready, dispatch, work, cleanup."""
        histogram = self.phases.get(phase)
        if histogram is None:
            histogram = self.phases[phase] = Histogram()
        histogram.add(ns)

    def answered(self, door: str, status: int, ns: int) -> None:
        """A request was answered."""
        self.answers[door, status] += 1
        histogram = self.requests.get(door)
        if histogram is None:
            histogram = self.requests[door] = Histogram()
        histogram.add(ns)

    def failed(self, kind: str, phase: str | None) -> None:
        """Something was no success, and it was not a command."""
        self.failures[kind, phase or ""] += 1

    def exposition(self, gauges: Iterable[tuple[str, str, Mapping[str, str], float]]) -> str:
        """Everything, with gauges of this moment: name, help, labels, value."""
        lines: list[str] = []
        _head(lines, "excise_phase_seconds", "histogram", "How long each phase of rollouts took.")
        for phase, histogram in self.phases.items():
            lines += histogram.lines("excise_phase_seconds", {"phase": phase})
        _head(lines, "excise_request_seconds", "histogram", "How long requests took, by door.")
        for door, histogram in self.requests.items():
            lines += histogram.lines("excise_request_seconds", {"door": door})
        _head(lines, "excise_answers_total", "counter", "Answers, by door and status.")
        for (door, status), count in sorted(self.answers.items()):
            lines.append(
                f"excise_answers_total{labelled({'door': door, 'status': str(status)})} {count}"
            )
        _head(lines, "excise_failures_total", "counter", "What was no success, by kind and phase.")
        for (kind, phase), count in sorted(self.failures.items()):
            lines.append(f"excise_failures_total{labelled({'kind': kind, 'phase': phase})} {count}")
        known: set[str] = set()
        for name, text, labels, value in gauges:
            if name not in known:
                known.add(name)
                _head(lines, name, "counter" if name.endswith("_total") else "gauge", text)
            lines.append(f"{name}{labelled(labels)} {value:.9g}")
        return "\n".join(lines) + "\n"


def labelled(labels: Mapping[str, str], **more: str) -> str:
    """Labels as the text format has them."""
    pairs = {**labels, **more}
    if not pairs:
        return ""
    return "{" + ",".join(f'{name}="{_escaped(value)}"' for name, value in pairs.items()) + "}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")


def _head(lines: list[str], name: str, kind: str, text: str) -> None:
    lines += [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
