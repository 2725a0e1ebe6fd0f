"""Which requests take a zxid, and which zxid a reply shows."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Connect, is_lone_check_refused
from tests.conformance.differences import LONE_CHECK_IS_ANSWERED
from tests.support import requests as rq
from tests.support.records import OPEN, Code, Request
from tests.support.server import Server
from tests.support.wire import Client, connect, reattach


def last(client: Client) -> int:
    return client.call(rq.exists("/")).zxid


WRITES: dict[str, tuple[Request, int]] = {
    "setData": (rq.set_data("/", b""), Code.OK),
    "setACL": (rq.set_acl("/", OPEN), Code.OK),
    "multi": (rq.multi(rq.check("/")), Code.OK),
    "failed create": (rq.create("/zookeeper"), Code.NODE_EXISTS),
    "failed create2": (rq.create2("/none/none"), Code.NO_NODE),
    "failed createContainer": (rq.create_container("bad"), Code.BAD_ARGUMENTS),
    "failed createTTL": (rq.create_ttl("/x", 0), Code.BAD_ARGUMENTS),
    "failed delete": (rq.delete("/none"), Code.NO_NODE),
    "forbidden delete": (rq.delete("/zookeeper"), Code.BAD_ARGUMENTS),
    "failed setData": (rq.set_data("/none", b""), Code.NO_NODE),
    "failed setACL": (rq.set_acl("/", ()), Code.INVALID_ACL),
    "failed check": (rq.check("/none"), Code.NO_NODE),
    "failed multi": (rq.multi(rq.check("/none")), Code.OK),
    "reconfig": (rq.reconfig("", "", ""), Code.RECONFIG_DISABLED),
}


@pytest.mark.parametrize("name", list(WRITES))
def test_every_write_takes_one_zxid_even_if_it_fails(
    server: Server, client: Client, name: str
) -> None:
    if name == "failed check" and is_lone_check_refused(server, client):
        return
    request, code = WRITES[name]
    before = last(client)
    reply = client.call(request)
    assert (reply.err, reply.zxid) == (code, before + 1)
    assert last(client) == before + 1


READS: dict[str, Request] = {
    "exists": rq.exists("/none", watch=True),
    "getData": rq.get_data("/"),
    "getACL": rq.get_acl("/none"),
    "getChildren": rq.get_children("/"),
    "getChildren2": rq.get_children2("/none"),
    "sync": rq.sync("/"),
    "ping": rq.ping(),
    "multiRead": rq.multi_read(rq.get_data("/")),
    "checkWatches": rq.check_watches("/none", 3),
    "removeWatches": rq.remove_watches("/none", 3),
    "addWatch": rq.add_watch("/none", 0),
    "setWatches": rq.set_watches(1 << 60, ["/"]),
    "setWatches2": rq.set_watches2(1 << 60),
    "getEphemerals": rq.get_ephemerals("/"),
    "getAllChildrenNumber": rq.get_all_children_number("/"),
    "whoAmI": rq.who_am_i(),
}


@pytest.mark.parametrize("name", list(READS))
def test_no_read_takes_a_zxid_and_each_shows_the_last(client: Client, name: str) -> None:
    before = last(client)
    assert client.call(READS[name]).zxid == before
    assert last(client) == before


def test_auth_and_sasl_show_zxid_zero_and_take_none(connect: Connect) -> None:
    client = connect()
    before = last(client)
    assert client.call(rq.auth("digest", b"a:b")).zxid == 0
    assert client.call(rq.sasl(b"")).zxid == 0
    assert last(client) == before


def test_a_session_takes_one_zxid_to_begin_and_one_to_end(server: Server, client: Client) -> None:
    before = last(client)
    session = connect(server.address)
    assert last(session) == before + 1
    assert session.call(rq.close_session()).zxid == before + 2
    session.disconnect()
    assert last(client) == before + 2


def test_reattaching_takes_no_zxid(server: Server, connect: Connect, client: Client) -> None:
    first = connect()
    before = last(client)
    second = reattach(server.address, first)
    assert last(second) == before
    second.disconnect()
    third = reattach(server.address, first)
    assert last(client) == before
    third.close()


def test_refused_handshakes_take_no_zxid(server: Server, client: Client) -> None:
    before = last(client)
    connect(server.address, session_id=1).disconnect()
    connect(server.address, session_id=client.session_id + 1).disconnect()
    assert last(client) == before


def test_pipelined_replies_each_show_their_own_zxid(client: Client, base: str) -> None:
    before = last(client)
    replies = client.calls(
        rq.set_data(base, b"1"),
        rq.get_data(base),
        rq.set_data(base, b"2", 9),
        rq.exists(base),
        rq.set_data(base, b"3"),
    )
    assert [reply.zxid - before for reply in replies] == [1, 1, 2, 2, 3]


def test_a_lone_check_that_succeeds(server: Server, client: Client, base: str) -> None:
    before = last(client)
    if is_lone_check_refused(server, client):
        return
    if not LONE_CHECK_IS_ANSWERED.on(server):
        # No reply comes to it; the next one that comes is the next request's.
        client.send(rq.check(base), rq.exists(base))
        reply = client.reply()
        assert (reply.xid, reply.zxid) == (3, before + 1)
        return
    reply = client.call(rq.check(base, 0))
    assert (reply.err, reply.zxid) == (Code.OK, before + 1)
    # What 3.9 means to send, and fails to: the same as to setData.
    assert reply.stat == client.call(rq.exists(base)).stat
    assert client.call(rq.check(base)).err == Code.OK
    assert client.call(rq.exists(base)).stat.version == 0


@pytest.mark.parametrize("version", [0, 2, -2])
def test_a_lone_check_that_fails_is_answered(
    server: Server, client: Client, base: str, version: int
) -> None:
    if is_lone_check_refused(server, client):
        return
    client.call(rq.set_data(base, b""))
    reply = client.call(rq.check(base, version))
    assert (reply.err, reply.body) == (Code.BAD_VERSION, b"")


@pytest.mark.parametrize(
    "members", [("server.1=h:1:2;3", "", ""), ("", "1", ""), ("", "", "x"), (None, None, None)]
)
def test_reconfig_is_disabled_on_a_lone_server(
    client: Client, members: tuple[str | None, str | None, str | None]
) -> None:
    reply = client.call(rq.reconfig(*members))
    assert (reply.err, reply.body) == (Code.RECONFIG_DISABLED, b"")


def test_sync_echoes_its_path(client: Client, base: str) -> None:
    written = client.call(rq.set_data(base, b"x")).zxid
    for path in (base, f"{base}/none", "/"):
        reply = client.call(rq.sync(path))
        assert (reply.err, reply.path, reply.zxid) == (Code.OK, path, written)
