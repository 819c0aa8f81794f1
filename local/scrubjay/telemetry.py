"""OpenTelemetry, where it is installed (`scrubjay[telemetry]`) and the environment names a collector.

Only that: which collector, which headers and how much is sampled is set by OpenTelemetry's own variables, as for every
other program. What is sent are spans of `scrubjay.tracing`: ids, names of operations, times. No text of a memory, no
question.
"""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from scrubjay.policy import TracePolicy
from scrubjay.tracing import Span, Tracer
from scrubjay.version import __version__

log = logging.getLogger(__name__)

ENDPOINTS = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT")
EXTRA = "pip install 'scrubjay[telemetry]'"


def is_wanted(environ: Mapping[str, str] = os.environ) -> bool:
    """Say whether the environment names a collector, and does not switch OpenTelemetry off."""
    return any(environ.get(name) for name in ENDPOINTS) and environ.get("OTEL_SDK_DISABLED", "").lower() != "true"


def exporter(processor: Any = None) -> tuple[Callable[[Span], None], Callable[[], None]]:
    """Return what tells OpenTelemetry of a span, and what ends it. Raises ImportError without the extra.

    `processor` is a span processor in the place of the one that sends to the collector.
    """
    from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415  # an extra
    from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
    from opentelemetry.sdk.trace import TracerProvider  # noqa: PLC0415
    from opentelemetry.sdk.trace.export import BatchSpanProcessor  # noqa: PLC0415
    from opentelemetry.trace import StatusCode  # noqa: PLC0415

    provider = TracerProvider(resource=Resource.create({"service.name": "scrubjay", "service.version": __version__}))
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()) if processor is None else processor)
    tracer = provider.get_tracer("scrubjay", __version__)

    def tell(span: Span) -> None:
        began = int(span.at) * 1_000_000
        told = tracer.start_span(f"scrubjay.{span.stage}", start_time=began)
        told.set_attributes(
            {
                f"scrubjay.{key}": value
                for key, value in (
                    ("request", span.request),
                    ("name", span.name),
                    ("session", span.session),
                    ("cause", span.cause),
                    ("ids", span.ids),
                    ("count", span.count),
                )
                if value
            }
        )
        if span.model:  # OpenTelemetry's own names for a call of a model
            told.set_attributes(
                {
                    "gen_ai.request.model": span.model,
                    "gen_ai.usage.input_tokens": span.input_tokens,
                    "gen_ai.usage.output_tokens": span.output_tokens,
                }
            )
        if span.error is not None:
            told.set_status(StatusCode.ERROR, span.error)
        told.end(began + int(span.ms * 1_000_000))

    return tell, provider.shutdown


def tracer(store: Path, policy: TracePolicy) -> tuple[Tracer, Callable[[], None]]:
    """Return the tracer of a store, which tells OpenTelemetry where that is wanted and there; and what ends both."""
    path = store.with_name("trace.jsonl")
    export, end = None, None
    if is_wanted():
        try:
            export, end = exporter()
        except ImportError:
            log.warning("the environment names a collector, and OpenTelemetry is not installed: %s", EXTRA)
    made = Tracer(path, policy, export=export)

    def close() -> None:
        made.close()
        if end is not None:
            end()

    return made, close
