"""The state machine: zxids, versions, refusals, transactions, and an answer to whatever comes."""

from __future__ import annotations

import pytest

from paddock.errors import (
    BAD_ARGUMENTS,
    BAD_VERSION,
    INVALID_ACL,
    MARSHALLING_ERROR,
    NO_AUTH,
    NO_CHILDREN_FOR_EPHEMERALS,
    NO_NODE,
    NODE_EXISTS,
    NOT_EMPTY,
    OK,
    RECONFIG_DISABLED,
    RUNTIME_INCONSISTENCY,
    SYSTEM_ERROR,
    UNIMPLEMENTED,
)
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ADMIN, ALL, ANYONE, CREATE, DELETE, READ, WRITE, Identity
from paddock.protocol.jute import BytesWriter, Reader
from paddock.protocol.records import MultiHeader, Stat
from paddock.protocol.replies import Create2Response, CreateResponse, IntResponse
from paddock.protocol.requests import (
    CreateRequest,
    CreateTTLRequest,
    PathRequest,
    ReconfigRequest,
    SetDataRequest,
    VersionRequest,
)
from paddock.state.entry import REAP
from paddock.state.machine import Outcome, StateMachine
from tests.property.dump import dump
from tests.unit.state.driver import OPEN, Connection, World, encode, multi_body

BOB = Identity("digest", "bob:hash")
INT_MAX = (1 << 31) - 1


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Connection:
    return world.open()


def sentence(outcome: Outcome) -> str:
    return "" if outcome.notice is None else outcome.notice.sentence()


def created(body: bytes) -> bytes:
    return CreateResponse.read(Reader(body)).path


class TestZxids:
    def test_a_write_that_fails_takes_one_and_returns_it(self, client: Connection) -> None:
        first = client.create(b"/a")
        second = client.create(b"/a")
        assert (second.error, second.zxid) == (NODE_EXISTS, first.zxid + 1)
        third = client.send(opcodes.DELETE, b"\0")
        assert (third.error, third.zxid) == (MARSHALLING_ERROR, first.zxid + 2)
        assert client.multi().zxid == first.zxid + 3

    def test_a_transaction_takes_one_for_all_its_operations(
        self, client: Connection, world: World
    ) -> None:
        outcome = client.multi(
            (opcodes.CREATE, CreateRequest(b"/a", b"", OPEN, 0)),
            (opcodes.CREATE, CreateRequest(b"/a/b", b"", OPEN, 0)),
        )
        assert world.stat(b"/a").czxid == world.stat(b"/a/b").czxid == outcome.zxid

    def test_reconfig_is_decoded_before_it_takes_one(
        self, client: Connection, world: World
    ) -> None:
        zxid = world.machine.zxid
        broken = client.send(opcodes.RECONFIG, b"\0\0")
        assert (broken.error, broken.zxid) == (MARSHALLING_ERROR, zxid)
        request = ReconfigRequest(None, None, None, -1)
        refused = client.send(opcodes.RECONFIG, encode(request))
        assert (refused.error, refused.zxid) == (RECONFIG_DISABLED, zxid + 1)

    def test_an_operation_that_nobody_knows_is_answered(self, client: Connection) -> None:
        assert client.send(4711, b"").error == UNIMPLEMENTED


class TestStat:
    def test_cversion_counts_creates_and_deletes(self, client: Connection, world: World) -> None:
        assert world.stat(b"/").cversion == -1
        assert world.stat(b"/zookeeper").cversion == -2
        client.create(b"/a")
        base = world.stat(b"/a").cversion
        for path in (b"/a/x", b"/a/y"):
            client.create(path)
        client.delete(b"/a/x")
        stat = world.stat(b"/a")
        assert (base, stat.cversion, stat.num_children) == (0, 3, 1)

    def test_pzxid_is_the_last_change_of_the_children_and_nothing_else(
        self, client: Connection, world: World
    ) -> None:
        client.create(b"/a")
        born = client.create(b"/a/x")
        assert world.stat(b"/a").pzxid == born.zxid
        client.set(b"/a", b"1")
        client.set(b"/a/x", b"1")
        client.set_acl(b"/a", OPEN)
        client.create(b"/a/x/y")
        assert world.stat(b"/a").pzxid == born.zxid
        assert client.delete(b"/a/x").error == NOT_EMPTY
        assert world.stat(b"/a").pzxid == born.zxid
        client.delete(b"/a/x/y")
        gone = client.delete(b"/a/x")
        assert world.stat(b"/a").pzxid == gone.zxid

    def test_a_set_moves_version_mzxid_and_mtime(self, client: Connection, world: World) -> None:
        client.create(b"/a", b"old")
        before = world.stat(b"/a")
        outcome = client.set(b"/a", b"newer")
        after = Stat.read(Reader(outcome.body))
        assert after == world.stat(b"/a")
        assert (after.version, after.mzxid, after.mtime) == (1, outcome.zxid, world.time_ms)
        assert (after.czxid, after.ctime) == (before.czxid, before.ctime)
        assert after.data_length == 5

    def test_set_acl_moves_aversion_only(self, client: Connection, world: World) -> None:
        client.create(b"/a")
        before = world.stat(b"/a")
        outcome = client.set_acl(b"/a", [ACL(ALL, ANYONE)])
        after = Stat.read(Reader(outcome.body))
        assert (before.aversion, after.aversion) == (0, 1)
        assert (after.mzxid, after.version) == (before.mzxid, before.version)

    def test_null_and_empty_data_come_back_as_written(self, client: Connection) -> None:
        client.create(b"/null", None)
        client.create(b"/empty", b"")
        assert client.get(b"/null").data is None
        assert client.get(b"/empty").data == b""
        client.set(b"/empty", None)
        assert client.get(b"/empty").data is None

    def test_only_an_ephemeral_shows_its_owner(self, client: Connection, world: World) -> None:
        client.create(b"/e", flags=1)
        client.create(b"/c", operation=opcodes.CREATE_CONTAINER)
        client.create_ttl(b"/t", 5, 1000)
        owners = [world.stat(path).ephemeral_owner for path in (b"/e", b"/c", b"/t")]
        assert owners == [client.session, 0, 0]

    def test_versions_wrap_around(self, client: Connection, world: World) -> None:
        client.create(b"/a")
        node = world.machine.tree.nodes[b"/a"]
        node.version = node.aversion = INT_MAX
        world.machine.tree.adopt_digest()
        client.set(b"/a", b"")
        client.set_acl(b"/a", OPEN)
        stat = world.stat(b"/a")
        assert (stat.version, stat.aversion) == (-INT_MAX - 1, -INT_MAX - 1)
        dump(world.machine)


class TestSequence:
    def test_the_suffix_counts_all_children_ever_created(self, client: Connection) -> None:
        client.create(b"/a")
        client.create(b"/a/plain")
        client.delete(b"/a/plain")
        assert created(client.create(b"/a/s-", flags=2).body) == b"/a/s-0000000001"
        assert created(client.create(b"/a/", flags=3).body) == b"/a/0000000002"
        assert client.create(b"/a/s-0000000001").error == NODE_EXISTS
        # A create that fails counts nothing.
        assert created(client.create(b"/a/s-", flags=2).body) == b"/a/s-0000000003"

    def test_it_goes_on_below_zero_after_the_largest_int(
        self, client: Connection, world: World
    ) -> None:
        client.create(b"/a")
        world.machine.tree.nodes[b"/a"].created = INT_MAX - 1
        world.machine.tree.adopt_digest()
        suffixes = [created(client.create(b"/a/s", flags=2).body)[4:] for _ in range(3)]
        assert suffixes == [b"2147483646", b"2147483647", b"-2147483648"]
        stat = world.stat(b"/a")
        # Twice the counter minus the children there are, as a 32-bit number.
        assert stat.cversion == 2 * (-INT_MAX) - 3 + (1 << 32)
        assert client.create(b"/a/plain").error == OK
        assert created(client.create(b"/a/s", flags=2).body)[4:] == b"-2147483646"
        dump(world.machine)

    def test_small_negative_numbers_are_padded_as_well(
        self, client: Connection, world: World
    ) -> None:
        client.create(b"/a")
        world.machine.tree.nodes[b"/a"].created = -2
        world.machine.tree.adopt_digest()
        suffixes = [created(client.create(b"/a/s", flags=2).body)[4:] for _ in range(3)]
        assert suffixes == [b"-000000002", b"-000000001", b"0000000000"]


class TestCreate:
    @pytest.mark.parametrize(
        ("path", "error"),
        [
            (b"", BAD_ARGUMENTS),
            (b"a", BAD_ARGUMENTS),
            (b"/", NODE_EXISTS),
            (b"/a", NODE_EXISTS),
            (b"/a/", BAD_ARGUMENTS),
            (b"/b/", NO_NODE),
            (b"/b/c", NO_NODE),
            (b"//", BAD_ARGUMENTS),
            (b"//x", BAD_ARGUMENTS),
            (b"/..", BAD_ARGUMENTS),
            (b"/x\0", BAD_ARGUMENTS),
            (b"/\xf0\x9f\x98\x80", BAD_ARGUMENTS),
            (b"/\xff", BAD_ARGUMENTS),
            (b"/zookeeper/mine", OK),
            (b"/eph/child", NO_CHILDREN_FOR_EPHEMERALS),
            (b"/locked/child", NO_AUTH),
        ],
    )
    def test_a_path_gets_its_code(self, client: Connection, path: bytes, error: int) -> None:
        client.create(b"/a")
        client.create(b"/eph", flags=1)
        client.create(b"/locked", acls=[ACL(ALL & ~CREATE, ANYONE)])
        assert client.create(path).error == error

    def test_of_two_mistakes_the_first_check_counts(self, client: Connection) -> None:
        client.create(b"/locked", acls=[ACL(READ, ANYONE)])
        client.create(b"/eph", flags=1)
        assert client.create(b"nonsense", flags=9, acls=None).error == BAD_ARGUMENTS
        assert client.create(b"/none/child", acls=None).error == INVALID_ACL
        assert client.create(b"/locked/..").error == NO_AUTH
        assert client.create(b"/eph/..").error == BAD_ARGUMENTS

    @pytest.mark.parametrize(
        ("flags", "ttl_ms", "error"),
        [
            (5, 1, OK),
            (6, 0xFF_FFFF_FFFF, OK),
            (5, 0, BAD_ARGUMENTS),
            (5, -1, BAD_ARGUMENTS),
            (6, 0x100_0000_0000, BAD_ARGUMENTS),
            # What upstream dies of.
            (0, -1, BAD_ARGUMENTS),
            (1, -(1 << 63), BAD_ARGUMENTS),
            (4, -1, BAD_ARGUMENTS),
            (0, 0, BAD_ARGUMENTS),
            (7, 5, BAD_ARGUMENTS),
        ],
    )
    def test_a_ttl_needs_its_mode_and_its_mode_a_ttl(
        self, client: Connection, flags: int, ttl_ms: int, error: int
    ) -> None:
        assert client.create_ttl(b"/t", flags, ttl_ms).error == error

    def test_extended_types_must_be_enabled(self, client: Connection, world: World) -> None:
        world.flags = 0
        assert client.create_ttl(b"/t", 5, 1000).error == UNIMPLEMENTED
        assert client.create(b"/t", flags=5).error == UNIMPLEMENTED
        assert client.create(b"/c", operation=opcodes.CREATE_CONTAINER).error == OK

    def test_flags_and_operation_together_say_what_it_becomes(
        self, client: Connection, world: World
    ) -> None:
        tree = world.machine.tree
        client.create(b"/plain", flags=4)
        client.create(b"/box", flags=1, operation=opcodes.CREATE_CONTAINER)
        client.create(b"/box-", flags=2, operation=opcodes.CREATE_CONTAINER)
        for flags in (5, 6, 7, -1):
            for operation in (opcodes.CREATE, opcodes.CREATE2, opcodes.CREATE_CONTAINER):
                assert client.create(b"/x", flags=flags, operation=operation).error == BAD_ARGUMENTS
        assert sorted(tree.containers) == [b"/box", b"/box-0000000002"]
        assert tree.nodes[b"/plain"].owner == 0

    def test_create_answers_the_path_and_the_newer_operations_the_stat_too(
        self, client: Connection, world: World
    ) -> None:
        assert client.create(b"/a").body == encode(CreateResponse(b"/a"))
        for path, operation in ((b"/b", opcodes.CREATE2), (b"/c", opcodes.CREATE_CONTAINER)):
            body = client.create(path, operation=operation).body
            assert body == encode(Create2Response(path, world.stat(path)))


class TestDelete:
    @pytest.mark.parametrize(
        ("path", "version", "error"),
        [
            (None, -1, MARSHALLING_ERROR),
            (b"", -1, BAD_ARGUMENTS),
            (b"/", -1, BAD_ARGUMENTS),
            (b"/zookeeper", -1, BAD_ARGUMENTS),
            (b"/zookeeper/config", -1, BAD_ARGUMENTS),
            (b"/zookeeper/quota", -1, BAD_ARGUMENTS),
            (b"/none", -1, NO_NODE),
            (b"/none/x", -1, NO_NODE),
            (b"/a/", -1, NO_NODE),
            (b"/a", -1, NOT_EMPTY),
            (b"/a", 5, BAD_VERSION),
            (b"/a/b", 0, OK),
            (b"/a/b", 1, BAD_VERSION),
            (b"/locked/x", -1, NO_AUTH),
        ],
    )
    def test_a_path_and_a_version_get_their_code(
        self, client: Connection, path: bytes | None, version: int, error: int
    ) -> None:
        client.create(b"/a")
        client.create(b"/a/b")
        client.create(b"/locked", acls=[ACL(ALL & ~DELETE, ANYONE)])
        client.create(b"/locked/x")
        assert client.delete(path, version).error == error

    def test_delete_container_deletes_what_is_not_ephemeral(self, client: Connection) -> None:
        client.create(b"/c", operation=opcodes.CREATE_CONTAINER)
        client.create(b"/c/x")
        client.create(b"/e", flags=1)

        def delete_container(path: bytes | None) -> int:
            return client.send(opcodes.DELETE_CONTAINER, encode(PathRequest(path))).error

        assert delete_container(b"/c") == NOT_EMPTY
        assert delete_container(b"/e") == BAD_VERSION
        assert delete_container(None) == MARSHALLING_ERROR
        assert delete_container(b"/c/x") == OK
        assert delete_container(b"/c") == OK
        assert delete_container(b"/c") == NO_NODE


class TestAccess:
    def test_each_operation_needs_its_permission(self, world: World) -> None:
        owner, stranger = world.open(), world.open()
        owner.be(BOB)

        def refused(permission: int) -> list[str]:
            path = b"/p%d" % permission
            owner.create(path)
            owner.create(path + b"/child")
            owner.set_acl(path, [ACL(ALL & ~permission, ANYONE), ACL(ADMIN, BOB)])
            results = {
                "check": stranger.check(path, -1).error,
                "set": stranger.set(path, b"").error,
                "create": stranger.create(path + b"/new").error,
                "delete": stranger.delete(path + b"/child").error,
                "set_acl": stranger.set_acl(path, OPEN).error,
            }
            return [name for name, error in results.items() if error == NO_AUTH]

        assert refused(READ) == ["check"]
        assert refused(WRITE) == ["set"]
        assert refused(CREATE) == ["create"]
        assert refused(DELETE) == ["delete"]
        assert refused(ADMIN) == ["set_acl"]

    def test_acls_are_enforced_inside_a_transaction(self, world: World) -> None:
        owner, stranger = world.open(), world.open()
        owner.be(BOB)
        owner.create(b"/secret", b"s", acls=[ACL(ALL, BOB)])
        outcome = stranger.multi(
            (opcodes.CREATE, CreateRequest(b"/a", b"", OPEN, 0)),
            (opcodes.CHECK, VersionRequest(b"/secret", -1)),
        )
        assert [error for _, error, _ in results(outcome.body)] == [OK, NO_AUTH]
        assert b"/a" not in world.machine.tree.nodes


def results(body: bytes) -> list[tuple[int, int, object]]:
    reader = Reader(body)
    found: list[tuple[int, int, object]] = []
    while not (header := MultiHeader.read(reader)).done:
        record: object = None
        if header.operation == opcodes.ERROR:
            record = IntResponse.read(reader).value
        elif header.operation == opcodes.CREATE:
            record = CreateResponse.read(reader).path
        elif header.operation == opcodes.CREATE2:
            record = Create2Response.read(reader).path
        elif header.operation == opcodes.SET_DATA:
            record = Stat.read(reader).version
        found.append((header.operation, header.error, record))
    assert (header.operation, header.error) == (-1, -1)
    assert reader.rest() == b""
    return found


class TestMulti:
    def test_each_operation_has_its_result(self, client: Connection) -> None:
        client.create(b"/a")
        outcome = client.multi(
            (opcodes.CREATE, CreateRequest(b"/a/x", b"", OPEN, 0)),
            (opcodes.CREATE2, CreateRequest(b"/a/y", b"", OPEN, 2)),
            (opcodes.CREATE_CONTAINER, CreateRequest(b"/c", b"", OPEN, 4)),
            (opcodes.CREATE_TTL, CreateTTLRequest(b"/t", b"", OPEN, 5, 10)),
            (opcodes.SET_DATA, SetDataRequest(b"/a", b"1", -1)),
            (opcodes.SET_DATA, SetDataRequest(b"/a", b"2", 1)),
            (opcodes.CHECK, VersionRequest(b"/a", 2)),
            (opcodes.DELETE, VersionRequest(b"/a/x", 0)),
        )
        assert outcome.error == OK
        assert results(outcome.body) == [
            (opcodes.CREATE, OK, b"/a/x"),
            (opcodes.CREATE, OK, b"/a/y0000000001"),
            (opcodes.CREATE2, OK, b"/c"),
            (opcodes.CREATE2, OK, b"/t"),
            (opcodes.SET_DATA, OK, 1),
            (opcodes.SET_DATA, OK, 2),
            (opcodes.CHECK, OK, None),
            (opcodes.DELETE, OK, None),
        ]

    def test_the_flags_alone_say_what_is_created(self, client: Connection, world: World) -> None:
        client.multi(
            (opcodes.CREATE_CONTAINER, CreateRequest(b"/plain", b"", OPEN, 0)),
            (opcodes.CREATE_CONTAINER, CreateRequest(b"/eph", b"", OPEN, 1)),
            (opcodes.CREATE, CreateRequest(b"/box", b"", OPEN, 4)),
            (opcodes.CREATE_TTL, CreateTTLRequest(b"/eph2", b"", OPEN, 1, -1)),
            (opcodes.CREATE_TTL, CreateTTLRequest(b"/box2", b"", OPEN, 4, 99)),
        )
        tree = world.machine.tree
        assert sorted(tree.containers) == [b"/box", b"/box2"]
        assert sorted(tree.ephemerals[client.session]) == [b"/eph", b"/eph2"]
        assert tree.nodes[b"/plain"].owner == 0

    def test_a_failure_undoes_all_and_says_where_it_was(
        self, client: Connection, world: World
    ) -> None:
        client.create(b"/a")
        before = dump(world.machine)
        outcome = client.multi(
            (opcodes.CREATE, CreateRequest(b"/b", b"", OPEN, 1)),
            (opcodes.DELETE, VersionRequest(b"/a", -1)),
            (opcodes.SET_DATA, SetDataRequest(b"/b", b"", 7)),
            (opcodes.CREATE, CreateRequest(b"/c", b"", OPEN, 0)),
        )
        assert (outcome.error, outcome.changes) == (OK, [])
        assert results(outcome.body) == [
            (opcodes.ERROR, code, code) for code in (OK, OK, BAD_VERSION, RUNTIME_INCONSISTENCY)
        ]
        after = dump(world.machine)
        assert after.pop("zxid") == before.pop("zxid") + 1
        assert after.pop("time_ms") == before.pop("time_ms") + 1
        assert after == before

    def test_later_operations_see_what_earlier_ones_did(self, client: Connection) -> None:
        outcome = client.multi(
            (opcodes.CREATE, CreateRequest(b"/a", b"", OPEN, 0)),
            (opcodes.CREATE, CreateRequest(b"/a/b", b"", OPEN, 0)),
            (opcodes.DELETE, VersionRequest(b"/a/b", -1)),
            (opcodes.DELETE, VersionRequest(b"/a", -1)),
            (opcodes.CREATE, CreateRequest(b"/a", b"", OPEN, 1)),
        )
        assert [error for _, error, _ in results(outcome.body)] == [OK] * 5
        assert client.children(b"/") == [b"a", b"zookeeper"]

    def test_an_empty_transaction_is_fine(self, client: Connection) -> None:
        outcome = client.multi()
        assert (outcome.error, results(outcome.body)) == (OK, [])

    @pytest.mark.parametrize(
        "operation",
        [
            *(opcodes.SET_ACL, opcodes.GET_DATA, opcodes.GET_CHILDREN, opcodes.SYNC),
            *(opcodes.DELETE_CONTAINER, opcodes.MULTI, 4711, -1),
        ],
    )
    def test_what_is_no_operation_of_a_transaction_cannot_be_decoded(
        self, client: Connection, world: World, operation: int
    ) -> None:
        outcome = client.multi(
            (opcodes.CREATE, CreateRequest(b"/a", b"", OPEN, 0)),
            (operation, VersionRequest(b"/a", -1)),
        )
        assert (outcome.error, outcome.body) == (MARSHALLING_ERROR, b"")
        assert b"/a" not in world.machine.tree.nodes

    def test_a_transaction_cut_at_any_byte_cannot_be_decoded(self, client: Connection) -> None:
        body = multi_body(
            [
                (opcodes.CREATE, CreateRequest(b"/a", b"", OPEN, 0)),
                (opcodes.DELETE, VersionRequest(b"/a", -1)),
            ]
        )
        for cut in range(len(body)):
            assert client.send(opcodes.MULTI, body[:cut]).error == MARSHALLING_ERROR

    def test_a_ttl_mode_without_a_ttl_counts_only_when_its_turn_comes(
        self, client: Connection
    ) -> None:
        wrong = (opcodes.CREATE, CreateRequest(b"/t", b"", OPEN, 5))
        good = (opcodes.CREATE, CreateRequest(b"/a", b"", OPEN, 0))
        assert client.multi(good, wrong).error == MARSHALLING_ERROR
        failing = (opcodes.DELETE, VersionRequest(b"/none", -1))
        outcome = client.multi(failing, wrong)
        assert [error for _, error, _ in results(outcome.body)] == [NO_NODE, RUNTIME_INCONSISTENCY]


class TestCheck:
    def test_a_check_alone_is_answered(self, client: Connection, world: World) -> None:
        client.create(b"/a")
        outcome = client.check(b"/a", 0)
        assert (outcome.error, outcome.body) == (OK, encode(world.stat(b"/a")))
        assert outcome.changes == []
        assert client.check(b"/a", 1).error == BAD_VERSION
        assert client.check(b"/b", -1).error == NO_NODE
        assert client.check(b"/a/", -1).error == BAD_ARGUMENTS


class TestReap:
    def test_an_empty_container_that_is_still_the_same_is_deleted(
        self, client: Connection, world: World
    ) -> None:
        client.create(b"/c", operation=opcodes.CREATE_CONTAINER)
        client.add_watch(b"/", 1)
        stat = world.stat(b"/c")
        outcome = world.reap(b"/c", stat.czxid, stat.mzxid)
        assert [change.path for change in outcome.changes] == [b"/c"]
        assert outcome.zxid == stat.czxid + 1 == world.stat(b"/").pzxid
        assert client.told == [(2, b"/c")]

    def test_what_has_changed_since_it_was_decided_stays(
        self, client: Connection, world: World
    ) -> None:
        client.create_ttl(b"/t", 5, 10)
        old = world.stat(b"/t")
        client.set(b"/t", b"alive")
        zxid = world.machine.zxid
        assert world.reap(b"/t", old.czxid, old.mzxid).zxid == zxid
        client.delete(b"/t")
        client.create_ttl(b"/t", 5, 10)
        zxid = world.machine.zxid
        assert world.reap(b"/t", old.czxid, old.mzxid).changes == []
        assert world.machine.zxid == zxid
        assert b"/t" in world.machine.tree.nodes

    def test_what_has_children_or_is_of_another_kind_or_gone_stays(
        self, client: Connection, world: World
    ) -> None:
        client.create(b"/c", operation=opcodes.CREATE_CONTAINER)
        client.create(b"/c/child")
        client.create(b"/plain")
        client.create(b"/eph", flags=1)
        for path in (b"/c", b"/plain", b"/eph", b"/"):
            stat = world.stat(path)
            assert world.reap(path, stat.czxid, stat.mzxid).changes == []
        assert world.reap(b"/gone", 1, 1).changes == []


class TestTotality:
    """Something that should never happen does; the state is broken on purpose to show it."""

    def test_an_unexpected_exception_is_undone_and_reported(
        self, client: Connection, world: World
    ) -> None:
        client.create(b"/a", acls=[ACL(ALL, ANYONE), ACL(ALL, BOB)])
        # One user less than there is: releasing the ACL notices.
        world.machine.tree.nodes[b"/a"].acl.users = 0
        outcome = client.delete(b"/a")
        assert (outcome.error, outcome.body, outcome.changes) == (SYSTEM_ERROR, b"", [])
        assert sentence(outcome).startswith("applying delete failed and was undone: AssertionError")
        world.machine.tree.nodes[b"/a"].acl.users = 1
        dump(world.machine)
        assert client.delete(b"/a").error == OK

    def test_it_takes_a_zxid_and_happens_again_the_same_way(self, world: World) -> None:
        def history(machine: StateMachine) -> list[tuple[int, int, str]]:
            machine.apply(world.entries[0])
            machine.apply(world.entries[1])
            machine.tree.nodes[b"/a"].acl.users = 0
            outcomes = [machine.apply(entry) for entry in world.entries[2:]]
            # Not what the exception itself says: pytest may put the address of an object into it.
            said = [sentence(outcome).partition("(")[0] for outcome in outcomes]
            return [
                (outcome.error, outcome.zxid, one)
                for outcome, one in zip(outcomes, said, strict=True)
            ]

        client = world.open()
        client.create(b"/a", acls=[ACL(ALL, BOB)])
        client.delete(b"/a")
        client.create(b"/b")
        first, again = history(StateMachine()), history(StateMachine())
        assert first == again
        assert [(error, zxid) for error, zxid, _ in first] == [(SYSTEM_ERROR, 3), (OK, 4)]

    def test_a_transaction_is_undone_as_a_whole(self, client: Connection, world: World) -> None:
        client.create(b"/a", acls=[ACL(ALL, BOB)])
        world.machine.tree.nodes[b"/a"].acl.users = 0
        outcome = client.multi(
            (opcodes.CREATE, CreateRequest(b"/b", b"", OPEN, 1)),
            (opcodes.DELETE, VersionRequest(b"/a", -1)),
        )
        assert (outcome.error, outcome.body, outcome.changes) == (SYSTEM_ERROR, b"", [])
        world.machine.tree.nodes[b"/a"].acl.users = 1
        assert set(dump(world.machine)["nodes"]) == {
            *(b"/", b"/a", b"/zookeeper", b"/zookeeper/config", b"/zookeeper/quota")
        }

    def test_an_expiry_that_fails_leaves_the_session_and_all_its_nodes(
        self, client: Connection, world: World
    ) -> None:
        client.create(b"/1", flags=1)
        client.create(b"/2", flags=1, acls=[ACL(ALL, BOB)])
        world.machine.tree.nodes[b"/2"].acl.users = 0
        before = world.machine.zxid
        outcome = world.expire(client.session, client.generation)
        assert (outcome.error, outcome.zxid, outcome.changes) == (SYSTEM_ERROR, before, [])
        assert sentence(outcome).startswith("applying expire failed")
        world.machine.tree.nodes[b"/2"].acl.users = 1
        assert sorted(dump(world.machine)["ephemerals"][client.session]) == [b"/1", b"/2"]
        assert world.expire(client.session, client.generation).error == OK

    def test_a_parent_that_does_not_know_its_child_is_reported(
        self, client: Connection, world: World
    ) -> None:
        client.create(b"/a")
        children = world.machine.tree.nodes[b"/"].children
        assert children is not None
        del children[b"a"]
        assert client.delete(b"/a").error == SYSTEM_ERROR
        # Undoing has even mended it.
        dump(world.machine)
        assert client.delete(b"/a").error == OK

    def test_a_decision_that_cannot_be_read_is_answered(self, world: World) -> None:
        outcome = world.apply(REAP, b"\0")
        assert outcome.error == SYSTEM_ERROR
        assert sentence(outcome).startswith("applying reap failed")
        assert world.machine.zxid == 0

    @pytest.mark.parametrize("operation", [*sorted(opcodes.WRITES), *range(-20, 25)])
    def test_every_operation_answers_any_bytes(self, client: Connection, operation: int) -> None:
        for body in (b"", b"\0", bytes(64), b"\xff" * 64, BytesWriter().getvalue()):
            outcome = client.send(operation, body)
            assert isinstance(outcome.error, int)
        dump(client.world.machine)
