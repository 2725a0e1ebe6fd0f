"""Builds every request of ZooKeeper 3.9 as bytes, well formed or, on purpose, not."""

from __future__ import annotations

from collections.abc import Sequence

from tests.support.records import INT, LONG, MULTI_HEADER, OPEN, Acl, Op, Request, Text

ANY_VERSION = -1


def buffer(data: bytes | None) -> bytes:
    return INT.pack(-1) if data is None else INT.pack(len(data)) + data


def string(text: Text) -> bytes:
    return buffer(text.encode() if isinstance(text, str) else text)


def strings(texts: Sequence[Text] | None) -> bytes:
    if texts is None:
        return INT.pack(-1)
    return INT.pack(len(texts)) + b"".join(string(text) for text in texts)


def acls(entries: Sequence[Acl] | None) -> bytes:
    if entries is None:
        return INT.pack(-1)
    return INT.pack(len(entries)) + b"".join(
        INT.pack(entry.perms) + string(entry.scheme) + string(entry.id) for entry in entries
    )


def flag(value: bool) -> bytes:
    return b"\x01" if value else b"\x00"


def create(
    path: Text,
    data: bytes | None = b"",
    acl: Sequence[Acl] | None = OPEN,
    flags: int = 0,
    op: int = Op.CREATE,
) -> Request:
    """create, and by its opcode create2 and createContainer."""
    return Request(op, string(path) + buffer(data) + acls(acl) + INT.pack(flags))


def create2(
    path: Text, data: bytes | None = b"", acl: Sequence[Acl] | None = OPEN, flags: int = 0
) -> Request:
    return create(path, data, acl, flags, Op.CREATE2)


def create_container(
    path: Text, data: bytes | None = b"", acl: Sequence[Acl] | None = OPEN, flags: int = 4
) -> Request:
    return create(path, data, acl, flags, Op.CREATE_CONTAINER)


def create_ttl(
    path: Text,
    ttl_ms: int,
    data: bytes | None = b"",
    acl: Sequence[Acl] | None = OPEN,
    flags: int = 5,
) -> Request:
    body = create(path, data, acl, flags).body + LONG.pack(ttl_ms)
    return Request(Op.CREATE_TTL, body)


def delete(path: Text, version: int = ANY_VERSION) -> Request:
    return Request(Op.DELETE, string(path) + INT.pack(version))


def delete_container(path: Text) -> Request:
    return Request(Op.DELETE_CONTAINER, string(path))


def exists(path: Text, watch: bool = False) -> Request:
    return Request(Op.EXISTS, string(path) + flag(watch))


def get_data(path: Text, watch: bool = False) -> Request:
    return Request(Op.GET_DATA, string(path) + flag(watch))


def set_data(path: Text, data: bytes | None, version: int = ANY_VERSION) -> Request:
    return Request(Op.SET_DATA, string(path) + buffer(data) + INT.pack(version))


def get_acl(path: Text) -> Request:
    return Request(Op.GET_ACL, string(path))


def set_acl(path: Text, acl: Sequence[Acl] | None, version: int = ANY_VERSION) -> Request:
    return Request(Op.SET_ACL, string(path) + acls(acl) + INT.pack(version))


def get_children(path: Text, watch: bool = False) -> Request:
    return Request(Op.GET_CHILDREN, string(path) + flag(watch))


def get_children2(path: Text, watch: bool = False) -> Request:
    return Request(Op.GET_CHILDREN2, string(path) + flag(watch))


def sync(path: Text) -> Request:
    return Request(Op.SYNC, string(path))


def ping() -> Request:
    return Request(Op.PING, xid=-2)


def check(path: Text, version: int = ANY_VERSION) -> Request:
    return Request(Op.CHECK, string(path) + INT.pack(version))


def multi(*operations: Request, op: int = Op.MULTI) -> Request:
    body = b"".join(MULTI_HEADER.pack(each.op, False, -1) + each.body for each in operations)
    return Request(op, body + MULTI_HEADER.pack(-1, True, -1))


def multi_read(*operations: Request) -> Request:
    return multi(*operations, op=Op.MULTI_READ)


def reconfig(joining: Text, leaving: Text, members: Text, config_id: int = -1) -> Request:
    body = string(joining) + string(leaving) + string(members) + LONG.pack(config_id)
    return Request(Op.RECONFIG, body)


def check_watches(path: Text, kind: int) -> Request:
    """Kind: 1 children, 2 data, 3 any."""
    return Request(Op.CHECK_WATCHES, string(path) + INT.pack(kind))


def remove_watches(path: Text, kind: int) -> Request:
    """Kind: 1 children, 2 data, 3 any."""
    return Request(Op.REMOVE_WATCHES, string(path) + INT.pack(kind))


def add_watch(path: Text, mode: int) -> Request:
    """Mode: 0 persistent, 1 persistent recursive."""
    return Request(Op.ADD_WATCH, string(path) + INT.pack(mode))


def auth(scheme: Text, credentials: bytes | None) -> Request:
    return Request(Op.AUTH, INT.pack(0) + string(scheme) + buffer(credentials), xid=-4)


def set_watches(
    relative_zxid: int,
    data: Sequence[Text] | None = (),
    exist: Sequence[Text] | None = (),
    child: Sequence[Text] | None = (),
) -> Request:
    body = LONG.pack(relative_zxid) + strings(data) + strings(exist) + strings(child)
    return Request(Op.SET_WATCHES, body, xid=-8)


def set_watches2(
    relative_zxid: int,
    data: Sequence[Text] | None = (),
    exist: Sequence[Text] | None = (),
    child: Sequence[Text] | None = (),
    persistent: Sequence[Text] | None = (),
    recursive: Sequence[Text] | None = (),
) -> Request:
    body = set_watches(relative_zxid, data, exist, child).body
    return Request(Op.SET_WATCHES2, body + strings(persistent) + strings(recursive), xid=-8)


def get_ephemerals(prefix: Text) -> Request:
    return Request(Op.GET_EPHEMERALS, string(prefix))


def get_all_children_number(path: Text) -> Request:
    return Request(Op.GET_ALL_CHILDREN_NUMBER, string(path))


def changes(path: Text, since: int, feed: int) -> Request:
    return Request(Op.CHANGES, string(path) + LONG.pack(since) + INT.pack(feed))


def who_am_i() -> Request:
    return Request(Op.WHO_AM_I)


def sasl(token: bytes | None) -> Request:
    return Request(Op.SASL, buffer(token))


def close_session() -> Request:
    return Request(Op.CLOSE_SESSION)
