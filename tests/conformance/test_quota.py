"""Quotas: the statistics that the server keeps below /zookeeper/quota; nothing is enforced here."""

from __future__ import annotations

import pytest

from tests.support import requests as rq
from tests.support.records import Code, Mode
from tests.support.wire import Client


@pytest.fixture
def statistics(client: Client, base: str) -> str:
    """A quota on the base node, which has one child of two bytes; the path of its statistics."""
    quota = f"/zookeeper/quota{base}"
    client.call(rq.set_data(base, b"abc"))
    client.call(rq.create(f"{base}/first", b"de"))
    client.call(rq.create(quota))
    client.call(rq.create(f"{quota}/zookeeper_limits", b"count=3,bytes=10"))
    client.call(rq.create(f"{quota}/zookeeper_stats", b"count=0,bytes=0"))
    return f"{quota}/zookeeper_stats"


def test_the_statistics_count_what_is_there(client: Client, statistics: str) -> None:
    reply = client.call(rq.get_data(statistics))
    assert reply.data == b"count=2,bytes=5"
    assert (reply.stat.version, reply.stat.mzxid) == (0, reply.stat.czxid)


def test_the_statistics_follow_every_change(client: Client, base: str, statistics: str) -> None:
    for request, expected in (
        (rq.create(f"{base}/n", b"12345"), b"count=3,bytes=10"),
        (rq.set_data(f"{base}/n", b"1"), b"count=3,bytes=6"),
        (rq.set_data(f"{base}/n", None), b"count=3,bytes=5"),
        (rq.set_data(base, b""), b"count=3,bytes=2"),
        (rq.create(f"{base}/n/below", None), b"count=4,bytes=2"),
        (rq.multi(rq.create(f"{base}/x", b"1"), rq.delete(f"{base}/n/below")), b"count=4,bytes=3"),
        (rq.create(f"{base}/x"), b"count=4,bytes=3"),
        (rq.delete(f"{base}/n"), b"count=3,bytes=3"),
        (rq.create(f"{base}-sibling", b"xyz"), b"count=3,bytes=3"),
    ):
        client.call(request)
        assert client.call(rq.get_data(statistics)).data == expected, request


def test_the_statistics_change_without_version_zxid_or_event(
    client: Client, other: Client, base: str, statistics: str
) -> None:
    before = other.call(rq.get_data(statistics, watch=True)).stat
    client.call(rq.create(f"{base}/n", b"x" * 100))
    after = other.call(rq.get_data(statistics))
    assert after.data == b"count=3,bytes=105"
    assert (after.stat.version, after.stat.mzxid, after.stat.mtime) == (
        before.version,
        before.mzxid,
        before.mtime,
    )
    assert after.stat.data_length == len(after.data)
    assert other.drain() == []


def test_no_limit_is_enforced_unless_asked_for(client: Client, base: str, statistics: str) -> None:
    limits = statistics.replace("zookeeper_stats", "zookeeper_limits")
    client.call(rq.set_data(limits, b"count=1,bytes=1=;byteHardLimit=1;countHardLimit=1"))
    for name in ("a", "b", "c", "d"):
        assert client.call(rq.create(f"{base}/{name}", b"x" * 20)).err == Code.OK
    assert client.call(rq.get_data(statistics)).data == b"count=6,bytes=85"


def test_the_end_of_a_session_counts(
    client: Client, other: Client, base: str, statistics: str
) -> None:
    other.call(rq.create(f"{base}/e", b"1234", flags=Mode.EPHEMERAL))
    assert client.call(rq.get_data(statistics)).data == b"count=3,bytes=9"
    other.close()
    assert client.call(rq.get_data(statistics)).data == b"count=2,bytes=5"


def test_without_its_limits_node_nothing_is_counted(
    client: Client, base: str, statistics: str
) -> None:
    limits = statistics.replace("zookeeper_stats", "zookeeper_limits")
    assert client.call(rq.delete(limits)).err == Code.OK
    client.call(rq.create(f"{base}/n", b"x"))
    assert client.call(rq.get_data(statistics)).data == b"count=2,bytes=5"
