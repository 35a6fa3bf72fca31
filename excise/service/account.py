"""What is kept of each request: its time and outcome in the metrics, a line in the log, a span where somebody traces."""

from __future__ import annotations

import logging
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from typing import TYPE_CHECKING

from excise.service.log import LOGGER, REQUEST
from excise.service.metrics import Metrics
from excise.service.problems import Fault, Problem

if TYPE_CHECKING:
    from opentelemetry.trace import Tracer


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
    """OpenTelemetry spans, where its API is installed and somebody has set it up before; else nothing at all."""

    def __init__(self) -> None:
        self._tracer = _tracer()

    def span(self, name: str, request: str) -> AbstractContextManager[None]:
        """One request's span, with its id; and the id for whatever is logged meanwhile."""
        if self._tracer is None:
            return _Named(request)
        return self._traced(self._tracer, name, request)

    @contextmanager
    def _traced(self, tracer: Tracer, name: str, request: str) -> Iterator[None]:
        with _Named(request), tracer.start_as_current_span(name) as span:
            span.set_attribute("excise.request_id", request)
            yield


class _Named:
    """What is logged meanwhile has the request's id. No generator: it is entered for every action."""

    __slots__ = ("_request", "_token")

    def __init__(self, request: str) -> None:
        self._request = request

    def __enter__(self) -> None:
        self._token = REQUEST.set(self._request)

    def __exit__(self, *exc: object) -> None:
        REQUEST.reset(self._token)


def _tracer() -> Tracer | None:
    try:
        from opentelemetry import trace
    except ImportError:
        return None
    if isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider):
        return None  # nobody has set anything up, and spans for nobody cost a tenth of an action
    return trace.get_tracer("excise.service")
