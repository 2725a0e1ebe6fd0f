"""Transactions: all of it or nothing, and a result for each of its operations."""

from __future__ import annotations

import pytest

from paddock.errors import BAD_VERSION, MARSHALLING_ERROR, NO_NODE, OK, RUNTIME_INCONSISTENCY
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.protocol.records import MultiHeader, Stat
from paddock.protocol.replies import Create2Response, CreateResponse
from paddock.protocol.requests import (
    CreateRequest,
    CreateTTLRequest,
    SetDataRequest,
    VersionRequest,
)
from tests.property.dump import dump
from tests.unit.state.driver import OPEN, Connection, World, multi_body, multi_results


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
        assert multi_results(outcome.body) == [
            (opcodes.CREATE, OK, b"/a/x"),
            (opcodes.CREATE2, OK, b"/a/y0000000001"),
            (opcodes.CREATE2, OK, b"/c"),
            (opcodes.CREATE2, OK, b"/t"),
            (opcodes.SET_DATA, OK, 1),
            (opcodes.SET_DATA, OK, 2),
            (opcodes.CHECK, OK, None),
            (opcodes.DELETE, OK, None),
        ]

    def test_which_creates_are_answered_with_a_stat(self, client: Connection, world: World) -> None:
        outcome = client.multi(
            (opcodes.CREATE, CreateRequest(b"/a", b"", OPEN, 0)),
            (opcodes.CREATE2, CreateRequest(b"/b", b"", OPEN, 0)),
            (opcodes.CREATE2, CreateRequest(b"/c", b"", OPEN, 1)),
            (opcodes.CREATE, CreateRequest(b"/d", b"", OPEN, 4)),
            (opcodes.CREATE2, CreateRequest(b"/e", b"", OPEN, 4)),
            (opcodes.CREATE_TTL, CreateTTLRequest(b"/f", b"", OPEN, 0, -1)),
            (opcodes.CREATE_TTL, CreateTTLRequest(b"/g", b"", OPEN, 5, 10)),
            (opcodes.CREATE2, CreateRequest(b"/b/below", b"", OPEN, 0)),
        )
        reader = Reader(outcome.body)
        with_stat: dict[bytes, Stat] = {}
        while not (header := MultiHeader.read(reader)).done:
            if header.operation == opcodes.CREATE2:
                created = Create2Response.read(reader)
                with_stat[created.path] = created.stat
            else:
                assert header.operation == opcodes.CREATE
                CreateResponse.read(reader)
        assert [*with_stat] == [b"/b", b"/c", b"/d", b"/e", b"/g", b"/b/below"]
        # The stat is that of the moment: what later steps did is not in it.
        assert (with_stat[b"/b"].num_children, world.stat(b"/b").num_children) == (0, 1)
        assert with_stat[b"/c"] == world.stat(b"/c")

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
        assert multi_results(outcome.body) == [
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
        assert [error for _, error, _ in multi_results(outcome.body)] == [OK] * 5
        assert client.children(b"/") == [b"a", b"zookeeper"]

    def test_an_empty_transaction_is_fine(self, client: Connection) -> None:
        outcome = client.multi()
        assert (outcome.error, multi_results(outcome.body)) == (OK, [])

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
        assert [error for _, error, _ in multi_results(outcome.body)] == [
            NO_NODE,
            RUNTIME_INCONSISTENCY,
        ]
