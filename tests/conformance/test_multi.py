"""multi: all or nothing, with a result for each operation."""

from __future__ import annotations

import pytest

from tests.conformance.differences import (
    CREATE2_IN_A_MULTI_HAS_A_STAT,
    MULTI_BAD_FLAGS_FAIL_ALONE,
    MULTI_ERROR_HAS_BODY,
    MULTI_MAKES_CONTAINERS_OF_ANY_FLAGS,
    MULTI_NULL_PATH_HIDES_ITS_ZXID,
)
from tests.support import requests as rq
from tests.support.records import (
    MULTI_HEADER,
    OPEN,
    Acl,
    Code,
    EventType,
    Mode,
    Op,
    Request,
    Result,
)
from tests.support.server import Server
from tests.support.wire import Client, events

BAD_FLAGS = rq.create("/x", flags=9)
TTL_FLAGS = rq.create("/x", flags=5)


def stat_of(client: Client, path: str) -> int:
    return client.call(rq.exists(path)).err


def test_every_operation_has_its_result(server: Server, client: Client, base: str) -> None:
    reply = client.call(
        rq.multi(
            rq.create(f"{base}/a", b"1"),
            rq.create2(f"{base}/b"),
            rq.create_container(f"{base}/c"),
            rq.create_ttl(f"{base}/t", 3_600_000),
            rq.check(f"{base}/a", 0),
            rq.set_data(f"{base}/a", b"22"),
            rq.delete(f"{base}/c"),
        )
    )
    assert reply.err == Code.OK
    a, b, c, t, check, set_data, delete = reply.results
    assert a == Result(Op.CREATE, path=f"{base}/a")
    if CREATE2_IN_A_MULTI_HAS_A_STAT.on(server):
        assert (b.type, b.path) == (Op.CREATE2, f"{base}/b")
        assert b.stat == client.call(rq.exists(f"{base}/b")).stat
    else:
        assert b == Result(Op.CREATE, path=f"{base}/b")
    assert (c.type, c.path) == (Op.CREATE2, f"{base}/c")
    assert c.stat is not None
    assert (c.stat.czxid, c.stat.num_children) == (reply.zxid, 0)
    assert (t.type, t.path) == (Op.CREATE2, f"{base}/t")
    assert t.stat == client.call(rq.exists(f"{base}/t")).stat
    assert check == Result(Op.CHECK)
    assert (set_data.type, set_data.stat) == (
        Op.SET_DATA,
        client.call(rq.exists(f"{base}/a")).stat,
    )
    assert delete == Result(Op.DELETE)


def test_a_failure_undoes_everything_and_is_told_for_each(client: Client, base: str) -> None:
    before = client.call(rq.get_children2(base)).stat
    reply = client.call(
        rq.multi(
            rq.create(f"{base}/a"),
            rq.set_data(base, b"x"),
            rq.check(base, 9),
            rq.create(f"{base}/b"),
            rq.delete(f"{base}/none"),
        )
    )
    assert reply.err == Code.OK
    assert reply.results == (
        Result(-1, Code.OK),
        Result(-1, Code.OK),
        Result(-1, Code.BAD_VERSION),
        Result(-1, Code.RUNTIME_INCONSISTENCY),
        Result(-1, Code.RUNTIME_INCONSISTENCY),
    )
    after = client.call(rq.get_children2(base))
    assert after.stat == before
    assert after.zxid == reply.zxid


@pytest.mark.parametrize(
    ("request_", "code"),
    [
        (rq.create("/zookeeper"), Code.NODE_EXISTS),
        (rq.create("/none/n"), Code.NO_NODE),
        (rq.create("bad"), Code.BAD_ARGUMENTS),
        (rq.create("/x", acl=()), Code.INVALID_ACL),
        (BAD_FLAGS, Code.BAD_ARGUMENTS),
        (rq.create("/zookeeper/config/x"), Code.NO_AUTH),
        (rq.create_ttl("/x", 0), Code.BAD_ARGUMENTS),
        (rq.create_ttl("/x", 5, flags=9), Code.BAD_ARGUMENTS),
        (rq.delete("/none"), Code.NO_NODE),
        (rq.delete("/zookeeper"), Code.BAD_ARGUMENTS),
        (rq.delete("/"), Code.BAD_ARGUMENTS),
        (rq.set_data("/none", b""), Code.NO_NODE),
        (rq.set_data("bad", b""), Code.BAD_ARGUMENTS),
        (rq.set_data("/", b"", 1 << 30), Code.BAD_VERSION),
        (rq.check("/none"), Code.NO_NODE),
        (rq.check("/", 1 << 30), Code.BAD_VERSION),
        (rq.check("", 0), Code.BAD_ARGUMENTS),
    ],
)
def test_the_failing_operations_code_is_its_own(
    server: Server, client: Client, request_: Request, code: int
) -> None:
    before = client.call(rq.exists("/")).zxid
    reply = client.call(rq.multi(rq.check("/"), request_))
    if request_ == BAD_FLAGS and not MULTI_BAD_FLAGS_FAIL_ALONE.on(server):
        assert (reply.err, reply.body) == (Code.MARSHALLING_ERROR, b"")
        return
    assert reply.results == (Result(-1, 0), Result(-1, code))
    assert reply.zxid == before + 1


def test_later_operations_see_earlier_ones(client: Client, base: str) -> None:
    reply = client.call(
        rq.multi(
            rq.create(f"{base}/p"),
            rq.create(f"{base}/p/c"),
            rq.set_data(f"{base}/p/c", b"1", 0),
            rq.check(f"{base}/p/c", 1),
            rq.delete(f"{base}/p/c", 1),
            rq.delete(f"{base}/p", 0),
            rq.create(f"{base}/p", b"new"),
        )
    )
    assert [result.err for result in reply.results] == [0] * 7
    assert all(result.type != -1 for result in reply.results)
    assert client.call(rq.get_data(f"{base}/p")).data == b"new"


def test_children_made_in_a_multi_keep_their_parent(client: Client, base: str) -> None:
    results = client.call(
        rq.multi(rq.create(f"{base}/p"), rq.create(f"{base}/p/c"), rq.delete(f"{base}/p"))
    ).results
    assert [result.err for result in results] == [0, 0, Code.NOT_EMPTY]


def test_an_ephemeral_made_in_a_multi_has_no_children(client: Client, base: str) -> None:
    results = client.call(
        rq.multi(rq.create(f"{base}/e", flags=Mode.EPHEMERAL), rq.create(f"{base}/e/c"))
    ).results
    assert [result.err for result in results] == [0, Code.NO_CHILDREN_FOR_EPHEMERALS]


def test_an_empty_multi_succeeds_and_takes_a_zxid(client: Client) -> None:
    before = client.call(rq.exists("/")).zxid
    reply = client.call(rq.multi())
    assert (reply.err, reply.results, reply.zxid) == (Code.OK, (), before + 1)


#: In a multi it is the flags and not the opcode that decide what is created.
MODES: dict[str, tuple[Request, int, bool]] = {
    "createContainer 0": (rq.create_container("{}", flags=0), Op.CREATE, False),
    "createContainer 1": (rq.create_container("{}", flags=1), Op.CREATE, True),
    "createContainer 4": (rq.create_container("{}", flags=4), Op.CREATE2, False),
    "create 4": (rq.create("{}", flags=4), Op.CREATE2, False),
    "create2 4": (rq.create2("{}", flags=4), Op.CREATE2, False),
    "createTTL 0": (rq.create_ttl("{}", 10, flags=0), Op.CREATE, False),
    "createTTL 0 below zero": (rq.create_ttl("{}", -1, flags=0), Op.CREATE, False),
    "createTTL 1": (rq.create_ttl("{}", 10, flags=1), Op.CREATE, True),
    "createTTL 4": (rq.create_ttl("{}", -1, flags=4), Op.CREATE2, False),
    "createTTL 5": (rq.create_ttl("{}", 3_600_000, flags=5), Op.CREATE2, False),
}


@pytest.mark.parametrize("name", list(MODES))
def test_flags_decide_what_a_multi_creates(
    server: Server, client: Client, base: str, name: str
) -> None:
    template, kind, ephemeral = MODES[name]
    if template.op == Op.CREATE_CONTAINER and MULTI_MAKES_CONTAINERS_OF_ANY_FLAGS.on(server):
        kind, ephemeral = Op.CREATE2, False
    path = f"{base}/n"
    body = rq.string(path) + template.body[len(rq.string("{}")) :]
    (result,) = client.call(rq.multi(Request(template.op, body))).results
    assert (result.type, result.path) == (kind, path)
    owner = client.call(rq.exists(path)).stat.ephemeral_owner
    assert owner == (client.session_id if ephemeral else 0)


UNDECODABLE = {
    "create with ttl flags": rq.multi(rq.create("/x", flags=5)),
    "create2 with ttl flags": rq.multi(rq.create2("/x", flags=6)),
    "createContainer with ttl flags": rq.multi(rq.create_container("/x", flags=5)),
    "a good operation before it": rq.multi(rq.set_data("/", b""), rq.create("/x", flags=5)),
    "a read": rq.multi(rq.get_data("/")),
    "a children read": rq.multi(rq.get_children("/")),
    "a write and a read": rq.multi(rq.set_data("/", b""), rq.get_data("/")),
    "setACL": rq.multi(rq.set_acl("/", OPEN)),
    "deleteContainer": rq.multi(rq.delete_container("/x")),
    "exists": rq.multi(rq.exists("/")),
    "sync": rq.multi(rq.sync("/")),
    "a multi": rq.multi(rq.multi()),
    "an unknown opcode": rq.multi(Request(99)),
    "no terminator": Request(Op.MULTI, rq.multi(rq.set_data("/", b"")).body[:-9]),
}


@pytest.mark.parametrize("name", list(UNDECODABLE))
def test_what_does_not_belong_in_a_multi_is_a_marshalling_error(client: Client, name: str) -> None:
    before = client.call(rq.get_data("/"))
    reply = client.call(UNDECODABLE[name])
    assert (reply.err, reply.body) == (Code.MARSHALLING_ERROR, b"")
    assert reply.zxid == before.zxid + 1
    assert client.call(rq.get_data("/")).stat == before.stat


@pytest.mark.parametrize("odd", [TTL_FLAGS, rq.create("/x", acl=(Acl(31, "world", None),))])
def test_what_fails_to_be_understood_only_when_its_turn_comes(
    server: Server, client: Client, odd: Request
) -> None:
    """These decode well: after an operation that failed they are not looked at."""
    assert client.call(rq.multi(rq.check("/"), odd)).err == Code.MARSHALLING_ERROR
    reply = client.call(rq.multi(rq.check("/none"), odd))
    if odd == TTL_FLAGS and not MULTI_BAD_FLAGS_FAIL_ALONE.on(server):
        assert reply.err == Code.MARSHALLING_ERROR
        return
    assert reply.results == (
        Result(-1, Code.NO_NODE),
        Result(-1, Code.RUNTIME_INCONSISTENCY),
    )


@pytest.mark.parametrize("request_", [rq.create(None), rq.delete(None), rq.set_data(None, b"")])
def test_a_null_path_in_a_multi_is_a_marshalling_error(
    server: Server, client: Client, request_: Request
) -> None:
    before = client.call(rq.exists("/")).zxid
    reply = client.call(rq.multi(request_))
    assert reply.err == Code.MARSHALLING_ERROR
    end = MULTI_HEADER.pack(-1, True, -1)
    assert reply.body == (end if MULTI_ERROR_HAS_BODY.on(server) else b"")
    assert reply.zxid == before + (not MULTI_NULL_PATH_HIDES_ITS_ZXID.on(server))
    assert client.call(rq.set_data("/", b"")).zxid == before + 2


def test_the_header_of_the_terminator_is_all_that_ends_it(client: Client, base: str) -> None:
    """Only `done` counts: a terminator of another type and error ends the list all the same."""
    create = rq.create(f"{base}/n")
    body = MULTI_HEADER.pack(create.op, False, 77) + create.body + MULTI_HEADER.pack(5, True, 3)
    assert client.call(Request(Op.MULTI, body)).results == (Result(Op.CREATE, path=f"{base}/n"),)


def test_a_failed_multi_fires_nothing(client: Client, other: Client, base: str) -> None:
    other.call(rq.get_data(base, watch=True))
    other.call(rq.get_children(base, watch=True))
    client.call(rq.multi(rq.set_data(base, b"x"), rq.create(f"{base}/n"), rq.check(base, 9)))
    assert other.drain() == []


def test_a_multis_events_follow_its_operations(client: Client, other: Client, base: str) -> None:
    other.call(rq.add_watch(base, 1))
    client.call(
        rq.multi(
            rq.create(f"{base}/b"),
            rq.set_data(f"{base}/b", b"1"),
            rq.create(f"{base}/a"),
            rq.check(base),
            rq.delete(f"{base}/b"),
        )
    )
    assert other.drain() == events(
        (EventType.CREATED, f"{base}/b"),
        (EventType.DATA_CHANGED, f"{base}/b"),
        (EventType.CREATED, f"{base}/a"),
        (EventType.DELETED, f"{base}/b"),
    )


def test_pipelined_multis_see_each_other(client: Client, base: str) -> None:
    fail = rq.multi(rq.create(f"{base}/n", flags=2), rq.check(f"{base}/none"))
    work = rq.multi(rq.create(f"{base}/n", flags=2), rq.set_data(base, b""))
    replies = client.calls(work, fail, work, fail, rq.create(f"{base}/n", flags=2))
    made = [replies[i].results[0].path for i in (0, 2)] + [replies[4].path]
    assert made == [f"{base}/n000000000{i}" for i in range(3)]
    assert client.call(rq.exists(base)).stat.version == 2
