"""Hard limits on a server with `enforceQuota=true`: what is refused, and what is not."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator

import pytest
from kazoo.client import KazooClient
from kazoo.exceptions import QuotaExceededError

from tests.conformance.conftest import another
from tests.conformance.differences import (
    QUOTA_DIGITS,
    QUOTA_EXCHANGE,
    QUOTA_LIMITS_NONSENSE,
    QUOTA_NODES_ARE_HARMLESS,
    QUOTA_OF_A_TRANSACTION,
)
from tests.support import requests as rq
from tests.support import wire, zkcli
from tests.support.records import READ_ONLY, Code, Mode, Request
from tests.support.server import SUPER_CREDENTIALS, Options, Server
from tests.support.wire import Client

OVER = Code.QUOTA_EXCEEDED
QUOTA = "/zookeeper/quota"

_numbers = itertools.count()


@pytest.fixture(scope="module")
def enforcing(server: Server) -> Iterator[Server]:
    """A server of the same kind that enforces limits."""
    with another(server, Options(extra=(("enforceQuota", "true"),))) as own:
        yield own


@pytest.fixture
def client(enforcing: Server) -> Iterator[Client]:
    with wire.connect(enforcing.address) as client:
        yield client
        client.close()


@pytest.fixture
def base(client: Client) -> str:
    path = f"/quota{next(_numbers):03d}"
    assert client.call(rq.create(path)).err == Code.OK
    return path


def limit(client: Client, path: str, limits: bytes | None, statistics: bytes = b"") -> None:
    """Set a quota on a node, as a client would."""
    above = QUOTA
    for name in path[1:].split("/"):
        above += f"/{name}"
        assert client.call(rq.create(above)).err in (Code.OK, Code.NODE_EXISTS)
    assert client.call(rq.create(f"{above}/zookeeper_limits", limits)).err == Code.OK
    assert client.call(rq.create(f"{above}/zookeeper_stats", statistics)).err == Code.OK


def counted(client: Client, path: str) -> bytes | None:
    return client.call(rq.get_data(f"{QUOTA}{path}/zookeeper_stats")).data


CREATES: dict[str, Callable[[str], Request]] = {
    "create": rq.create,
    "create2": rq.create2,
    "createContainer": rq.create_container,
    "createTTL": lambda path: rq.create_ttl(path, 3_600_000),
    "ephemeral": lambda path: rq.create(path, flags=Mode.EPHEMERAL),
    "sequential": lambda path: rq.create(path, flags=Mode.SEQUENTIAL),
    "multi": lambda path: rq.multi(rq.create(path)),
}


@pytest.mark.parametrize("name", CREATES)
def test_every_kind_of_create_is_refused_over_the_count(
    client: Client, base: str, name: str
) -> None:
    limit(client, base, b"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=2")
    for number, expected in enumerate((Code.OK, OVER, OVER)):
        reply = client.call(CREATES[name](f"{base}/{number}"))
        error = reply.results[0].err if name == "multi" else reply.err
        assert error == expected
    assert counted(client, base) == b"count=2,bytes=0"
    assert len(client.call(rq.get_children(base)).names) == 1


def test_a_refused_write_takes_a_zxid_and_changes_nothing(client: Client, base: str) -> None:
    limit(client, base, b"countHardLimit=1,byteHardLimit=3")
    before = client.call(rq.exists(base))
    first = client.call(rq.create(f"{base}/n"))
    second = client.call(rq.set_data(base, b"1234"))
    assert (first.err, second.err) == (OVER, OVER)
    assert (first.zxid, second.zxid) == (before.zxid + 1, before.zxid + 2)
    assert client.call(rq.exists(base)).stat == before.stat


@pytest.mark.parametrize(
    ("steps", "total"),
    [
        ([(3, True), (4, False), (3, True), (2, True), (0, True)], 0),
        ([(4, False), (None, True), (3, True), (None, True)], 0),
    ],
)
def test_data_may_be_as_long_as_the_limit(
    client: Client, base: str, steps: list[tuple[int | None, bool]], total: int
) -> None:
    limit(client, base, b"byteHardLimit=3")
    for size, fits in steps:
        reply = client.call(rq.set_data(base, None if size is None else b"x" * size))
        assert reply.err == (Code.OK if fits else OVER), size
    assert counted(client, base) == b"count=1,bytes=%d" % total


def test_who_is_over_a_byte_limit_may_keep_the_length_or_come_below_it(
    client: Client, base: str
) -> None:
    client.call(rq.set_data(base, b"123456"))
    limit(client, base, b"byteHardLimit=3")
    for data, expected in (
        (b"654321", Code.OK),
        (b"12345", OVER),
        (b"1234567", OVER),
        (b"123", Code.OK),
        (b"1234", OVER),
    ):
        assert client.call(rq.set_data(base, data)).err == expected, data
    assert client.call(rq.create(f"{base}/empty")).err == Code.OK
    assert client.call(rq.create(f"{base}/null", None)).err == Code.OK
    assert client.call(rq.create(f"{base}/more", b"x")).err == OVER


def test_deleting_makes_room(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/a", b"1234"))
    limit(client, base, b"countHardLimit=2,byteHardLimit=4")
    assert client.call(rq.create(f"{base}/b")).err == OVER
    assert client.call(rq.delete(f"{base}/a")).err == Code.OK
    assert client.call(rq.create(f"{base}/b", b"12345")).err == OVER
    assert client.call(rq.create(f"{base}/b", b"1234")).err == Code.OK


def test_the_end_of_a_session_makes_room(enforcing: Server, client: Client, base: str) -> None:
    limit(client, base, b"countHardLimit=2")
    with wire.connect(enforcing.address) as other:
        assert other.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL)).err == Code.OK
        assert client.call(rq.create(f"{base}/n")).err == OVER
        other.close()
    assert client.call(rq.create(f"{base}/n")).err == Code.OK


def test_a_soft_limit_refuses_nothing(client: Client, base: str) -> None:
    limit(client, base, b"count=1,bytes=1=;byteHardLimit=-1;countHardLimit=-1")
    assert client.call(rq.create(f"{base}/a", b"12345")).err == Code.OK
    assert client.call(rq.set_data(base, b"12345")).err == Code.OK


def test_the_hard_limit_counts_where_the_soft_one_is_lower_or_higher(
    client: Client, base: str
) -> None:
    for soft in (1, 9):
        node = f"{base}/{soft}"
        client.call(rq.create(node))
        limit(client, node, b"count=%d,bytes=-1=;byteHardLimit=-1;countHardLimit=3" % soft)
        errors = [client.call(rq.create(f"{node}/{name}")).err for name in "abc"]
        assert errors == [Code.OK, Code.OK, OVER]


def test_which_error_comes_first(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/a"))
    client.call(rq.create(f"{base}/locked", acl=READ_ONLY))
    client.call(rq.create(f"{base}/e", flags=Mode.EPHEMERAL))
    limit(client, base, b"countHardLimit=0,byteHardLimit=0")
    for request, expected in (
        (rq.create(f"{base}/a"), Code.NODE_EXISTS),
        (rq.create(f"{base}/none/a"), Code.NO_NODE),
        (rq.create(f"{base}/locked/a"), Code.NO_AUTH),
        (rq.create(f"{base}/e/a"), Code.NO_CHILDREN_FOR_EPHEMERALS),
        (rq.create(f"{base}/b", acl=()), Code.INVALID_ACL),
        (rq.set_data(f"{base}/none", b"x"), Code.NO_NODE),
        (rq.set_data(f"{base}/locked", b"x"), Code.NO_AUTH),
        (rq.set_data(f"{base}/a", b"x", 7), OVER),
        (rq.set_data(f"{base}/a", b"", 7), Code.BAD_VERSION),
    ):
        assert client.call(request).err == expected, request


def test_the_nearest_quota_counts_and_no_other(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/in"))
    limit(client, base, b"countHardLimit=2")
    limit(client, f"{base}/in", b"countHardLimit=3")
    errors = [client.call(rq.create(f"{base}/in/{name}")).err for name in "abc"]
    assert errors == [Code.OK, Code.OK, OVER]
    assert client.call(rq.create(f"{base}/out")).err == OVER
    assert counted(client, base) == b"count=2,bytes=0"
    assert counted(client, f"{base}/in") == b"count=3,bytes=0"


def test_a_quota_can_be_there_before_its_node(client: Client, base: str) -> None:
    limit(client, f"{base}/later", b"countHardLimit=1,byteHardLimit=3", b"nonsense")
    assert counted(client, f"{base}/later") == b"count=0,bytes=0"
    assert client.call(rq.create(f"{base}/later", b"1234")).err == OVER
    assert client.call(rq.create(f"{base}/later", b"123")).err == Code.OK
    assert client.call(rq.create(f"{base}/later/n")).err == OVER


def test_a_quota_that_comes_late_counts_what_is_there_and_lets_it_be(
    client: Client, base: str
) -> None:
    for name in "abc":
        client.call(rq.create(f"{base}/{name}", b"12"))
    limit(client, base, b"countHardLimit=2,byteHardLimit=2")
    assert counted(client, base) == b"count=4,bytes=6"
    assert client.call(rq.create(f"{base}/d")).err == OVER
    assert client.call(rq.set_acl(f"{base}/a", READ_ONLY)).err == Code.OK


def test_without_statistics_nothing_is_refused(client: Client, base: str) -> None:
    limit(client, base, b"countHardLimit=1")
    assert client.call(rq.delete(f"{QUOTA}{base}/zookeeper_stats")).err == Code.OK
    assert client.call(rq.create(f"{base}/n")).err == Code.OK


def test_changed_limits_count_at_once(client: Client, base: str) -> None:
    limit(client, base, b"countHardLimit=1")
    assert client.call(rq.create(f"{base}/a")).err == OVER
    limits = f"{QUOTA}{base}/zookeeper_limits"
    assert client.call(rq.set_data(limits, b"countHardLimit=2")).err == Code.OK
    assert client.call(rq.create(f"{base}/a")).err == Code.OK
    assert client.call(rq.create(f"{base}/b")).err == OVER
    assert client.call(rq.delete(limits)).err == Code.OK
    assert client.call(rq.create(f"{base}/b")).err == Code.OK


def test_the_super_user_is_limited_too(client: Client, base: str) -> None:
    limit(client, base, b"countHardLimit=1")
    client.call(rq.auth("digest", SUPER_CREDENTIALS))
    assert client.call(rq.create(f"{base}/n")).err == OVER


@pytest.mark.parametrize(
    ("limits", "errors"),
    [
        (b"", (0, 0)),
        (b",", (0, 0)),
        (b"count=1,bytes=1", (0, 0)),
        (b"countHardLimit=2", (0, OVER)),
        (b"countHardLimit=+2", (0, OVER)),
        (b"countHardLimit=1=9", (OVER, OVER)),
        (b"countHardLimit==1", (0, 0)),
        (b"countHardLimit=9,countHardLimit=2", (0, OVER)),
        (b"bytes=7;;,,countHardLimit=2,;", (0, OVER)),
        (b"=5;countHardLimit=2", (0, OVER)),
        (b"x\xff=1,countHardLimit=2", (0, OVER)),
        (b"countHardLimit=-0", (OVER, OVER)),
        (b"countHardLimit=-2", (0, 0)),
        (b"countHardLimit=9223372036854775807", (0, 0)),
    ],
)
def test_limits_written_by_hand(
    client: Client, base: str, limits: bytes, errors: tuple[int, int]
) -> None:
    limit(client, base, limits)
    assert tuple(client.call(rq.create(f"{base}/{name}")).err for name in "ab") == errors


@pytest.mark.parametrize(
    "limits",
    [
        *(None, b"nonsense", b"countHardLimit", b"countHardLimit=", b"countHardLimit= 1"),
        *(b",countHardLimit=1", b"countHardLimit=1\n", b"countHardLimit=0x1", b"count=1.0"),
        *(b"countHardLimit=9223372036854775808", b"countHardLimit=1\xff"),
    ],
)
def test_limits_that_cannot_be_read(
    server: Server, client: Client, base: str, limits: bytes | None
) -> None:
    limit(client, base, limits)
    expected = QUOTA_LIMITS_NONSENSE.on(server)
    assert client.call(rq.create(f"{base}/n")).err == expected
    assert client.call(rq.set_data(base, b"x")).err == expected


def test_limits_in_digits_of_another_script(server: Server, client: Client, base: str) -> None:
    limit(client, base, "countHardLimit=\u0662".encode())
    assert client.call(rq.create(f"{base}/a")).err == Code.OK
    assert client.call(rq.create(f"{base}/b")).err == QUOTA_DIGITS.on(server)


@pytest.mark.parametrize(
    ("statistics", "after"),
    [
        (b"", b"count=0,bytes=1"),
        (b"foo=3;bar=4", b"count=0,bytes=1=;bar=4;foo=3"),
        (b"bytes=10,count=-5", b"count=-4,bytes=12"),
        (b"count=1,bytes=2=;x=1", None),
    ],
)
def test_statistics_written_by_hand_are_believed(
    client: Client, base: str, statistics: bytes, after: bytes | None
) -> None:
    limit(client, base, b"countHardLimit=1")
    client.call(rq.set_data(f"{QUOTA}{base}/zookeeper_stats", statistics))
    reply = client.call(rq.create(f"{base}/n", b"ab"))
    assert reply.err == (OVER if after is None else Code.OK)
    assert counted(client, base) == (after or statistics)


def test_a_transaction_that_goes_over(server: Server, client: Client, base: str) -> None:
    limit(client, base, b"countHardLimit=2")
    expected = QUOTA_OF_A_TRANSACTION.on(server)
    results = client.call(rq.multi(rq.create(f"{base}/a"), rq.create(f"{base}/b"))).results
    assert [result.err for result in results] == [Code.OK, expected]


def test_a_transaction_that_exchanges(server: Server, client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/a"))
    limit(client, base, b"countHardLimit=2")
    results = client.call(rq.multi(rq.delete(f"{base}/a"), rq.create(f"{base}/b"))).results
    assert [result.err for result in results] == [Code.OK, QUOTA_EXCHANGE.on(server)]


def test_quota_nodes_that_nobody_expects_are_harmless(
    server: Server, client: Client, base: str
) -> None:
    if not QUOTA_NODES_ARE_HARMLESS.on(server):
        return
    limit(client, base, b"countHardLimit=3")
    statistics = f"{QUOTA}{base}/zookeeper_stats"
    for request in (
        rq.set_data(statistics, b"nonsense"),
        rq.create(f"{base}/a"),
        rq.set_data(statistics, None),
        rq.create(f"{base}/b"),
        rq.create(f"{QUOTA}/zookeeper_limits", b"countHardLimit=0"),
        rq.create(f"{base}/c"),
        rq.delete(f"{QUOTA}/zookeeper_limits"),
        rq.create("/zookeeper/other"),
        rq.create("/zookeeper/other/zookeeper_limits"),
        rq.delete("/zookeeper/other/zookeeper_limits"),
        rq.create(f"{QUOTA}/ "),
        rq.create(f"{QUOTA}/ /zookeeper_limits"),
        rq.delete(f"{QUOTA}/ /zookeeper_limits"),
    ):
        assert client.call(request).err == Code.OK, request


def test_the_shell_sets_a_limit_and_runs_into_it(enforcing: Server, base: str) -> None:
    outputs = zkcli.run(
        enforcing.address,
        [
            f"setquota -N 2 {base}",
            f"setquota -B 10 {base}",
            f"create {base}/a 12345",
            f"create {base}/b",
            f"set {base} 123456",
            f"listquota {base}",
            f"delquota {base}",
            f"create {base}/b",
        ],
    ).outputs
    assert outputs == [
        [],
        [],
        [f"Created {base}/a"],
        [f"Quota has exceeded : {base}/b"],
        [f"Quota has exceeded : {base}"],
        [
            f"absolute path is {QUOTA}{base}/zookeeper_limits",
            f"Output quota for {base} count=-1,bytes=-1=;byteHardLimit=10;countHardLimit=2",
            f"Output stat for {base} count=2,bytes=5",
        ],
        [],
        [f"Created {base}/b"],
    ]


def test_kazoo_is_told_that_a_quota_is_exceeded(
    enforcing: Server, client: Client, base: str
) -> None:
    limit(client, base, b"countHardLimit=2")
    kazoo = KazooClient(hosts=f"{enforcing.host}:{enforcing.port}")
    kazoo.start(timeout=30)
    try:
        kazoo.create(f"{base}/a")
        with pytest.raises(QuotaExceededError):
            kazoo.create(f"{base}/b")
    finally:
        kazoo.stop()
        kazoo.close()


def test_a_restart_keeps_what_was_counted(server: Server) -> None:
    with another(server, Options(extra=(("enforceQuota", "true"),))) as own:
        with wire.connect(own.address) as client:
            client.call(rq.create("/q", b"1"))
            limit(client, "/q", b"countHardLimit=2")
            client.call(rq.create("/q/a", b"23"))
            client.close()
        own.restart()
        with wire.connect(own.address) as client:
            assert counted(client, "/q") == b"count=2,bytes=3"
            assert client.call(rq.create("/q/b")).err == OVER
            client.close()
