"""The metrics of a server in Prometheus' text format.

Whatever `mntr` has is here, under the name that Apache ZooKeeper's Prometheus provider has for it:
without `zk_`, and a summary as `X_count`, `X_sum` and `X{quantile="…"}` in place of its five rows.
What only this server has, or Apache's has in no usable form, begins with `paddock_`. The rules:

* The counters are read when Prometheus asks. Nothing here is on the path of a request.
* Quantiles are those of the last ten minutes, as upstream, as exact as the buckets are.
* Upstream's names are kept, so the format is always the text format: OpenMetrics would have every
  counter end with `_total`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import accumulate
from typing import Final

from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.gc_collector import GCCollector
from prometheus_client.metrics_core import (
    CounterMetricFamily,
    GaugeMetricFamily,
    HistogramMetricFamily,
    Metric,
    SummaryMetricFamily,
)
from prometheus_client.platform_collector import PlatformCollector
from prometheus_client.process_collector import ProcessCollector
from prometheus_client.registry import Collector

from paddock.protocol import operations
from paddock.server.admin.metric_texts import COUNTER, GAUGE, TEXTS, MetricText
from paddock.server.admin.metrics import PERCENTILES, STATES, VERSION, Metrics
from paddock.server.admin.quantiles import quantile_of
from paddock.server.statistics import Histogram

CONTENT_TYPE: Final = "text/plain; version=0.0.4; charset=utf-8"

_QUANTILES: Final = (0.5, 0.9, 0.99)
# What the rows of a summary begin with in `mntr`.
_ROWS: Final = ("avg", "min", "max", "cnt", "sum", *PERCENTILES)


class Exposition(Collector):
    """The metrics of one server; `pieces` is the page."""

    def __init__(
        self, metrics: Metrics, is_ready: Callable[[], bool], *, with_process: bool = True
    ) -> None:
        self._metrics = metrics
        self._is_ready = is_ready
        self._registry = CollectorRegistry()
        self._registry.register(self)
        if with_process:
            ProcessCollector(registry=self._registry)
            PlatformCollector(registry=self._registry)
            GCCollector(registry=self._registry)

    def pieces(self) -> Iterator[bytes]:
        """Yield the page, a metric at a time: other callbacks run in between."""
        for metric in self._registry.collect():
            yield generate_latest(_Alone(metric))

    def describe(self) -> list[Metric]:
        """Return nothing: names are known when the counters are read."""
        return []

    def collect(self) -> Iterator[Metric]:
        """Yield all metrics as they are now."""
        rows = self._metrics.monitor()
        summaries = {name.removeprefix("cnt_") for name in rows if name.startswith("cnt_")}
        yield from self._about()
        for name, value in rows.items():
            part, _, whole = name.partition("_")
            is_part = part in _ROWS and whole in summaries
            if not is_part and not isinstance(value, str):
                yield _single(name, value)
        histograms = self._metrics.histograms()
        for name in sorted(summaries):
            yield self._summary(
                name, int(rows[f"cnt_{name}"]), float(rows[f"sum_{name}"]), histograms.get(name)
            )
        for name, source, unit in (
            ("paddock_read_latency_seconds", "readlatency", 0.001),
            ("paddock_write_latency_seconds", "updatelatency", 0.001),
            ("paddock_sync_seconds", "fsynctime", 0.001),
            ("paddock_batch_writes", "sync_processor_batch_size", 1.0),
        ):
            family = HistogramMetricFamily(name, TEXTS[name].text)
            family.add_metric([], *_buckets(histograms[source], unit))
            yield family
        family = HistogramMetricFamily(
            "paddock_watch_fanout", TEXTS["paddock_watch_fanout"].text, labels=["event"]
        )
        for event in ("created", "deleted", "changed", "children"):
            family.add_metric([event], *_buckets(histograms[f"node_{event}_watch_count"], 1.0))
        yield family
        yield self._operations()

    def _about(self) -> Iterator[Metric]:
        build = self._metrics.environment()["paddock.build"]
        labels = ["version", "build"]
        about = GaugeMetricFamily("paddock_info", TEXTS["paddock_info"].text, labels=labels)
        about.add_metric([VERSION, build], 1)
        yield about
        state = GaugeMetricFamily(
            "paddock_server_state", TEXTS["paddock_server_state"].text, labels=["state"]
        )
        mode = self._metrics.mode()
        for one in STATES:
            state.add_metric([one], one == mode)
        yield state
        yield GaugeMetricFamily("paddock_ready", TEXTS["paddock_ready"].text, self._is_ready())

    def _operations(self) -> Metric:
        counts = self._metrics.service.operations
        name = "paddock_operations"
        family = CounterMetricFamily(name, TEXTS[f"{name}_total"].text, labels=["operation"])
        by_name: dict[str, int] = {}
        for number, row in operations.BY_NUMBER.items():
            by_name[row.name] = by_name.get(row.name, 0) + counts.of(number)
        for operation, count in sorted(by_name.items()):
            family.add_metric([operation], count)
        return family

    def _summary(self, name: str, count: int, total: float, source: Histogram | None) -> Metric:
        text = TEXTS.get(name)
        family = SummaryMetricFamily(name, "" if text is None else text.text)
        if source is not None:
            recent = self._metrics.recent(name, source)
            for quantile in _QUANTILES:
                found = quantile_of(quantile, source.bounds, recent)
                family.add_sample(name, {"quantile": str(quantile)}, found)
            # The exact one: the row of `mntr` is a whole number.
            total = source.total
        family.add_metric([], count, total)
        return family


class _Alone(Collector):
    """One metric that was read already."""

    def __init__(self, metric: Metric) -> None:
        self._metric = metric

    def collect(self) -> list[Metric]:
        return [self._metric]


def _buckets(source: Histogram, unit: float) -> tuple[list[tuple[str, float]], float]:
    """Return the buckets of a histogram as Prometheus has them, each with those before it."""
    # Rounded: 25 times 0.001 would have many digits.
    bounds = [str(round(bound * unit, 9)) for bound in source.bounds]
    totals = accumulate(source.buckets())
    return list(zip([*bounds, "+Inf"], totals, strict=True)), source.total * unit


def _single(name: str, value: float) -> Metric:
    kind, text = TEXTS.get(name, MetricText(GAUGE, ""))
    family = Metric(name, text, "unknown" if kind == COUNTER else GAUGE)
    family.add_sample(name, {}, value)
    return family
