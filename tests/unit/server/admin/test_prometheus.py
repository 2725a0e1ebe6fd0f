"""The page for Prometheus: upstream's names, whatever `mntr` has, and quantiles of lately."""

from __future__ import annotations

import asyncio
import math

from prometheus_client.parser import text_string_to_metric_families

from paddock.server.admin.metric_texts import OF_EACH, TEXTS
from paddock.server.admin.metrics import Metrics
from paddock.server.admin.prometheus import Exposition
from paddock.testing.virtual import in_virtual_time
from tests.support import requests as rq
from tests.unit.server.cluster.stage import staged
from tests.unit.server.harness import Harness, run, with_node

Samples = dict[tuple[str, frozenset[tuple[str, str]]], float]


def metrics_of(harness: Harness) -> Metrics:
    return Metrics(harness.service, None, 2181, asyncio.get_running_loop().time)


def exposition_of(metrics: Metrics, *, with_process: bool = False) -> Exposition:
    return Exposition(metrics, lambda: True, with_process=with_process)


def page(exposition: Exposition) -> str:
    return b"".join(exposition.pieces()).decode()


def samples(text: str) -> Samples:
    return {
        (sample.name, frozenset(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(text)
        for sample in family.samples
    }


def value(found: Samples, name: str, **labels: str) -> float:
    return found[name, frozenset(labels.items())]


def test_whatever_mntr_has_is_there_under_upstreams_name() -> None:
    async def scenario() -> None:
        metrics = metrics_of(Harness())
        rows = metrics.monitor()
        found = samples(page(exposition_of(metrics)))
        summaries = {name[4:] for name in rows if name.startswith("cnt_")}
        assert {"fsynctime", "updatelatency", "readlatency", "dbinittime"} <= summaries
        for name, row in rows.items():
            if isinstance(row, str):
                continue
            part, _, whole = name.partition("_")
            if whole in summaries:
                # Percentiles are labels there.
                assert (name, frozenset()) not in found
                name = {"cnt": f"{whole}_count", "sum": f"{whole}_sum"}.get(part, "")
            if name:
                assert value(found, name) >= 0, name

    run(scenario)


def test_a_row_that_is_new_comes_along() -> None:
    async def scenario() -> None:
        metrics = metrics_of(Harness())
        rows = {**metrics.monitor(), "feeds_waiting": 3, "cnt_new": 2, "sum_new": 9}
        metrics.monitor = lambda: rows  # type: ignore[method-assign]
        found = samples(page(exposition_of(metrics)))
        assert value(found, "feeds_waiting") == 3
        assert (value(found, "new_count"), value(found, "new_sum")) == (2, 9)

    run(scenario)


def test_every_metric_has_a_sentence_and_every_sentence_a_metric() -> None:
    async def scenario() -> None:
        text = page(exposition_of(metrics_of(Harness())))
        families = {family.name: family for family in text_string_to_metric_families(text)}
        # The parser takes the end from the name of a counter.
        names = {name + "_total" if name == "paddock_operations" else name for name in families}
        assert names == OF_EACH.keys()
        assert all(family.documentation for family in families.values())

    run(scenario)


@in_virtual_time
async def test_every_metric_of_several_servers_has_a_sentence_and_every_sentence_a_metric() -> None:
    async with staged() as stage:
        for name in "ab":
            await stage.start(name)
        await stage.settle()
        core = stage.core(stage.servers["a"])
        metrics = Metrics(core, None, 2181, asyncio.get_running_loop().time)
        names = {
            line.split()[2] for line in page(exposition_of(metrics)).splitlines() if "#" in line
        }
        assert names == TEXTS.keys()
        states = samples(page(exposition_of(metrics)))
        assert value(states, "paddock_server_state", state="leader") == 1
        assert value(states, "paddock_server_state", state="follower") == 0


def test_operations_and_histograms_are_counted() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = await with_node(harness, "/a", b"")
        client.send(rq.get_data("/a", watch=True))
        client.send(rq.set_data("/a", b"x"))
        await harness.settle()
        found = samples(page(exposition_of(metrics_of(harness))))
        for operation, times in {"get": 1, "set": 1, "create": 1, "delete": 0}.items():
            assert value(found, "paddock_operations_total", operation=operation) == times
        writes = harness.service.statistics.latency_ms.count
        assert value(found, "paddock_write_latency_seconds_count") == writes == 3
        assert value(found, "paddock_write_latency_seconds_bucket", le="+Inf") == writes
        assert value(found, "paddock_batch_writes_bucket", le="1.0") == 3
        assert value(found, "paddock_watch_fanout_count", event="changed") == 1
        assert value(found, "paddock_watch_fanout_bucket", event="changed", le="1.0") == 1
        assert value(found, "node_changed_watch_count_sum") == 1
        assert value(found, "paddock_ready") == 1

    run(scenario)


def test_the_process_is_there_if_it_is_wanted() -> None:
    async def scenario() -> None:
        metrics = metrics_of(Harness())
        name = "process_resident_memory_bytes"
        assert value(samples(page(exposition_of(metrics, with_process=True))), name) > 0
        assert name not in page(exposition_of(metrics))

    run(scenario)


def test_quantiles_are_those_of_the_last_ten_minutes() -> None:
    async def scenario() -> None:
        harness = Harness()
        exposition = exposition_of(metrics_of(harness))
        latency = harness.service.statistics.latency_ms

        def median() -> float:
            return value(samples(page(exposition)), "updatelatency", quantile="0.5")

        assert math.isnan(median())
        latency.add(40.0, 1_000)
        assert 25.0 < median() <= 50.0
        for _ in range(10):
            await asyncio.sleep(70.0)
            median()
        latency.add(2.0, 10)
        # The slow ones are older than that.
        assert 1.0 < median() <= 2.5
        harness.service.statistics.reset()
        harness.service.statistics.latency_ms.add(0.2, 5)
        assert 0.1 < median() <= 0.25

    run(scenario)
