"""setWatches and setWatches2: what a client missed fires at once, the rest is set anew."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Connect
from tests.conformance.differences import WATCH_MODES_ARE_INDEPENDENT
from tests.support import requests as rq
from tests.support.records import Code, Event, EventType, Op, Reply, Request
from tests.support.server import Server
from tests.support.wire import Client, events, reattach

CREATED, DELETED = EventType.CREATED, EventType.DELETED
CHANGED, CHILDREN = EventType.DATA_CHANGED, EventType.CHILDREN_CHANGED

#: Both opcodes with one-shot lists only.
BOTH = pytest.mark.parametrize("set_watches", [rq.set_watches, rq.set_watches2])


def answer(client: Client, request: Request) -> list[Event]:
    """Send it; return the events that came before its reply."""
    *before, reply = client.messages(request)
    assert isinstance(reply, Reply)
    assert (reply.xid, reply.err, reply.body) == (-8, Code.OK, b"")
    return [message for message in before if isinstance(message, Event)]


def zxid(client: Client) -> int:
    return client.call(rq.exists("/")).zxid


@BOTH
def test_an_unchanged_node_fires_nothing_and_is_watched(
    client: Client, other: Client, base: str, set_watches: type
) -> None:
    now = zxid(other)
    assert answer(other, set_watches(now, [base], [f"{base}/none"], [base])) == []
    client.call(rq.set_data(base, b"x"))
    client.call(rq.create(f"{base}/none"))
    assert other.drain() == events((CHANGED, base), (CREATED, f"{base}/none"), (CHILDREN, base))


@BOTH
def test_what_changed_since_fires_at_once_and_sets_nothing(
    client: Client, other: Client, base: str, set_watches: type
) -> None:
    before = zxid(client)
    client.call(rq.set_data(base, b"x"))
    client.call(rq.create(f"{base}/new"))
    fired = answer(other, set_watches(before, [base], [f"{base}/new"], [base]))
    assert fired == events((CHANGED, base), (CREATED, f"{base}/new"), (CHILDREN, base))
    client.call(rq.set_data(base, b"y"))
    client.call(rq.delete(f"{base}/new"))
    assert other.drain() == []


@BOTH
def test_the_relative_zxid_itself_counts_as_seen(
    client: Client, other: Client, base: str, set_watches: type
) -> None:
    changed = client.call(rq.set_data(base, b"x")).zxid
    assert answer(other, set_watches(changed, [base])) == []
    assert answer(other, set_watches(changed - 1, [base])) == events((CHANGED, base))
    made = client.call(rq.create(f"{base}/n")).zxid
    assert answer(other, set_watches(made, [], [], [base])) == []
    assert answer(other, set_watches(made - 1, [], [], [base])) == events((CHILDREN, base))


@BOTH
def test_nodes_that_are_gone_fire_deleted_whatever_the_zxid(
    client: Client, other: Client, base: str, set_watches: type
) -> None:
    gone = f"{base}/gone"
    assert answer(other, set_watches(1 << 60, [gone], [], [gone])) == events(
        (DELETED, gone), (DELETED, gone)
    )


@BOTH
def test_an_exists_watch_fires_if_the_node_is_there_whatever_the_zxid(
    client: Client, other: Client, base: str, set_watches: type
) -> None:
    assert answer(other, set_watches(1 << 60, [], [base])) == events((CREATED, base))


def test_a_deleted_child_counts_for_a_child_watch(client: Client, other: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n"))
    before = zxid(client)
    client.call(rq.delete(f"{base}/n"))
    assert answer(other, rq.set_watches(before, [], [], [base])) == events((CHILDREN, base))


def test_a_grandchild_or_a_childs_data_does_not_count_for_a_child_watch(
    client: Client, other: Client, base: str
) -> None:
    client.call(rq.create(f"{base}/n"))
    before = zxid(client)
    client.call(rq.create(f"{base}/n/g"))
    client.call(rq.set_data(f"{base}/n", b"x"))
    client.call(rq.set_data(base, b"x"))
    assert answer(other, rq.set_watches(before, [], [], [base])) == []


def test_a_node_deleted_and_made_again_fires_changed(
    client: Client, other: Client, base: str
) -> None:
    client.call(rq.create(f"{base}/n"))
    before = zxid(client)
    client.call(rq.delete(f"{base}/n"))
    client.call(rq.create(f"{base}/n"))
    assert answer(other, rq.set_watches(before, [f"{base}/n"], [], [f"{base}/n"])) == events(
        (CHANGED, f"{base}/n"), (CHILDREN, f"{base}/n")
    )


def test_events_come_in_the_order_of_the_lists(client: Client, other: Client, base: str) -> None:
    for name in ("a", "b", "c"):
        client.call(rq.create(f"{base}/{name}"))
    fired = answer(
        other,
        rq.set_watches2(0, [f"{base}/b", f"{base}/a"], [f"{base}/c"], [f"{base}/b", base]),
    )
    assert fired == events(
        (CHANGED, f"{base}/b"),
        (CHANGED, f"{base}/a"),
        (CREATED, f"{base}/c"),
        (CHILDREN, f"{base}/b"),
        (CHILDREN, base),
    )


def test_a_path_listed_twice_fires_twice(client: Client, other: Client, base: str) -> None:
    assert answer(other, rq.set_watches(0, [base, base])) == events(
        (CHANGED, base), (CHANGED, base)
    )


def test_persistent_watches_are_set_and_not_told_what_they_missed(
    client: Client, other: Client, base: str
) -> None:
    client.call(rq.create(f"{base}/n"))
    request = rq.set_watches2(0, persistent=[base], recursive=[f"{base}/n"])
    assert answer(other, request) == []
    for _ in range(2):
        client.call(rq.set_data(base, b"x"))
        client.call(rq.create(f"{base}/n/c"))
        client.call(rq.delete(f"{base}/n/c"))
    once = [(CHANGED, base), (CREATED, f"{base}/n/c"), (DELETED, f"{base}/n/c")]
    assert other.drain() == events(*once, *once)


def test_one_path_in_several_lists_is_watched_in_all_modes(
    server: Server, client: Client, other: Client, base: str
) -> None:
    now = zxid(client)
    request = rq.set_watches2(now, [base], [], [base], [base], [base])
    assert answer(other, request) == []
    client.call(rq.create(f"{base}/n"))
    client.call(rq.set_data(base, b"x"))
    client.call(rq.set_data(base, b"y"))
    # On 3.8 the last mode counts, which is the recursive one.
    beside = [(CHILDREN, base)] if WATCH_MODES_ARE_INDEPENDENT.on(server) else []
    assert other.drain() == events(
        (CREATED, f"{base}/n"), *beside, (CHANGED, base), (CHANGED, base)
    )


def test_what_fires_at_once_has_no_zxid(client: Client, other: Client, base: str) -> None:
    client.call(rq.create(f"{base}/n"))
    fired = answer(other, rq.set_watches(0, [base, f"{base}/gone"], [f"{base}/n"], [base]))
    assert [event.zxid for event in fired] == [-1] * 4


@pytest.mark.parametrize("op", [Op.SET_WATCHES, Op.SET_WATCHES2])
def test_any_xid_is_echoed_and_no_zxid_taken(client: Client, base: str, op: int) -> None:
    now = zxid(client)
    body = rq.set_watches2(now, [base]).body
    reply = client.call(Request(op, body, xid=5))
    assert (reply.xid, reply.err, reply.zxid) == (5, Code.OK, now)


def test_empty_lists_are_fine(client: Client) -> None:
    assert answer(client, rq.set_watches(0)) == []
    assert answer(client, rq.set_watches2(0)) == []


def test_a_reconnected_client_misses_nothing(
    server: Server, connect: Connect, client: Client, base: str
) -> None:
    first = connect()
    seen = first.call(rq.get_data(base, watch=True)).zxid
    first.disconnect()
    client.call(rq.set_data(base, b"meanwhile"))
    second = reattach(server.address, first, last_zxid=seen)
    assert second.session_id == first.session_id
    assert answer(second, rq.set_watches(seen, [base])) == events((CHANGED, base))
    second.close()
