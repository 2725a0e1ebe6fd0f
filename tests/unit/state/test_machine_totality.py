"""There is an answer to whatever comes, and it is always the same."""

from __future__ import annotations

import pytest
from librt.strings import BytesWriter

from paddock.errors import OK, SYSTEM_ERROR
from paddock.protocol import opcodes, operations
from paddock.protocol.acl import ACL, ALL, ANYONE, Identity
from paddock.protocol.requests import CreateRequest, VersionRequest
from paddock.state.entry import REAP
from paddock.state.machine import MACHINE_ERRORS, StateMachine
from paddock.state.node import Node
from tests.property.dump import dump
from tests.unit.state.driver import OPEN, Connection, World, sentence

BOB = Identity("digest", "bob:hash")


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
        del children[b"/a"]
        assert client.delete(b"/a").error == SYSTEM_ERROR
        # Undoing has even mended it.
        dump(world.machine)
        assert client.delete(b"/a").error == OK

    def test_a_decision_that_cannot_be_read_is_answered(self, world: World) -> None:
        outcome = world.apply(REAP, b"\0")
        assert outcome.error == SYSTEM_ERROR
        assert sentence(outcome).startswith("applying reap failed")
        assert world.machine.zxid == 0

    @pytest.mark.parametrize("operation", [*sorted(operations.WRITES), *range(-20, 25)])
    def test_every_operation_answers_any_bytes(self, client: Connection, operation: int) -> None:
        for body in (b"", b"\0", bytes(64), b"\xff" * 64, BytesWriter().getvalue()):
            outcome = client.send(operation, body)
            assert isinstance(outcome.error, int)
        dump(client.world.machine)

    @pytest.mark.parametrize("error", MACHINE_ERRORS)
    def test_what_depends_on_the_machine_is_raised_and_not_answered(
        self, client: Connection, world: World, error: type[Exception]
    ) -> None:
        class Failing:
            def save(self, path: bytes, node: Node) -> None:
                raise error

        client.create(b"/a", flags=1)
        world.machine.tree.epoch += 1
        world.machine.tree.images = Failing()
        with pytest.raises(error):
            client.set(b"/a", b"")
        with pytest.raises(error):
            world.expire(client.session, client.generation)
