"""Sessions: closing, expiring, and what becomes of their ephemerals."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable

import pytest

from tests.conformance.conftest import Connect
from tests.conformance.differences import PING_WAITS_ITS_TURN
from tests.support import requests as rq
from tests.support.records import Acl, Code, EventType, Mode, Perm, Request
from tests.support.server import Server
from tests.support.wire import Client, ConnectionClosedError, events, reattach

SHORT_MS = 400
_TRIES = 5


def wait_deleted(client: Client, path: str) -> None:
    if client.call(rq.exists(path, watch=True)).err == Code.OK:
        event = client.next_event()
        assert (event.type, event.path) == (EventType.DELETED, path)


def test_close_is_answered_and_then_the_connection_closed(connect: Connect) -> None:
    client = connect()
    before = client.call(rq.exists("/")).zxid
    reply = client.call(rq.close_session())
    assert (reply.err, reply.body, reply.zxid) == (Code.OK, b"", before + 1)
    assert client.wait_closed() == b""


def test_closing_deletes_the_ephemerals_and_nothing_else(
    connect: Connect, client: Client, base: str
) -> None:
    owner = connect()
    for request in (
        rq.create(f"{base}/e", flags=Mode.EPHEMERAL),
        rq.create(f"{base}/s", flags=Mode.EPHEMERAL_SEQUENTIAL),
        rq.create(f"{base}/p"),
        rq.create_container(f"{base}/c"),
        rq.create_ttl(f"{base}/t", 3_600_000),
        rq.multi(rq.create(f"{base}/p/m", flags=Mode.EPHEMERAL)),
    ):
        assert owner.call(request).err == Code.OK
    owner.close()
    assert client.call(rq.get_children(base)).names == {"p", "c", "t"}
    assert client.call(rq.get_children(f"{base}/p")).names == set()


def test_the_end_of_a_session_is_one_zxid_for_all_its_deletes(
    connect: Connect, client: Client, base: str
) -> None:
    owner = connect()
    for name in ("a", "b", "c"):
        owner.call(rq.create(f"{base}/{name}", flags=Mode.EPHEMERAL))
    before = client.call(rq.exists(base)).stat
    zxid = owner.call(rq.close_session()).zxid
    after = client.call(rq.exists(base))
    assert after.zxid == zxid
    assert after.stat.pzxid == zxid
    assert after.stat.cversion == before.cversion + 3
    assert (after.stat.num_children, after.stat.version) == (0, 0)


def test_the_end_of_a_session_fires_every_watch(
    connect: Connect, client: Client, base: str
) -> None:
    owner = connect()
    watchers = {kind: connect() for kind in ("data", "child", "parent", "recursive")}
    owner.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    watchers["data"].call(rq.get_data(f"{base}/e", watch=True))
    watchers["child"].call(rq.get_children(f"{base}/e", watch=True))
    watchers["parent"].call(rq.get_children(base, watch=True))
    watchers["recursive"].call(rq.add_watch(base, 1))
    owner.close()
    deleted = events((EventType.DELETED, f"{base}/e"))
    assert watchers["data"].drain() == deleted
    assert watchers["child"].drain() == deleted
    assert watchers["recursive"].drain() == deleted
    assert watchers["parent"].drain() == events((EventType.CHILDREN_CHANGED, base))


def test_the_end_of_a_session_asks_no_permission(
    connect: Connect, client: Client, base: str
) -> None:
    owner = connect()
    owner.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    client.call(rq.set_acl(base, (Acl(Perm.READ, "world", "anyone"),)))
    owner.close()
    assert client.call(rq.get_children(base)).names == set()


def test_closing_through_a_second_connection_ends_the_session(
    server: Server, connect: Connect, client: Client, base: str
) -> None:
    first = connect()
    first.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    reattach(server.address, first).close()
    assert client.call(rq.exists(f"{base}/e")).err == Code.NO_NODE
    again = reattach(server.address, first)
    assert (again.session_id, again.handshake.timeout_ms) == (0, 0)
    again.disconnect()


def test_a_lost_connection_does_not_end_the_session(
    server: Server, connect: Connect, client: Client, base: str
) -> None:
    first = connect()
    first.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    first.disconnect()
    assert client.call(rq.exists(f"{base}/e")).err == Code.OK
    second = reattach(server.address, first)
    assert second.call(rq.get_ephemerals(base)).names == {f"{base}/e"}
    second.close()


@pytest.mark.parametrize("connected", [True, False])
def test_a_silent_session_expires(
    server: Server, connect: Connect, client: Client, base: str, connected: bool
) -> None:
    owner = connect(timeout_ms=SHORT_MS)
    owner.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    last = time.monotonic()
    if not connected:
        owner.disconnect()
    before = client.call(rq.exists(base)).stat
    wait_deleted(client, f"{base}/e")
    silent_ms = (time.monotonic() - last) * 1000
    assert silent_ms > SHORT_MS * 0.9
    after = client.call(rq.exists(base)).stat
    assert after.pzxid > before.pzxid
    assert (after.cversion, after.num_children) == (before.cversion + 1, 0)
    if connected:
        assert owner.wait_closed() == b""
    again = reattach(server.address, owner)
    assert again.session_id == 0
    again.disconnect()


def test_expiry_deletes_all_ephemerals_with_one_zxid(
    connect: Connect, client: Client, base: str
) -> None:
    owner = connect(timeout_ms=SHORT_MS)
    client.call(rq.create(f"{base}/p"))
    owner.calls(
        rq.create(f"{base}/a", flags=Mode.EPHEMERAL),
        rq.create(f"{base}/b", flags=Mode.EPHEMERAL),
        rq.create(f"{base}/p/c", flags=Mode.EPHEMERAL),
    )
    wait_deleted(client, f"{base}/a")
    stats = [client.call(rq.exists(path)).stat for path in (base, f"{base}/p")]
    assert stats[0].pzxid == stats[1].pzxid
    assert [stat.num_children for stat in stats] == [1, 0]
    assert [stat.cversion for stat in stats] == [5, 2]


def in_one_of_some_tries(live: Callable[[int], None]) -> None:
    """Have a session outlive others, once: a busy machine may stop us for longer than its timeout.

    But not each time. An ended session is known by its closed connection.
    """
    for number in range(_TRIES - 1):
        with contextlib.suppress(ConnectionClosedError):
            return live(number)
    return live(_TRIES)


@pytest.mark.parametrize("touch", [rq.ping(), rq.exists("/"), rq.sync("/")], ids=lambda r: r.op)
def test_requests_keep_a_session_alive(
    connect: Connect, client: Client, base: str, touch: Request
) -> None:
    """It outlives two silent sessions of the same timeout, one after the other."""

    def live(number: int) -> None:
        lively = connect(timeout_ms=SHORT_MS)
        lively.call(rq.create(f"{base}/lively-{number}", flags=Mode.EPHEMERAL))
        for name in (f"first-{number}", f"second-{number}"):
            silent = connect(timeout_ms=SHORT_MS)
            silent.call(rq.create(f"{base}/{name}", flags=Mode.EPHEMERAL))
            limit = time.monotonic() + 10
            while client.call(rq.exists(f"{base}/{name}")).err == Code.OK:
                assert lively.call(touch).err == Code.OK
                assert time.monotonic() < limit
        assert lively.call(rq.get_ephemerals(base)).names == {f"{base}/lively-{number}"}

    in_one_of_some_tries(live)


def test_reattaching_gives_the_whole_timeout_again(
    server: Server, connect: Connect, client: Client, base: str
) -> None:
    """It outlives silent sessions of its timeout although it sends nothing but handshakes."""

    def live(number: int) -> None:
        lively = connect(timeout_ms=SHORT_MS)
        lively.call(rq.create(f"{base}/lively-{number}", flags=Mode.EPHEMERAL))
        for name in (f"first-{number}", f"second-{number}"):
            silent = connect(timeout_ms=SHORT_MS)
            silent.call(rq.create(f"{base}/{name}", flags=Mode.EPHEMERAL))
            limit = time.monotonic() + 10
            while client.call(rq.exists(f"{base}/{name}")).err == Code.OK:
                again = reattach(server.address, lively)
                again.disconnect()
                # What has expired is given no session at all.
                if again.session_id != lively.session_id:
                    raise ConnectionClosedError
                assert time.monotonic() < limit
        if client.call(rq.exists(f"{base}/lively-{number}")).err != Code.OK:
            raise ConnectionClosedError

    in_one_of_some_tries(live)


def test_a_new_session_may_take_a_dead_ones_names(
    connect: Connect, client: Client, base: str
) -> None:
    owner = connect()
    owner.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    assert client.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL)).err == Code.NODE_EXISTS
    owner.close()
    assert client.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL)).err == Code.OK
    stat = client.call(rq.exists(f"{base}/e")).stat
    assert stat.ephemeral_owner == client.session_id


def test_a_ping_behind_a_write(server: Server, client: Client, base: str) -> None:
    replies = client.calls(rq.set_data(base, b"x"), rq.exists(base), rq.ping())
    if PING_WAITS_ITS_TURN.on(server):
        assert [reply.xid for reply in replies] == [1, 2, -2]
    assert {reply.xid: reply.err for reply in replies} == {1: 0, 2: 0, -2: 0}


def test_pings_are_answered_with_their_own_xid_and_the_last_zxid(client: Client, base: str) -> None:
    written = client.call(rq.set_data(base, b"x")).zxid
    reply = client.call(rq.ping())
    assert (reply.xid, reply.err, reply.body, reply.zxid) == (-2, Code.OK, b"", written)
