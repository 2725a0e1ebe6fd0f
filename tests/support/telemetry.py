"""OpenTelemetry's own SDK with exporters in memory: what a program that uses Paddock would get."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager
from typing import Any

from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_ON, Sampler
from opentelemetry.trace import Span

from paddock.otel import OpenTelemetry


class Telemetry:
    """Spans and metrics, kept in memory, and an observer that makes them."""

    def __init__(self, sampler: Sampler = ALWAYS_ON) -> None:
        self._exporter = InMemorySpanExporter()
        self._reader = InMemoryMetricReader()
        # Without what they do at exit: nothing is to be flushed then.
        self._traces = TracerProvider(sampler, shutdown_on_exit=False)
        self._traces.add_span_processor(SimpleSpanProcessor(self._exporter))
        meters = MeterProvider([self._reader], shutdown_on_exit=False)
        self.observer = OpenTelemetry(tracer_provider=self._traces, meter_provider=meters)

    def span(self, name: str) -> AbstractContextManager[Span]:
        """Return a scope that is a span of the program itself."""
        return self._traces.get_tracer("program").start_as_current_span(name)

    def spans(self, name: str) -> list[ReadableSpan]:
        """Return the spans of a name that have ended, the first one first."""
        found = [one for one in self._exporter.get_finished_spans() if one.name == name]
        return sorted(found, key=lambda one: one.start_time or 0)

    def only(self, name: str, **attributes: object) -> ReadableSpan:
        """Return the one span of a name that has these attributes (`path` is `zookeeper.path`)."""
        wanted = {f"zookeeper.{key}": value for key, value in attributes.items()}
        [found] = [one for one in self.spans(name) if wanted.items() <= attributes_of(one).items()]
        return found

    def parent(self, span: ReadableSpan) -> str | None:
        """Return the name of the span that one is a child of."""
        return None if span.parent is None else self._by_id()[span.parent.span_id].name

    def links(self, span: ReadableSpan) -> list[ReadableSpan]:
        """Return the spans that one is linked to."""
        return [self._by_id()[link.context.span_id] for link in span.links]

    def points(self, name: str) -> list[tuple[dict[str, Any], Any]]:
        """Return the attributes and the count of each series of a metric, as of now."""
        data = self._reader.get_metrics_data()
        return [
            (dict(point.attributes or {}), getattr(point, "count", None) or _value(point))
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def counted(self, name: str, attributes: Mapping[str, object]) -> int:
        """Return the sum of a metric over all series that have these attributes."""
        return sum(
            count for found, count in self.points(name) if attributes.items() <= found.items()
        )

    def _by_id(self) -> dict[int, ReadableSpan]:
        spans = self._exporter.get_finished_spans()
        return {one.context.span_id: one for one in spans if one.context is not None}


def _value(point: Any) -> int:
    value: int = getattr(point, "value", 0)
    return value


def attributes_of(span: ReadableSpan) -> dict[str, Any]:
    return dict(span.attributes or {})


def events_of(span: ReadableSpan) -> list[tuple[str, dict[str, Any]]]:
    """Return the names and attributes of a span's events."""
    return [(one.name, dict(one.attributes or {})) for one in span.events]
