"""Bodies that cannot be decoded: every opcode cut at every byte, nulls and bad lengths."""

from __future__ import annotations

import pytest

from tests.conformance.conftest import Connect, is_lone_check_refused
from tests.conformance.differences import (
    ADD_WATCH_ON_NULL_PATH,
    CHECK_WATCHES_ON_NULL_PATH,
    CREATE_SESSION_FROM_CLIENT,
    UNDECODABLE_WRITE_TAKES_A_ZXID,
)
from tests.support import requests as rq
from tests.support.records import INT, LONG, OPEN, Acl, Code, Op, Request
from tests.support.server import Server
from tests.support.wire import Client, decode_connect, reattach

#: One whole request of each opcode whose body is decoded, and whether failing to takes a zxid.
WHOLE: dict[str, tuple[Request, bool]] = {
    "create": (rq.create("/x", b"d"), True),
    "create2": (rq.create2("/x", b"d"), True),
    "createContainer": (rq.create_container("/x", b"d"), True),
    "createTTL": (rq.create_ttl("/x", 1000, b"d"), True),
    "delete": (rq.delete("/x"), True),
    "setData": (rq.set_data("/x", b"d"), True),
    "setACL": (rq.set_acl("/x", OPEN), True),
    "check": (rq.check("/x", 1), True),
    "multi": (rq.multi(rq.set_data("/x", b"d"), rq.check("/x")), True),
    "multiRead": (rq.multi_read(rq.get_data("/x"), rq.get_children("/x")), False),
    "exists": (rq.exists("/x"), False),
    "getData": (rq.get_data("/x"), False),
    "getACL": (rq.get_acl("/x"), False),
    "getChildren": (rq.get_children("/x"), False),
    "getChildren2": (rq.get_children2("/x"), False),
    "sync": (rq.sync("/x"), False),
    "reconfig": (rq.reconfig("a", "b", "c"), False),
    "checkWatches": (rq.check_watches("/x", 3), False),
    "removeWatches": (rq.remove_watches("/x", 3), False),
    "setWatches": (rq.set_watches(1 << 60, ["/x"], ["/x"], ["/x"]), False),
    "setWatches2": (rq.set_watches2(1 << 60, [], [], [], ["/x"], ["/x"]), False),
    "addWatch": (rq.add_watch("/x", 0), False),
    "getEphemerals": (rq.get_ephemerals("/x"), False),
    "getAllChildrenNumber": (rq.get_all_children_number("/x"), False),
}


def last_zxid(client: Client) -> int:
    return client.call(rq.exists("/")).zxid


@pytest.mark.parametrize("name", list(WHOLE))
def test_a_body_cut_anywhere_is_a_marshalling_error(
    server: Server, client: Client, name: str
) -> None:
    request, takes_zxid = WHOLE[name]
    if name == "check" and is_lone_check_refused(server, client):
        return
    if name != "multi":
        takes_zxid = takes_zxid and UNDECODABLE_WRITE_TAKES_A_ZXID.on(server)
    zxid = last_zxid(client)
    for length in range(len(request.body)):
        reply = client.call(Request(request.op, request.body[:length]))
        zxid += takes_zxid
        assert (reply.err, reply.zxid, reply.body) == (Code.MARSHALLING_ERROR, zxid, b""), length
    assert last_zxid(client) == zxid


@pytest.mark.parametrize("name", list(WHOLE))
def test_bytes_after_a_body_are_ignored(client: Client, name: str) -> None:
    request, _ = WHOLE[name]
    reply = client.call(Request(request.op, request.body + b"more"))
    assert reply.err != Code.MARSHALLING_ERROR


#: Null where text is expected: the code, and whether a zxid is taken.
NULLS: dict[str, tuple[Request, int, bool]] = {
    "create": (rq.create(None), Code.MARSHALLING_ERROR, True),
    "create2": (rq.create2(None), Code.MARSHALLING_ERROR, True),
    "createContainer": (rq.create_container(None), Code.MARSHALLING_ERROR, True),
    "createTTL": (rq.create_ttl(None, 1000), Code.MARSHALLING_ERROR, True),
    "delete": (rq.delete(None), Code.MARSHALLING_ERROR, True),
    "setData": (rq.set_data(None, b""), Code.BAD_ARGUMENTS, True),
    "setACL": (rq.set_acl(None, OPEN), Code.BAD_ARGUMENTS, True),
    "check": (rq.check(None), Code.BAD_ARGUMENTS, True),
    "exists": (rq.exists(None), Code.MARSHALLING_ERROR, False),
    "getData": (rq.get_data(None), Code.MARSHALLING_ERROR, False),
    "getACL": (rq.get_acl(None), Code.MARSHALLING_ERROR, False),
    "getChildren": (rq.get_children(None), Code.MARSHALLING_ERROR, False),
    "getChildren2": (rq.get_children2(None), Code.MARSHALLING_ERROR, False),
    "getAllChildrenNumber": (rq.get_all_children_number(None), Code.MARSHALLING_ERROR, False),
    "removeWatches": (rq.remove_watches(None, 3), Code.NO_WATCHER, False),
    "sync": (rq.sync(None), Code.OK, False),
    "getEphemerals": (rq.get_ephemerals(None), Code.OK, False),
    "reconfig": (rq.reconfig(None, None, None), Code.RECONFIG_DISABLED, True),
    "setWatches data": (rq.set_watches(0, None), Code.MARSHALLING_ERROR, False),
    "setWatches exist": (rq.set_watches(0, (), None), Code.MARSHALLING_ERROR, False),
    "setWatches child": (rq.set_watches(0, (), (), None), Code.MARSHALLING_ERROR, False),
    "setWatches2 persistent": (
        rq.set_watches2(0, persistent=None),
        Code.MARSHALLING_ERROR,
        False,
    ),
    "setWatches2 recursive": (rq.set_watches2(0, recursive=None), Code.MARSHALLING_ERROR, False),
}


@pytest.mark.parametrize("name", list(NULLS))
def test_a_null_has_its_own_answer(server: Server, client: Client, name: str) -> None:
    request, code, takes_zxid = NULLS[name]
    if name == "check" and is_lone_check_refused(server, client):
        return
    zxid = last_zxid(client)
    reply = client.call(request)
    assert (reply.err, reply.zxid) == (code, zxid + takes_zxid)
    assert last_zxid(client) == zxid + takes_zxid


def test_check_watches_of_null_finds_nobody(server: Server, client: Client) -> None:
    reply = client.call(rq.check_watches(None, 3))
    assert reply.err == CHECK_WATCHES_ON_NULL_PATH.on(server)


def test_sync_of_null_echoes_null(client: Client) -> None:
    assert client.call(rq.sync(None)).body == INT.pack(-1)


def test_add_watch_on_a_null_path(server: Server, connect: Connect) -> None:
    client = connect()
    assert client.call(rq.add_watch(None, 0)).err == ADD_WATCH_ON_NULL_PATH.on(server)
    client.disconnect()


@pytest.mark.parametrize(
    ("acl", "code"),
    [
        (Acl(31, "world", None), Code.MARSHALLING_ERROR),
        (Acl(31, "digest", None), Code.MARSHALLING_ERROR),
        (Acl(31, "ip", None), Code.MARSHALLING_ERROR),
        (Acl(31, "auth", None), Code.INVALID_ACL),
        (Acl(31, "nobody", None), Code.INVALID_ACL),
        (Acl(31, None, None), Code.INVALID_ACL),
    ],
    ids=str,
)
def test_nulls_in_an_acl(client: Client, base: str, acl: Acl, code: int) -> None:
    assert client.call(rq.create(f"{base}/n", acl=(acl,))).err == code
    assert client.call(rq.set_acl(base, (acl,))).err == code


@pytest.mark.parametrize("length", [-2, -100, -(1 << 31), 1 << 20, (1 << 31) - 1])
def test_a_length_out_of_range_is_a_marshalling_error(client: Client, length: int) -> None:
    for request in (
        Request(Op.CREATE, INT.pack(length) + b"/x"),
        Request(Op.CREATE, rq.string("/x") + INT.pack(length) + b"data"),
        Request(Op.GET_DATA, INT.pack(length) + b"/x\x00"),
        Request(Op.SYNC, INT.pack(length)),
        Request(Op.SET_DATA, rq.string("/x") + INT.pack(length) + INT.pack(-1)),
    ):
        assert client.call(request).err == Code.MARSHALLING_ERROR


@pytest.mark.parametrize("count", [-1, -2, -(1 << 31), 0])
def test_an_acl_of_no_or_negative_length_is_invalid(client: Client, base: str, count: int) -> None:
    body = rq.string(f"{base}/n") + rq.buffer(b"") + INT.pack(count) + INT.pack(0)
    assert client.call(Request(Op.CREATE, body)).err == Code.INVALID_ACL


@pytest.mark.parametrize("count", [-2, -(1 << 31)])
def test_a_list_of_paths_of_negative_length_is_empty(client: Client, count: int) -> None:
    body = LONG.pack(0) + INT.pack(count) * 3
    assert client.call(Request(Op.SET_WATCHES, body)).err == Code.OK


def test_an_acl_longer_than_its_body_is_a_marshalling_error(client: Client) -> None:
    body = rq.string("/x") + rq.buffer(b"") + INT.pack((1 << 31) - 1) + INT.pack(0)
    assert client.call(Request(Op.CREATE, body)).err == Code.MARSHALLING_ERROR


@pytest.mark.parametrize("mode", [-1, 2, 3, 100])
def test_add_watch_of_an_unknown_mode_is_a_marshalling_error(client: Client, mode: int) -> None:
    assert client.call(rq.add_watch("/", mode)).err == Code.MARSHALLING_ERROR
    assert client.call(rq.remove_watches("/", 3)).err == Code.NO_WATCHER


@pytest.mark.parametrize("kind", [0, 6, -1])
def test_an_unknown_kind_of_watch_is_a_marshalling_error(client: Client, kind: int) -> None:
    assert client.call(rq.check_watches("/", kind)).err == Code.MARSHALLING_ERROR
    assert client.call(rq.remove_watches("/", kind)).err == Code.MARSHALLING_ERROR


@pytest.mark.parametrize("byte", [1, 2, 0x80, 0xFF])
def test_any_byte_but_zero_is_true(client: Client, base: str, byte: int) -> None:
    client.call(Request(Op.GET_DATA, rq.string(base) + bytes([byte])))
    assert client.call(rq.remove_watches(base, 2)).err == Code.OK


@pytest.mark.parametrize(
    "op", [0, 10, 23, 99, 108, 1000, -1, -2, -9, -12, (1 << 31) - 1, -(1 << 31)]
)
def test_an_unknown_opcode_is_unimplemented_and_closes(
    server: Server, connect: Connect, base: str, op: int
) -> None:
    client = connect()
    client.call(rq.create(f"{base}/e", flags=1))
    reply = client.call(Request(op, b"whatever"))
    assert (reply.err, reply.zxid, reply.body) == (Code.UNIMPLEMENTED, -1, b"")
    assert client.wait_closed() == b""
    again = reattach(server.address, client)
    assert again.session_id == client.session_id
    assert again.call(rq.get_ephemerals(base)).names == {f"{base}/e"}
    again.close()


def test_create_session_is_not_for_clients(server: Server, connect: Connect) -> None:
    client = connect()
    client.send(Request(Op.CREATE_SESSION, INT.pack(10_000)))
    if CREATE_SESSION_FROM_CLIENT.on(server) == "handshake":
        assert decode_connect(client.read_frame()).session_id == client.session_id
        return
    assert client.reply().err == Code.UNIMPLEMENTED
    assert client.wait_closed() == b""
