"""Figures over time, several servers as one, and the rules for problems."""

from typing import Any

import pytest

from paddock.dashboard import figures
from paddock.dashboard.figures import (
    Series,
    problems_of,
    server_fields,
    sync_ms,
    values_of,
    whitelist,
)
from paddock.monitor import Figures

HOUR_MS = 3600 * 1000
NOW_MS = 1_800_000_000_000


def server(name: str = "one:2181", **fields: Any) -> Figures:
    return Figures(name, **fields)


def found(**given: Any) -> list[dict[str, Any]]:
    one: dict[str, Any] = {"servers": [], "series": {}, "quotas": [], "recipes": []}
    return [*problems_of(**{**one, **given}, now_ms=NOW_MS).values()]


def series(*points: tuple[int, float]) -> Series:
    one = Series()
    for at, value in points:
        one.add(at, value)
    return one


def test_a_series_has_seconds_of_five_minutes_and_tens_of_seconds_of_an_hour() -> None:
    one = series(*((NOW_MS + 1000 * second, float(second)) for second in range(4000)))
    points = one.points()
    times = [at for at, _ in points]
    assert times == sorted(times)
    assert points[-1] == [NOW_MS + 3_999_000, 3999.0]
    assert len([at for at in times if at > times[-1] - 300_000]) == 300
    # The mean of ten of them.
    assert points[1][0] - points[0][0] == 10_000
    assert points[0][1] == (points[0][0] - NOW_MS) / 1000 + 4.5
    assert HOUR_MS - 20_000 <= times[-1] - times[0] <= HOUR_MS + 20_000
    assert one.last() == [points[-1]]
    assert Series().points() == Series().last() == []


def test_several_servers_are_one() -> None:
    servers = [
        server("one", requests_per_s=10.0, clients=2, sessions=3, nodes=7, latency_avg_ms=1.0),
        server("two", requests_per_s=5.0, clients=1, sessions=2, nodes=8, latency_avg_ms=9.0),
        server("gone", problem="no answer"),
    ]
    assert values_of(servers, {}) == {
        "requests_per_second": 15.0,
        "latency_avg_ms": 9.0,
        "connections": 3,
        "sessions": 3,
        "nodes": 8,
    }


def test_percentiles_are_shown_if_the_server_has_them() -> None:
    details = {"zk_p50_readlatency": "1", "zk_p99_readlatency": "7.5", "zk_p99_updatelatency": "?"}
    assert values_of([server(details=details)], {}) == {
        "latency_p50_ms": 1.0,
        "latency_p99_ms": 7.5,
    }


def test_the_time_of_a_sync_is_that_of_those_since_the_last_look() -> None:
    def syncs(count: int, total: int) -> Figures:
        return server(details={"zk_cnt_fsynctime": str(count), "zk_sum_fsynctime": str(total)})

    assert sync_ms(syncs(30, 100), syncs(20, 50)) == 5.0
    # The first look: since the start.
    assert sync_ms(syncs(20, 50), None) == 2.5
    assert sync_ms(syncs(0, 0), None) is None
    # None since then; after a restart; a server that does not tell.
    assert sync_ms(syncs(20, 50), syncs(20, 50)) is None
    assert sync_ms(syncs(2, 5), syncs(20, 50)) is None
    assert sync_ms(server(), syncs(20, 50)) is None


def test_a_server_is_behind_the_newest_one() -> None:
    servers = [server("one", zxid="0x20"), server("two", zxid="0x10"), server("three", zxid="?")]
    assert [one["lag"] for one in server_fields(servers)] == [0, 16, None]


def test_a_server_that_is_away_is_bad_and_stands_first() -> None:
    servers = [
        server("one", zxid="0x100000"),
        server("two", zxid="0x1"),
        server("three", problem="no answer within 5 s"),
    ]
    problems = found(servers=servers)
    assert [(one["severity"], one["what"]) for one in problems] == [
        ("bad", "three is away: no answer within 5 s."),
        ("warn", "two is 1,048,575 transactions behind."),
    ]


def test_a_slow_disk_is_told() -> None:
    slow = {"sync_avg_ms": series(*((NOW_MS + n, 250.0) for n in range(10)))}
    assert found(series=slow)[0]["what"] == "The disk is slow: a sync takes up to 250 ms."
    one_of_ten = [10.0] * 9 + [250.0]
    calm = {"sync_avg_ms": series(*((NOW_MS + n, one) for n, one in enumerate(one_of_ten)))}
    assert found(series=calm) == []


@pytest.mark.parametrize(
    ("before", "now", "age_s", "is_leak"),
    [
        (10_000, 20_000, 1900, True),
        # Not twice as many, few, or not known for long enough.
        (10_000, 19_000, 1900, False),
        (100, 9_000, 1900, False),
        (10_000, 20_000, 1700, False),
    ],
)
def test_watches_that_grow_are_told(before: int, now: int, age_s: int, is_leak: bool) -> None:
    points = [(NOW_MS - age_s * 1000 + n * 1000, float(before)) for n in range(age_s)]
    watches = series(*points, (NOW_MS, float(now)))
    assert bool(found(series={"watches": watches})) == is_leak


def test_a_quota_is_told_when_it_is_nearly_reached() -> None:
    def quota(nodes: int | None, limit: int | None) -> dict[str, Any]:
        return {
            "path": "/app",
            "nodes": nodes,
            "nodes_limit": limit,
            "bytes": None,
            "bytes_limit": None,
        }

    assert found(quotas=[quota(89, 100), quota(None, 100), quota(50, None)]) == []
    [nearly] = found(quotas=[quota(90, 100)])
    assert (nearly["severity"], nearly["link"]) == ("warn", "/app")
    assert nearly["what"] == "The quota of /app is nearly reached: 90 of 100 nodes."
    assert found(quotas=[quota(100, 100)])[0]["severity"] == "bad"


def test_a_lock_that_others_wait_for_is_told_after_an_hour() -> None:
    def lock(held_ms: int, waiters: int) -> dict[str, Any]:
        return {
            "kind": "lock",
            "path": "/locks/a",
            "holders": [{"since_ms": NOW_MS - held_ms}],
            "waiters": [{}] * waiters,
        }

    assert found(recipes=[lock(HOUR_MS, 0), lock(HOUR_MS - 1, 1)]) == []
    [held] = found(recipes=[lock(3 * HOUR_MS // 2, 1)])
    assert (held["what"], held["link"]) == ("/locks/a is held for 1.5 h.", "/locks/a")


def test_a_deadlock_is_bad() -> None:
    [problem] = found(recipes=[{"deadlocks": [["0x1", "0x2"]]}])
    assert problem["severity"] == "bad"
    assert problem["what"] == "2 sessions wait for each other: 0x1, 0x2."


def test_what_to_set_is_said() -> None:
    assert "4lw.commands.whitelist=srvr,mntr` " in whitelist("mntr")
    assert figures.LOOK_SECONDS < figures.IDLE_SECONDS
