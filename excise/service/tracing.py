"""OpenTelemetry spans, out of this process: to the collector that the environment names, as all of their tools have it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from excise.errors import InputError

COLLECTORS = ("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", "OTEL_EXPORTER_OTLP_ENDPOINT")


@contextmanager
def tracing() -> Iterator[None]:
    """Send the spans of the block, where anybody is named to take them. Begin this before the service."""
    named = [name for name in COLLECTORS if os.environ.get(name)]
    if not named:
        yield
        return
    try:
        from opentelemetry import trace
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor
    except ImportError:
        text = f"{named[0]} names a collector, and nothing speaks to it: pip install 'excise[otel]'"
        raise InputError(text) from None
    os.environ.setdefault("OTEL_SERVICE_NAME", "excise")
    provider = TracerProvider()
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    trace.set_tracer_provider(provider)
    try:
        yield
    finally:
        provider.shutdown()
