"""create, create2, createContainer and createTTL: modes, results and refusals."""

from __future__ import annotations

import pytest

from tests.conformance.differences import TTL_BELOW_ZERO_IS_SAFE
from tests.support import requests as rq
from tests.support.records import OPEN, Acl, Code, Mode, Op, Request
from tests.support.server import Server
from tests.support.wire import Client

LONG_TTL_MS = 3_600_000
PLAIN_CREATES = (Op.CREATE, Op.CREATE2)
ALL_CREATES = (Op.CREATE, Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL)


def create(op: int, path: str, flags: int, data: bytes | None = b"") -> Request:
    if op == Op.CREATE_TTL:
        return rq.create_ttl(path, LONG_TTL_MS, data, OPEN, flags)
    return rq.create(path, data, OPEN, flags, op)


def owner(client: Client, path: str) -> int:
    return client.call(rq.exists(path)).stat.ephemeral_owner


@pytest.mark.parametrize("op", PLAIN_CREATES)
@pytest.mark.parametrize("flags", [Mode.PERSISTENT, Mode.EPHEMERAL, Mode.CONTAINER])
def test_plain_create_makes_a_node_of_the_name_asked_for(
    client: Client, base: str, op: int, flags: int
) -> None:
    path = f"{base}/node"
    assert client.call(create(op, path, flags, b"data")).path == path
    assert client.call(rq.get_data(path)).data == b"data"
    assert owner(client, path) == (client.session_id if flags == Mode.EPHEMERAL else 0)


@pytest.mark.parametrize("op", PLAIN_CREATES)
@pytest.mark.parametrize("flags", [Mode.SEQUENTIAL, Mode.EPHEMERAL_SEQUENTIAL])
def test_sequential_create_appends_ten_digits(
    client: Client, base: str, op: int, flags: int
) -> None:
    path = client.call(create(op, f"{base}/n-", flags)).path
    assert path == f"{base}/n-0000000000"
    assert owner(client, path) == (client.session_id if flags == Mode.EPHEMERAL_SEQUENTIAL else 0)


@pytest.mark.parametrize("op", [Op.CREATE, Op.CREATE2, Op.CREATE_CONTAINER])
@pytest.mark.parametrize("flags", [Mode.TTL, Mode.SEQUENTIAL_TTL])
def test_ttl_flags_without_a_ttl_are_bad_arguments(
    client: Client, base: str, op: int, flags: int
) -> None:
    assert client.call(create(op, f"{base}/n", flags)).err == Code.BAD_ARGUMENTS


@pytest.mark.parametrize("op", ALL_CREATES)
@pytest.mark.parametrize("flags", [-1, 7, 8, 255, 1 << 30])
def test_unknown_flags_are_bad_arguments(client: Client, base: str, op: int, flags: int) -> None:
    assert client.call(create(op, f"{base}/n", flags)).err == Code.BAD_ARGUMENTS


@pytest.mark.parametrize(
    ("flags", "suffix"), [(0, ""), (1, ""), (2, "0000000000"), (3, "0000000000"), (4, "")]
)
def test_create_container_makes_a_container_whatever_its_flags(
    client: Client, base: str, flags: int, suffix: str
) -> None:
    reply = client.call(rq.create_container(f"{base}/c", b"x", flags=flags))
    assert reply.path == f"{base}/c{suffix}"
    assert reply.stat.ephemeral_owner == 0
    assert client.call(rq.get_ephemerals(base)).names == set()


@pytest.mark.parametrize(("flags", "suffix"), [(Mode.TTL, ""), (Mode.SEQUENTIAL_TTL, "0000000000")])
@pytest.mark.parametrize("ttl_ms", [LONG_TTL_MS, 0xFFFFFFFFFF])
def test_create_ttl_takes_ttls_up_to_forty_bits(
    client: Client, base: str, flags: int, suffix: str, ttl_ms: int
) -> None:
    reply = client.call(rq.create_ttl(f"{base}/t", ttl_ms, flags=flags))
    assert reply.path == f"{base}/t{suffix}"
    assert reply.stat.ephemeral_owner == 0


@pytest.mark.parametrize("flags", [Mode.TTL, Mode.SEQUENTIAL_TTL])
@pytest.mark.parametrize("ttl_ms", [0, -1, -5, 0x10000000000, 1 << 62])
def test_create_ttl_refuses_ttls_out_of_range(
    client: Client, base: str, flags: int, ttl_ms: int
) -> None:
    reply = client.call(rq.create_ttl(f"{base}/t", ttl_ms, flags=flags))
    assert reply.err == Code.BAD_ARGUMENTS


@pytest.mark.parametrize("flags", range(5))
@pytest.mark.parametrize("ttl_ms", [0, 1, LONG_TTL_MS])
def test_create_ttl_refuses_modes_without_a_ttl(
    client: Client, base: str, flags: int, ttl_ms: int
) -> None:
    reply = client.call(rq.create_ttl(f"{base}/t", ttl_ms, flags=flags))
    assert reply.err == Code.BAD_ARGUMENTS


@pytest.mark.parametrize("flags", range(5))
@pytest.mark.parametrize("ttl_ms", [-1, -(1 << 63)])
def test_create_ttl_with_a_negative_ttl_is_refused_and_harmless(
    server: Server, client: Client, base: str, flags: int, ttl_ms: int
) -> None:
    if not TTL_BELOW_ZERO_IS_SAFE.on(server):
        # It would not survive this one; a mode that wants a TTL shows the answer at least.
        flags = Mode.TTL
    reply = client.call(rq.create_ttl(f"{base}/t", ttl_ms, flags=flags))
    assert reply.err == Code.BAD_ARGUMENTS


@pytest.mark.parametrize("op", [Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL])
def test_create_with_stat_answers_the_new_nodes_stat(client: Client, base: str, op: int) -> None:
    flags = Mode.TTL if op == Op.CREATE_TTL else Mode.PERSISTENT
    reply = client.call(create(op, f"{base}/n", flags, b"four"))
    assert reply.stat == client.call(rq.exists(f"{base}/n")).stat
    stat = reply.stat
    assert stat.czxid == stat.mzxid == stat.pzxid == reply.zxid
    assert (stat.version, stat.cversion, stat.aversion) == (0, 0, 0)
    assert (stat.data_length, stat.num_children) == (4, 0)
    assert stat.ctime == stat.mtime


@pytest.mark.parametrize("data", [None, b"", b"\x00", b"x" * 100_000])
def test_data_comes_back_as_written_null_or_empty(
    client: Client, base: str, data: bytes | None
) -> None:
    reply = client.call(rq.create2(f"{base}/n", data))
    assert reply.stat.data_length == len(data or b"")
    assert client.call(rq.get_data(f"{base}/n")).data == data


@pytest.mark.parametrize("op", ALL_CREATES)
def test_create_of_what_exists_is_node_exists(client: Client, base: str, op: int) -> None:
    flags = Mode.TTL if op == Op.CREATE_TTL else Mode.PERSISTENT
    assert client.call(create(op, f"{base}/n", flags)).err == Code.OK
    assert client.call(create(op, f"{base}/n", flags)).err == Code.NODE_EXISTS


@pytest.mark.parametrize("op", ALL_CREATES)
def test_create_without_a_parent_is_no_node(client: Client, base: str, op: int) -> None:
    flags = Mode.TTL if op == Op.CREATE_TTL else Mode.PERSISTENT
    assert client.call(create(op, f"{base}/none/n", flags)).err == Code.NO_NODE


@pytest.mark.parametrize("op", ALL_CREATES)
@pytest.mark.parametrize("sequential", [False, True])
def test_ephemerals_have_no_children(client: Client, base: str, op: int, sequential: bool) -> None:
    client.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    flags = Mode.SEQUENTIAL if sequential else Mode.PERSISTENT
    if op == Op.CREATE_TTL:
        flags = Mode.SEQUENTIAL_TTL if sequential else Mode.TTL
    reply = client.call(create(op, f"{base}/e/n", flags))
    assert reply.err == Code.NO_CHILDREN_FOR_EPHEMERALS


def test_containers_and_ttl_nodes_have_children(client: Client, base: str) -> None:
    client.call(rq.create_container(f"{base}/c"))
    client.call(rq.create_ttl(f"{base}/t", LONG_TTL_MS))
    for parent in (f"{base}/c", f"{base}/t"):
        assert client.call(rq.create(f"{parent}/n")).path == f"{parent}/n"
        reply = client.call(rq.create(f"{parent}/e", flags=Mode.EPHEMERAL))
        assert reply.path == f"{parent}/e"


def test_create_of_the_root_exists_but_can_be_the_sequential_prefix(client: Client) -> None:
    assert client.call(rq.create("/")).err == Code.NODE_EXISTS
    path = client.call(rq.create("/", flags=Mode.SEQUENTIAL)).path
    assert len(path) == 11
    assert path[1:].isdigit()
    assert client.call(rq.delete(path)).err == Code.OK


BAD_ACL = (Acl(31, "nobody", "knows"),)


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (rq.create("no-slash", acl=BAD_ACL, flags=9), Code.BAD_ARGUMENTS),
        (rq.create("no-slash", acl=BAD_ACL), Code.BAD_ARGUMENTS),
        (rq.create("/none/\x01", acl=BAD_ACL), Code.INVALID_ACL),
        (rq.create("/none/\x01"), Code.NO_NODE),
        (rq.create("/\x01"), Code.BAD_ARGUMENTS),
        (rq.create("/zookeeper/\x01"), Code.BAD_ARGUMENTS),
    ],
)
def test_refusals_come_in_a_fixed_order(client: Client, request_: Request, code: int) -> None:
    """Flags, then a path without a slash, then the ACL, then the parent, then the whole path."""
    assert client.call(request_).err == code


def test_an_ephemeral_parent_matters_after_existence(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    reply = client.call(rq.create(f"{base}/e/\x01"))
    assert reply.err == Code.BAD_ARGUMENTS
