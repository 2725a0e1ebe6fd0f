"""The state machine: zxids, versions, refusals."""

from __future__ import annotations

import sys

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
    UNIMPLEMENTED,
)
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ADMIN, ALL, ANYONE, CREATE, DELETE, READ, WRITE, Identity
from paddock.protocol.jute import Reader
from paddock.protocol.records import Stat
from paddock.protocol.replies import Create2Response, CreateResponse
from paddock.protocol.requests import (
    CreateRequest,
    PathRequest,
    ReconfigRequest,
    SetDataRequest,
    VersionRequest,
)
from tests.property.dump import dump
from tests.unit.state.driver import (
    OPEN,
    Connection,
    World,
    encode,
    multi_results,
)

BOB = Identity("digest", "bob:hash")
INT_MAX = (1 << 31) - 1


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


class TestMalformed:
    @pytest.mark.parametrize(
        ("operation", "request_"),
        [
            (opcodes.SET_DATA, SetDataRequest(b"/a", bytes(1 << 20), -1)),
            (opcodes.CREATE, CreateRequest(b"/a", bytes(1 << 20), OPEN, 0)),
        ],
        ids=["set", "create"],
    )
    def test_its_body_is_not_kept(
        self,
        client: Connection,
        world: World,
        operation: int,
        request_: SetDataRequest | CreateRequest,
    ) -> None:
        body = encode(request_)[:-1]
        known = sys.getrefcount(body)
        assert client.send(operation, body).error == MARSHALLING_ERROR
        # The machine has the last entry, whatever it was, and the world has all.
        client.delete(b"/none")
        world.entries.clear()
        assert sys.getrefcount(body) == known


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
        assert [error for _, error, _ in multi_results(outcome.body)] == [OK, NO_AUTH]
        assert b"/a" not in world.machine.tree.nodes


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
