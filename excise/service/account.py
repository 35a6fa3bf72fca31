"""What is kept of each request: its time and outcome in the metrics, a line in the log, a span where somebody traces."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType

from excise.service.log import LOGGER, REQUEST
from excise.service.metrics import Metrics
from excise.service.problems import Fault, Problem


class Account:
    """Of one request, from its head to its answer."""

    __slots__ = ("_begun_ns", "_door", "_metrics", "_problem", "_what")

    def __init__(self, metrics: Metrics, door: str, what: str) -> None:
        self._metrics = metrics
        self._door = door
        self._what = what
        self._problem: Problem | None = None
        self._begun_ns = time.perf_counter_ns()

    def went_wrong(self, problem: Problem, error: BaseException | None) -> None:
        """It was refused, or it failed; what nobody foresaw is logged with all there is to know."""
        self._problem = problem
        self._metrics.failed(problem.kind, problem.phase)
        if problem.kind == "internal":
            LOGGER.error("failed", exc_info=error, extra={"asked": self._what})

    def answered(self, status: int, door: str | None = None) -> None:
        """It is over."""
        took_ns = time.perf_counter_ns() - self._begun_ns
        self._metrics.answered(door or self._door, status, took_ns)
        problem = self._problem
        infrastructure = problem is not None and problem.fault is Fault.INFRASTRUCTURE
        level = logging.WARNING if infrastructure and status >= 500 else logging.DEBUG
        if not LOGGER.isEnabledFor(level):
            return
        told: dict[str, object] = {"asked": self._what, "status": status, "ms": took_ns / 1e6}
        if problem is not None:
            told |= {"kind": problem.kind, "why": problem.message, "phase": problem.phase}
        LOGGER.log(level, "answered", extra=told)


class Spans:
    """OpenTelemetry spans, where its API is installed and somebody has set it up; else nothing at all."""

    def __init__(self, *, on: bool = True) -> None:
        self._tracer = None
        trace = _opentelemetry() if on else None
        if trace is not None:
            self._tracer = trace.get_tracer("excise.service")

    @contextmanager
    def span(self, name: str, request: str) -> Iterator[None]:
        """One request's span, with its id; and the id for whatever is logged meanwhile."""
        token = REQUEST.set(request)
        try:
            if self._tracer is None:
                yield
            else:
                with self._tracer.start_as_current_span(name) as span:
                    span.set_attribute("excise.request_id", request)
                    yield
        finally:
            REQUEST.reset(token)


def _opentelemetry() -> ModuleType | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    return trace
