"""Quotas: what is refused, what is told, and that none of it depends on more than the log."""

from __future__ import annotations

import pytest

from paddock.errors import BAD_VERSION, OK, QUOTA_EXCEEDED
from paddock.protocol import opcodes
from paddock.protocol.requests import CreateRequest, SetDataRequest, VersionRequest
from paddock.state.entry import ENFORCE_QUOTA, EXTENDED_TYPES, LOOSE_QUOTAS, RULES
from paddock.state.machine import StateMachine
from paddock.state.snapshot import Snapshot, restore
from tests.property.dump import dump
from tests.unit.state.driver import OPEN, Connection, World, sentence

LIMITS = b"/zookeeper/quota/app/zookeeper_limits"
STATISTICS = b"/zookeeper/quota/app/zookeeper_stats"


@pytest.fixture
def world() -> World:
    world = World()
    world.flags = EXTENDED_TYPES | ENFORCE_QUOTA
    return world


@pytest.fixture
def client(world: World) -> Connection:
    client = world.open()
    client.create(b"/app")
    return client


def limit(client: Connection, text: bytes) -> None:
    for path, data in ((b"/zookeeper/quota/app", b""), (LIMITS, text), (STATISTICS, b"")):
        assert client.create(path, data).error == OK


def test_what_goes_over_a_hard_limit_is_refused_and_told(client: Connection) -> None:
    limit(client, b"countHardLimit=2,byteHardLimit=10")
    assert client.create(b"/app/a", b"12345").error == OK
    outcome = client.create(b"/app/b")
    assert (outcome.error, outcome.changes) == (QUOTA_EXCEEDED, [])
    assert sentence(outcome) == "quota of /app exceeded: 3 nodes, the hard limit is 2: refused"
    outcome = client.set(b"/app", b"123456")
    assert outcome.error == QUOTA_EXCEEDED
    assert sentence(outcome) == "quota of /app exceeded: 11 bytes, the hard limit is 10: refused"
    assert client.get(STATISTICS).data == b"count=2,bytes=5"


def test_without_the_flag_a_hard_limit_is_only_told(world: World, client: Connection) -> None:
    world.flags = EXTENDED_TYPES
    limit(client, b"countHardLimit=1,byteHardLimit=10")
    outcome = client.create(b"/app/a")
    assert outcome.error == OK
    assert sentence(outcome) == (
        "quota of /app exceeded: 2 nodes, the hard limit is 1, which is not enforced"
    )
    assert sentence(client.set(b"/app/a", b"x" * 11)) == (
        "quota of /app exceeded: 11 bytes, the hard limit is 10, which is not enforced"
    )


def test_a_soft_limit_is_told_whether_limits_are_enforced_or_not(
    world: World, client: Connection
) -> None:
    limit(client, b"count=2,bytes=10=;countHardLimit=9;byteHardLimit=100")
    for flags in (EXTENDED_TYPES, EXTENDED_TYPES | ENFORCE_QUOTA):
        world.flags = flags
        first, second = client.create(b"/app/a"), client.create(b"/app/b")
        assert (first.notice, second.error) == (None, OK)
        assert sentence(second) == "quota of /app exceeded: 3 nodes, the soft limit is 2"
        outcome = client.set(b"/app", b"x" * 11)
        assert sentence(outcome) == "quota of /app exceeded: 11 bytes, the soft limit is 10"
        assert client.set(b"/app", b"").notice is None
        assert client.delete(b"/app/a").notice is None
        assert client.delete(b"/app/b").notice is None


def test_both_limits_at_once_tell_the_count_and_refuse_by_the_bytes(client: Connection) -> None:
    limit(client, b"count=1,byteHardLimit=10")
    assert "2 nodes, the soft limit is 1" in sentence(client.create(b"/app/a", b"1"))
    assert "bytes, the hard limit is 10: refused" in sentence(client.create(b"/app/b", bytes(10)))


def test_a_refusal_comes_before_the_version(client: Connection) -> None:
    limit(client, b"byteHardLimit=1")
    assert client.set(b"/app", b"12", 7).error == QUOTA_EXCEEDED
    assert client.set(b"/app", b"1", 7).error == BAD_VERSION


def test_a_transaction_cannot_go_over_a_limit(world: World, client: Connection) -> None:
    limit(client, b"countHardLimit=2")
    before = dump(world.machine)
    outcome = client.multi(
        (opcodes.CREATE, CreateRequest(b"/app/a", b"", OPEN, 0)),
        (opcodes.CREATE, CreateRequest(b"/app/b", b"", OPEN, 0)),
    )
    assert "3 nodes, the hard limit is 2: refused" in sentence(outcome)
    after = dump(world.machine)
    for one in (before, after):
        del one["zxid"], one["time_ms"]
    assert after == before


def test_a_transaction_can_put_one_node_in_place_of_another(client: Connection) -> None:
    limit(client, b"countHardLimit=2")
    client.create(b"/app/a")
    outcome = client.multi(
        (opcodes.DELETE, VersionRequest(b"/app/a", -1)),
        (opcodes.CREATE, CreateRequest(b"/app/b", b"", OPEN, 0)),
    )
    assert (outcome.error, outcome.notice, len(outcome.changes)) == (OK, None, 2)


def test_a_transaction_that_fails_otherwise_tells_nothing_of_limits(client: Connection) -> None:
    limit(client, b"count=1")
    outcome = client.multi(
        (opcodes.CREATE, CreateRequest(b"/app/a", b"", OPEN, 0)),
        (opcodes.SET_DATA, SetDataRequest(b"/app/none", b"", -1)),
    )
    assert outcome.notice is None


@pytest.mark.parametrize("text", [None, b"nonsense"])
def test_limits_that_make_no_sense_limit_nothing_and_that_is_told(
    client: Connection, text: bytes | None
) -> None:
    limit(client, b"countHardLimit=0")
    client.set(LIMITS, text)
    outcome = client.create(b"/app/a")
    assert outcome.error == OK
    assert sentence(outcome) == (
        f"quota of /app limits nothing: {LIMITS.decode()} is missing or cannot be read"
    )


def test_without_statistics_nothing_is_limited_and_that_is_told(client: Connection) -> None:
    limit(client, b"countHardLimit=0")
    client.delete(STATISTICS)
    outcome = client.create(b"/app/a")
    assert outcome.error == OK
    assert STATISTICS.decode() in sentence(outcome)


def test_changed_limits_count_at_once(client: Connection) -> None:
    limit(client, b"countHardLimit=1")
    assert client.create(b"/app/a").error == QUOTA_EXCEEDED
    client.set(LIMITS, b"countHardLimit=2")
    assert client.create(b"/app/a").error == OK
    assert client.create(b"/app/b").error == QUOTA_EXCEEDED
    client.delete(LIMITS)
    assert client.create(b"/app/b").error == OK


def test_limits_changed_by_a_transaction_that_failed_did_not_change(client: Connection) -> None:
    limit(client, b"countHardLimit=1")
    client.multi(
        (opcodes.SET_DATA, SetDataRequest(LIMITS, b"countHardLimit=9", -1)),
        (opcodes.CREATE, CreateRequest(b"/app/a", b"", OPEN, 0)),
        (opcodes.CREATE, CreateRequest(b"/app/a", b"", OPEN, 0)),
    )
    assert client.get(STATISTICS).data == b"count=1,bytes=0"
    assert client.create(b"/app/a").error == QUOTA_EXCEEDED


def test_a_restored_snapshot_goes_on_counting_and_refusing(
    world: World, client: Connection
) -> None:
    limit(client, b"countHardLimit=3")
    client.create(b"/app/a", b"x")
    restored = World(restore(Snapshot(world.machine).chunks()))
    restored.flags, restored.time_ms = world.flags, world.time_ms
    again = Connection(restored, client.session, client.generation)
    assert again.create(b"/app/b", b"yz").error == OK
    assert again.create(b"/app/c").error == QUOTA_EXCEEDED
    assert again.get(STATISTICS).data == b"count=3,bytes=3"
    client.create(b"/app/b", b"yz")
    client.create(b"/app/c")
    assert restored.machine.digest() == world.machine.digest()


@pytest.mark.parametrize("rest", [b"x" * 943 + b"=1", b"x" * 985 + b"=1", b"\xff" * 500 + b"=1"])
def test_a_client_cannot_make_a_restored_state_count_otherwise(
    world: World, client: Connection, rest: bytes
) -> None:
    limit(client, b"countHardLimit=9")
    assert client.set(STATISTICS, rest).error == OK
    client.create(b"/app/a")
    restored = World(restore(Snapshot(world.machine).chunks()))
    restored.flags, restored.time_ms = world.flags, world.time_ms
    again = Connection(restored, client.session, client.generation)
    told = [sentence(one.create(b"/app/b")) for one in (client, again)]
    assert restored.machine.digest() == world.machine.digest()
    assert told[0] == told[1]
    assert ("cannot be read" in told[0]) == (len(rest) != 945)


def test_a_log_of_former_rules_is_replayed_as_it_was_applied(
    world: World, client: Connection
) -> None:
    limit(client, b"countHardLimit=9")
    client.set(STATISTICS, b"x" * 985 + b"=1")
    world.rules = LOOSE_QUOTAS
    for name in (b"/app/a", b"/app/b"):
        client.create(name)
    # As it was served then, and named in the digests of that log.
    served = b"count=1,bytes=-1=;" + b"x" * 985 + b"=1"
    assert client.get(STATISTICS).data == served
    world.rules = RULES
    client.create(b"/app/c")
    assert client.get(STATISTICS).data == served
    machine = StateMachine()
    for entry in world.entries:
        machine.apply(entry)
    assert dump(machine) == dump(world.machine)


def test_whether_limits_are_enforced_is_in_the_log(world: World, client: Connection) -> None:
    limit(client, b"countHardLimit=1")
    codes = []
    for flags in (EXTENDED_TYPES | ENFORCE_QUOTA, EXTENDED_TYPES):
        world.flags = flags
        codes.append(client.create(b"/app/a").error)
    assert codes == [QUOTA_EXCEEDED, OK]
    machine = StateMachine()
    for entry in world.entries:
        machine.apply(entry)
    assert dump(machine) == dump(world.machine)


def test_a_quota_far_above_is_found_by_its_name_alone(client: Connection) -> None:
    """5,000 levels: looking up each of the paths above would take as long as a second."""
    limit(client, b"countHardLimit=4997")
    path = b"/app"
    for _ in range(4996):
        path += b"/d"
        assert client.create(path).error == OK
    assert client.create(path + b"/d").error == QUOTA_EXCEEDED
    assert client.get(STATISTICS).data == b"count=4997,bytes=0"
