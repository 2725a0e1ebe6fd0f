"""A real Prometheus and what we ship for it: each panel has data, each alert fires in its case."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import math
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.support import requests as rq
from tests.support import wire
from tests.support.judges import skipped_where_missing
from tests.support.paddock_cluster import PaddockCluster
from tests.support.paddock_server import PaddockServer
from tests.support.prometheus import Prometheus, promtool
from tests.support.server import Options, free_port

pytestmark = pytest.mark.judge

PACKAGING = Path(__file__).parents[2] / "packaging"
RULES = PACKAGING / "prometheus" / "paddock.rules.yml"
BOARD = json.loads((PACKAGING / "grafana" / "paddock.json").read_text())
GROUPS = yaml.safe_load(RULES.read_text())["groups"]
ALERTS = {rule["alert"]: rule for group in GROUPS for rule in group["rules"]}
DEADLINE_S = 60.0

# What Grafana puts in for its variables.
_VARIABLES = {"$__rate_interval": "1m", "$job": ".*", "$instance": ".*"}


def test_promtool_accepts_the_rules() -> None:
    with skipped_where_missing():
        checked = promtool("check", "rules", RULES)
    assert checked.returncode == 0, checked.stdout + checked.stderr


A = 'job="paddock", instance="a:7000"'
B = 'job="paddock", instance="b:7000"'


def histogram(name: str, slow_from: str, slow: int) -> dict[str, str]:
    """Return ten observations in each interval, so many of them slower than a bound."""
    return {
        f'{name}_bucket{{{A}, le="0.001"}}': f"0+{10 - slow}x30",
        f'{name}_bucket{{{A}, le="{slow_from}"}}': f"0+{10 - slow}x30",
        f'{name}_bucket{{{A}, le="10"}}': "0+10x30",
        f'{name}_bucket{{{A}, le="+Inf"}}': "0+10x30",
    }


# The series of each case, a value for each half minute; when the alert does not fire yet, and when
# it does, in half minutes.
CASES: dict[str, tuple[dict[str, str], int, int]] = {
    "PaddockDown": ({f"up{{{A}}}": "1 1 0x20"}, 3, 5),
    "PaddockNotReady": ({f"paddock_ready{{{A}}}": "1 1 0x20"}, 3, 5),
    "PaddockRestartsOften": ({f"uptime{{{A}}}": "900 950 5 90 5 90 5 90"}, 5, 6),
    "PaddockSlowSyncs": (histogram("paddock_sync_seconds", "0.1", 1), 9, 13),
    "PaddockSlowWrites": (histogram("paddock_write_latency_seconds", "0.5", 1), 9, 13),
    "PaddockSlowReads": (histogram("paddock_read_latency_seconds", "0.1", 1), 9, 13),
    "PaddockWritesPileUp": ({f"outstanding_requests{{{A}}}": "0 0 5001x20"}, 3, 5),
    "PaddockConnectionsRefused": ({f"connection_rejected{{{A}}}": "0 0 0 1x20"}, 2, 4),
    "PaddockSessionsExpire": ({f"stale_sessions_expired{{{A}}}": "0 5 5 10 20x20"}, 3, 5),
    "PaddockFileDescriptors": (
        {
            f"open_file_descriptor_count{{{A}}}": "10 850x20",
            f"max_file_descriptor_count{{{A}}}": "1000x20",
        },
        10,
        12,
    ),
    "PaddockManyWatches": ({f"watch_count{{{A}}}": "0 1600000x20"}, 10, 12),
    "PaddockNoLeader": (
        {
            f"quorum_size{{{A}}}": "2x20",
            f'paddock_server_state{{{A}, state="leader"}}': "1 1 0x20",
            f'paddock_server_state{{{B}, state="leader"}}': "0x20",
        },
        3,
        5,
    ),
    "PaddockMemberMissing": (
        {
            f"quorum_size{{{A}}}": "2 2 1x20",
            f"up{{{A}}}": "1x20",
            f"up{{{B}}}": "1 1 0x20",
        },
        3,
        5,
    ),
    "PaddockMemberBehind": (
        {f"followers{{{A}}}": "2x20", f"synced_followers{{{A}}}": "2 2 1x20"},
        3,
        5,
    ),
    "PaddockLag": ({f"cluster_log_lag{{{A}}}": "0 0 1001x20"}, 3, 5),
    "PaddockLeaseNearlyOver": (
        {f"cluster_lease_left_ms{{{A}}}": "9000 9000 1400x20", f"cluster_member{{{A}}}": "1x20"},
        2,
        3,
    ),
    "PaddockWritesRefused": ({f"cluster_writes_refused{{{A}}}": "0 0 1x20"}, 1, 2),
    "PaddockStatesDiffer": ({f"cluster_states_differ{{{A}}}": "0 0 1x20"}, 1, 2),
    "PaddockEtcdFills": (
        {
            f"cluster_etcd_database_bytes{{{A}}}": "10 10 71x20",
            f"cluster_etcd_used_bytes{{{A}}}": "10x20",
            f"cluster_etcd_quota_bytes{{{A}}}": "100x20",
        },
        11,
        13,
    ),
    "PaddockEtcdErrors": ({f"cluster_log_errors{{{A}}}": "0 0 5 15x20"}, 2, 4),
}

HEALTHY: dict[str, str] = {
    **{f"up{{{one}}}": "1x30" for one in (A, B)},
    **{f"paddock_ready{{{one}}}": "1x30" for one in (A, B)},
    **{f"quorum_size{{{one}}}": "2x30" for one in (A, B)},
    f'paddock_server_state{{{A}, state="leader"}}': "1x30",
    f'paddock_server_state{{{B}, state="leader"}}': "0x30",
    f"uptime{{{A}}}": "1000+30000x30",
    f"outstanding_requests{{{A}}}": "100x30",
    f"connection_rejected{{{A}}}": "7x30",
    f"stale_sessions_expired{{{A}}}": "0x20 1x20",
    f"open_file_descriptor_count{{{A}}}": "100x30",
    f"max_file_descriptor_count{{{A}}}": "1000x30",
    f"watch_count{{{A}}}": "1000000x30",
    f"followers{{{A}}}": "1x30",
    f"synced_followers{{{A}}}": "1x30",
    f"cluster_log_lag{{{A}}}": "10x30",
    f"cluster_lease_left_ms{{{A}}}": "9000x30",
    f"cluster_member{{{A}}}": "1x30",
    f"cluster_writes_refused{{{A}}}": "0x30",
    f"cluster_states_differ{{{A}}}": "0x30",
    f"cluster_etcd_database_bytes{{{A}}}": "60x30",
    f"cluster_etcd_used_bytes{{{A}}}": "40x30",
    f"cluster_etcd_quota_bytes{{{A}}}": "100x30",
    f"cluster_log_errors{{{A}}}": "5x30",
    **histogram("paddock_sync_seconds", "0.1", 0),
    **histogram("paddock_write_latency_seconds", "0.5", 0),
    **histogram("paddock_read_latency_seconds", "0.1", 0),
}


def rule_case(series: dict[str, str], expected: list[tuple[str, int, int]]) -> dict[str, Any]:
    """Return a case of promtool: the number of alerts of a name at some half minutes."""
    return {
        "interval": "30s",
        "input_series": [{"series": name, "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {
                "expr": f'count(ALERTS{{alertname=~"{name}", alertstate="firing"}})',
                "eval_time": f"{30 * at}s",
                "exp_samples": [{"labels": "{}", "value": count}] if count else [],
            }
            for name, at, count in expected
        ],
    }


def test_each_alert_fires_in_its_case_and_none_on_a_healthy_service(tmp_path: Path) -> None:
    assert CASES.keys() == ALERTS.keys()
    tests = [rule_case(HEALTHY, [(".+", at, 0) for at in (1, 10, 29)])]
    tests += [
        rule_case(series, [(name, quiet, 0), (name, firing, 1)])
        for name, (series, quiet, firing) in CASES.items()
    ]
    file = tmp_path / "cases.yml"
    file.write_text(
        json.dumps({"rule_files": [str(RULES)], "evaluation_interval": "30s", "tests": tests})
    )
    with skipped_where_missing():
        tested = promtool("test", "rules", file)
    assert tested.returncode == 0, tested.stdout + tested.stderr


class Staged:
    """A server, a cluster of two, and a Prometheus that scrapes them."""

    def __init__(
        self, alone: PaddockServer, cluster: PaddockCluster, prometheus: Prometheus
    ) -> None:
        self.alone = alone
        self.cluster = cluster
        self.prometheus = prometheus

    def work(self) -> None:
        """Do a little of everything."""
        for server in (self.alone, *self.cluster.members):
            with wire.connect(server.address) as client:
                client.call(rq.create("/work", b"x"))
                client.messages(rq.get_data("/work", watch=True), *[rq.get_data("/work")] * 80)
                client.messages(rq.set_data("/work", b"y"), rq.get_children("/"))
                client.close()


@pytest.fixture(scope="module")
def staged() -> Iterator[Staged]:
    with contextlib.ExitStack() as stack:
        stack.enter_context(skipped_where_missing())
        cluster = PaddockCluster(size=2)
        targets = {"paddock": [], "alone": []}  # type: dict[str, list[str]]
        for member in cluster.members:
            member.options = with_metrics(member.options, targets["paddock"])
        stack.enter_context(cluster)
        # A snapshot is soon due.
        options = with_metrics(Options(extra=(("snapCount", "2"),)), targets["alone"])
        alone = stack.enter_context(PaddockServer(options))
        # As shipped, but they wait for nothing.
        rules = json.loads(json.dumps({"groups": GROUPS}))
        for group in rules["groups"]:
            for rule in group["rules"]:
                rule.pop("for", None)
        yield Staged(alone, cluster, stack.enter_context(Prometheus(targets, rules)))


def with_metrics(options: Options, targets: list[str]) -> Options:
    """Return options with a port for metrics, which is added to the targets."""
    port = str(free_port())
    targets.append(f"127.0.0.1:{port}")
    keys = (("metricsProvider.httpPort", port), ("maxClientCnxns", "10"))
    return dataclasses.replace(options, extra=(*options.extra, *keys))


def expressions() -> dict[str, str]:
    """Return the query of each target of each panel, by a name of its own."""
    return {
        f"{panel['title']} {target['refId']}": target["expr"]
        for panel in BOARD["panels"]
        for target in panel.get("targets", [])
    }


@pytest.mark.cluster
def test_every_panel_has_data(staged: Staged) -> None:
    missing = expressions()
    assert len(missing) > 30
    limit = time.monotonic() + DEADLINE_S
    while missing and time.monotonic() < limit:
        staged.work()
        for title, expression in list(missing.items()):
            for variable, value in _VARIABLES.items():
                expression = expression.replace(variable, value)
            found = staged.prometheus.query(expression)
            if any(math.isfinite(float(one["value"][1])) for one in found):
                del missing[title]
    assert not missing
    # On a slow machine a server may have been without a leader for a while.
    unwanted = {"PaddockDown", "PaddockNotReady", "PaddockNoLeader"}
    while unwanted & staged.prometheus.firing() and time.monotonic() < limit:
        staged.work()
    assert not unwanted & staged.prometheus.firing()


@pytest.mark.cluster
def test_alerts_fire_when_a_server_is_killed_and_connections_are_refused(staged: Staged) -> None:
    leader = staged.cluster.leader()
    other = next(one for one in staged.cluster.members if one is not leader)
    with contextlib.ExitStack() as stack:
        for _ in range(12):
            with contextlib.suppress(OSError, wire.ConnectionClosedError):
                stack.enter_context(wire.connect(other.address))
    leader.kill()
    expected = {"PaddockDown", "PaddockNoLeader", "PaddockConnectionsRefused"}
    seen: set[str] = set()
    limit = time.monotonic() + DEADLINE_S
    while not expected <= seen and time.monotonic() < limit:
        seen |= staged.prometheus.firing()
    assert expected <= seen


def test_every_metric_that_is_asked_for_is_known() -> None:
    """A name that is spelled wrong would give an alert that never fires."""
    from paddock.server.admin.metric_texts import TEXTS

    known = {*TEXTS, "up", "process_cpu_seconds_total", "process_resident_memory_bytes"}
    every = [*expressions().values(), *(str(rule["expr"]) for rule in ALERTS.values())]
    for expression in every:
        plain = re.sub(
            r"\{[^}]*\}|\[[^]]*\]|\((le, )?(job|instance|event|operation)[^)]*\)", "", expression
        )
        for name in re.findall(r"[a-z_]{4,}", plain):
            base = re.sub(r"_(bucket|sum|count)$", "", name)
            assert {name, base} & {*known, *_FUNCTIONS}, (name, expression)


_FUNCTIONS = {"histogram_quantile", "rate", "increase", "resets", "count", "unless"}
