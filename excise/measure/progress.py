"""How far a study is: a bar on a terminal, a line now and then elsewhere, and when it will end."""

from __future__ import annotations

import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from typing import Protocol, TextIO

from excise.measure.plan import Slot
from excise.measure.record import TrialRecord

LINE_EVERY_S = 10.0


class Progress(Protocol):
    """Is told what happens; decides nothing."""

    def say(self, text: str) -> None: ...
    def begin(self, slots: Sequence[Slot]) -> None: ...
    def ended(self, record: TrialRecord, seconds: float) -> None: ...
    def finish(self) -> None: ...


class Silent:
    """For programs and tests."""

    def say(self, text: str) -> None: ...
    def begin(self, slots: Sequence[Slot]) -> None: ...
    def ended(self, record: TrialRecord, seconds: float) -> None: ...
    def finish(self) -> None: ...


class Forecast:
    """Seconds still to go: each cell's trials are taken to last as long as those of that cell did."""

    def __init__(self, slots: Sequence[Slot]) -> None:
        self.left: dict[str, int] = defaultdict(int)
        self._workload = {s.cell.name: s.cell.workload for s in slots}
        self._took: dict[str, list[float]] = defaultdict(list)
        for slot in slots:
            self.left[slot.cell.name] += 1

    def ended(self, cell: str, seconds: float) -> None:
        self.left[cell] -= 1
        self._took[cell].append(seconds)

    def seconds(self) -> float | None:
        """None until something has ended that says how long the rest takes."""
        if not self._took:
            return None
        return sum(n * self._one(cell) for cell, n in self.left.items() if n)

    def _one(self, cell: str) -> float:
        if cell in self._took:
            return statistics.fmean(self._took[cell])
        alike = [
            t
            for c, times in self._took.items()
            if self._workload[c] == self._workload[cell]
            for t in times
        ]
        return statistics.fmean(alike or [t for times in self._took.values() for t in times])


class Lines:
    """One line every ten seconds, for logs."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._total = self._done = self._failed = 0
        self._since_s = 0.0
        self._forecast = Forecast(())

    def say(self, text: str) -> None:
        print(text, file=self._stream, flush=True)

    def begin(self, slots: Sequence[Slot]) -> None:
        self._total, self._forecast = len(slots), Forecast(slots)

    def ended(self, record: TrialRecord, seconds: float) -> None:
        self._done += 1
        self._failed += record.outcome != "ok"
        self._forecast.ended(record.cell, seconds)
        self._since_s += seconds
        if self._since_s >= LINE_EVERY_S or self._done == self._total:
            self._since_s = 0.0
            self.say(
                f"{self._done}/{self._total} trials, {self._failed} failed, "
                f"{spoken(self._forecast.seconds())} to go"
            )

    def finish(self) -> None: ...


class Bar:
    """A bar with the cell that ended last and the time to go."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
        from rich.progress import Progress as RichProgress

        self._rich = RichProgress(
            BarColumn(),
            MofNCompleteColumn(),
            TextColumn("{task.fields[to_go]} to go"),
            TextColumn("{task.description}", style="dim"),
            console=Console(stderr=True),
            transient=True,
        )
        self._task = self._rich.add_task("", total=None, to_go="?")
        self._forecast = Forecast(())
        self._failed = 0

    def say(self, text: str) -> None:
        self._rich.console.print(text, highlight=False)

    def begin(self, slots: Sequence[Slot]) -> None:
        self._forecast = Forecast(slots)
        self._rich.update(self._task, total=len(slots))
        self._rich.start()

    def ended(self, record: TrialRecord, seconds: float) -> None:
        self._forecast.ended(record.cell, seconds)
        self._failed += record.outcome != "ok"
        failed = f"  {self._failed} failed" if self._failed else ""
        self._rich.update(
            self._task,
            advance=1,
            to_go=spoken(self._forecast.seconds()),
            description=f"{record.cell}{failed}",
        )

    def finish(self) -> None:
        self._rich.stop()


def for_stream(stream: TextIO) -> Progress:
    """A bar where somebody watches, lines where a file does."""
    return Bar() if stream.isatty() else Lines(stream)


def spoken(seconds: float | None) -> str:
    if seconds is None:
        return "?"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes} min {rest:02} s" if minutes else f"{rest} s"
