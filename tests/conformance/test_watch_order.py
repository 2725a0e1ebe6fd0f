"""Events against replies: an event comes before any reply that shows its change."""

from __future__ import annotations

from tests.conformance.conftest import Connect
from tests.conformance.differences import EVENTS_HAVE_A_ZXID
from tests.support import requests as rq
from tests.support.records import Event, EventType, Mode, Op, Reply
from tests.support.server import Server
from tests.support.wire import Client

CREATED, DELETED = EventType.CREATED, EventType.DELETED
CHANGED, CHILDREN = EventType.DATA_CHANGED, EventType.CHILDREN_CHANGED


def shape(messages: list[Reply | Event]) -> list[tuple[str, int, str] | tuple[str, int]]:
    """Each message as ("event", type, path) or ("reply", opcode)."""
    return [
        ("event", message.type, message.path)
        if isinstance(message, Event)
        else ("reply", message.op)
        for message in messages
    ]


def test_ones_own_write_fires_before_its_reply(client: Client, base: str) -> None:
    client.call(rq.get_data(base, watch=True))
    assert shape(client.messages(rq.set_data(base, b"x"))) == [
        ("event", CHANGED, base),
        ("reply", Op.SET_DATA),
    ]


def test_each_event_comes_just_before_the_reply_of_its_write(client: Client, base: str) -> None:
    client.call(rq.add_watch(base, 1))
    messages = client.messages(
        rq.create(f"{base}/a"),
        rq.get_data(f"{base}/a"),
        rq.set_data(f"{base}/a", b"x"),
        rq.set_data(f"{base}/a", b"x", 9),
        rq.delete(f"{base}/a"),
    )
    assert shape(messages) == [
        ("event", CREATED, f"{base}/a"),
        ("reply", Op.CREATE),
        ("reply", Op.GET_DATA),
        ("event", CHANGED, f"{base}/a"),
        ("reply", Op.SET_DATA),
        ("reply", Op.SET_DATA),
        ("event", DELETED, f"{base}/a"),
        ("reply", Op.DELETE),
    ]


def test_a_multis_events_all_come_before_its_reply(client: Client, base: str) -> None:
    client.call(rq.add_watch(base, 0))
    messages = client.messages(
        rq.multi(rq.create(f"{base}/a"), rq.set_data(base, b"x"), rq.delete(f"{base}/a"))
    )
    assert shape(messages) == [
        ("event", CHILDREN, base),
        ("event", CHANGED, base),
        ("event", CHILDREN, base),
        ("reply", Op.MULTI),
    ]


def test_a_watch_set_between_two_writes_sees_the_second_only(client: Client, base: str) -> None:
    messages = client.messages(
        rq.set_data(base, b"1"), rq.get_data(base, watch=True), rq.set_data(base, b"2")
    )
    assert shape(messages) == [
        ("reply", Op.SET_DATA),
        ("reply", Op.GET_DATA),
        ("event", CHANGED, base),
        ("reply", Op.SET_DATA),
    ]
    read = messages[1]
    assert isinstance(read, Reply)
    assert read.data == b"1"


def test_anothers_event_comes_before_a_read_that_shows_its_change(
    client: Client, other: Client, base: str
) -> None:
    other.call(rq.get_data(base, watch=True))
    client.call(rq.set_data(base, b"x"))
    assert shape(other.messages(rq.get_data(base))) == [
        ("event", CHANGED, base),
        ("reply", Op.GET_DATA),
    ]


def test_a_pings_reply_comes_after_events_sent_before(
    client: Client, other: Client, base: str
) -> None:
    other.call(rq.get_data(base, watch=True))
    client.call(rq.set_data(base, b"x"))
    assert shape(other.messages(rq.ping())) == [("event", CHANGED, base), ("reply", Op.PING)]


def test_an_event_carries_the_connected_state(client: Client, other: Client, base: str) -> None:
    other.call(rq.get_data(base, watch=True))
    client.call(rq.set_data(base, b"x"))
    assert other.next_event() == Event(CHANGED, base, state=3)


def test_an_event_carries_the_zxid_of_its_change(
    server: Server, connect: Connect, client: Client, other: Client, base: str
) -> None:
    owner = connect()
    other.call(rq.add_watch(base, 0))
    other.call(rq.add_watch(f"{base}/n", 1))
    changes = [
        client.call(rq.set_data(base, b"x")),
        client.call(rq.create(f"{base}/n")),
        client.call(rq.multi(rq.set_data(f"{base}/n", b"x"), rq.create(f"{base}/n/a"))),
        owner.call(rq.create(f"{base}/n/e", flags=Mode.EPHEMERAL)),
        owner.call(rq.close_session()),
        client.call(rq.delete(f"{base}/n/a")),
        client.call(rq.delete(f"{base}/n")),
    ]
    data, created, multi, ephemeral, closed, below, deleted = [reply.zxid for reply in changes]
    expected = [
        (CHANGED, base, data),
        (CREATED, f"{base}/n", created),
        (CHILDREN, base, created),
        (CHANGED, f"{base}/n", multi),
        (CREATED, f"{base}/n/a", multi),
        (CREATED, f"{base}/n/e", ephemeral),
        (DELETED, f"{base}/n/e", closed),
        (DELETED, f"{base}/n/a", below),
        (DELETED, f"{base}/n", deleted),
        (CHILDREN, base, deleted),
    ]
    if not EVENTS_HAVE_A_ZXID.on(server):
        expected = [(kind, path, -1) for kind, path, _zxid in expected]
    assert [(event.type, event.path, event.zxid) for event in other.drain()] == expected


def test_an_event_comes_without_being_asked_for(client: Client, other: Client, base: str) -> None:
    other.call(rq.exists(f"{base}/n", watch=True))
    client.call(rq.create(f"{base}/n"))
    assert other.next_event() == Event(CREATED, f"{base}/n")


def test_closing_fires_the_deletes_of_ephemerals_before_its_reply(
    connect: Connect, client: Client, base: str
) -> None:
    owner = connect()
    owner.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    owner.call(rq.get_data(f"{base}/e", watch=True))
    owner.call(rq.get_children(base, watch=True))
    client.call(rq.exists(f"{base}/e", watch=True))
    assert shape(owner.messages(rq.close_session())) == [
        ("event", DELETED, f"{base}/e"),
        ("event", CHILDREN, base),
        ("reply", Op.CLOSE_SESSION),
    ]
    assert shape(client.messages(rq.exists(f"{base}/e"))) == [
        ("event", DELETED, f"{base}/e"),
        ("reply", Op.EXISTS),
    ]
