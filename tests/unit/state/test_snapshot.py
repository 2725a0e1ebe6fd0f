"""Snapshots that are damaged, and what keeps a snapshot to its point."""

from __future__ import annotations

import pytest

from paddock.errors import SESSION_MOVED
from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, OPEN, Identity
from paddock.state.entry import LEAVE, Entry
from paddock.state.machine import StateMachine
from paddock.state.node import Node
from paddock.state.snapshot import BACKLOG_BYTES_MAX, FORMAT, Snapshot, SnapshotError, restore
from tests.property.dump import dump
from tests.unit.state.driver import World
from tests.unit.state.shared_state import A, B, SharedState

# A session, an open node and one of the session's, as they were written before there were rosters.
BEFORE_ROSTERS = bytes.fromhex(
    "0101000000000000000300000000000003ec00000000000000070200000000000000070000000000000002000075"
    "3000000010707070707070707070707070707070700300000001000000010000001f00000005776f726c64000000"
    "06616e796f6e6504000000012f000000000000000100000000000000000000000000000000000000000000000300"
    "0000000000000000000000000000000000000000000002000000000000000000000000040000000a2f7a6f6f6b65"
    "65706572000000000000000100000000000000000000000000000000000000000000000000000000000000000000"
    "000000000000000000000000000000000000000000000000000004000000102f7a6f6f6b65657065722f71756f74"
    "61000000000000000100000000000000000000000000000000000000000000000000000000000000000000000000"
    "00000000000000000000000000000000000000000000000300000002000000010000000100000005776f726c6400"
    "000006616e796f6e6504000000112f7a6f6f6b65657065722f636f6e666967000000000000000200000000000000"
    "0000000000000000000000000000000000000000000000000000000000000000000000000000000000ffffffff00"
    "0000000000000004000000022f610000000464617461000000010000000000000002000000000000000200000000"
    "0000000200000000000003ea00000000000003ea0000000000000000000000000000000000000000030000000300"
    "0000010000001f0000000664696765737400000008626f623a6861736804000000022f6500000000000000030000"
    "0000000000030000000000000003000000000000000300000000000003eb00000000000003eb0000000000000000"
    "00000000000000000000000705000000000000000600000005c3c693de"
)


@pytest.fixture
def world() -> World:
    world = World()
    client = world.open()
    client.be(Identity("digest", "bob:hash"))
    client.create(b"/a", b"data")
    client.create(b"/a/b", None, acls=[ACL(ALL, Identity("digest", "bob:hash"))])
    client.create(b"/e", flags=1)
    client.create(b"/c", operation=opcodes.CREATE_CONTAINER)
    client.create_ttl(b"/t", 5, 1000)
    world.attach(client.session)
    return world


def whole(machine: StateMachine) -> bytes:
    return b"".join(Snapshot(machine).chunks())


def test_everything_comes_back(world: World) -> None:
    assert dump(restore([whole(world.machine)])) == dump(world.machine)


def test_a_snapshot_in_single_bytes_is_the_same(world: World) -> None:
    chunks = [bytes([byte]) for byte in whole(world.machine)]
    assert dump(restore(chunks)) == dump(world.machine)


def test_a_chunk_is_not_much_larger_than_its_largest_node(world: World) -> None:
    client = world.open()
    for number in range(40):
        client.create(b"/large%d" % number, bytes(900_000))
    assert max(len(chunk) for chunk in Snapshot(world.machine).chunks()) < 3_000_000


def test_a_snapshot_cut_anywhere_is_refused(world: World) -> None:
    good = whole(world.machine)
    for cut in range(len(good)):
        with pytest.raises(SnapshotError):
            restore([good[:cut]])


def test_a_changed_byte_never_passes_for_another_state(world: World) -> None:
    """The digest covers the nodes; sessions and header are covered by the file's checksum."""
    good = whole(world.machine)
    nodes = dump(world.machine)["nodes"]
    for position in range(len(good)):
        bad = bytearray(good)
        bad[position] ^= 0x01
        try:
            restored = restore([bytes(bad)])
        except SnapshotError:
            continue
        assert dump(restored)["nodes"] == nodes


def test_what_stands_behind_the_end_is_refused(world: World) -> None:
    with pytest.raises(SnapshotError, match="behind the end"):
        restore([whole(world.machine), b"\x01"])


@pytest.mark.parametrize(
    ("path", "words"),
    [
        (b"/no/b", "has b'/no/b' and nothing above it"),
        (b"//b", "has b'//b' and nothing above it"),
        (b"b", "has b'b', which is no path"),
    ],
)
def test_a_node_that_is_nobodys_child_is_refused(world: World, path: bytes, words: str) -> None:
    tree = world.machine.tree
    tree.nodes[path] = Node(b"", tree.acls.acquire(OPEN), 1, 1, 0)
    tree.adopt_digest()
    with pytest.raises(SnapshotError, match=words):
        restore([whole(world.machine)])


def test_nodes_may_come_in_any_order(world: World) -> None:
    """A snapshot that is taken while nodes change has a child before its parent."""
    world.open().create(b"/a/b/c", b"below")
    snapshot = Snapshot(world.machine)
    first = snapshot.take()
    for path in sorted(filter(None, world.machine.tree.nodes), reverse=True):
        snapshot.save(path, world.machine.tree.nodes[path])
    restored = restore([first, *snapshot.chunks()])
    assert dump(restored) == dump(world.machine)
    for path in world.machine.tree.nodes:
        assert restored.tree.subtree(path) == world.machine.tree.subtree(path)


def test_another_format_is_refused_by_its_number(world: World) -> None:
    good = whole(world.machine)
    assert good[1] == FORMAT
    with pytest.raises(SnapshotError, match="format 77"):
        restore([good[:1] + b"\x4d" + good[2:]])


def test_the_image_of_a_node_is_written_before_it_changes(world: World) -> None:
    client = world.open()
    then = dump(world.machine)
    snapshot = Snapshot(world.machine)
    client.set(b"/a", b"changed")
    client.create(b"/a/new")
    client.delete(b"/c")
    client.create(b"/c", b"another")
    world.expire(1, 2)
    assert dump(restore(snapshot.chunks(1))) == then


def test_what_waits_can_be_taken_before_the_next_chunk(world: World) -> None:
    client = world.open()
    then = dump(world.machine)
    snapshot = Snapshot(world.machine)
    assert snapshot.backlog() > 0
    first = snapshot.take()
    assert snapshot.backlog() == 0
    client.set(b"/a", bytes(1000))
    client.set(b"/a", b"")
    client.set(b"/e", bytes(1000))
    # Images of two nodes as they were, not a thousand bytes of what came after.
    assert 0 < snapshot.backlog() < 1000
    assert dump(restore([first, *snapshot.chunks()])) == then


def test_one_entry_that_changes_much_does_not_make_it_gather(world: World) -> None:
    """The end of a session is a few bytes, and what it deletes may be any number of megabytes."""
    client = world.open()
    for number in range(30):
        client.create(b"/large%d" % number, bytes(900_000), flags=1)
    then = dump(world.machine)
    written: list[bytes] = []
    snapshot = Snapshot(world.machine, lambda parts: written.append(b"".join(parts)))
    world.expire(client.session, 1)
    assert len(written) >= 6
    assert max(map(len, written)) < BACKLOG_BYTES_MAX + 1_000_000
    assert snapshot.backlog() <= BACKLOG_BYTES_MAX
    written.extend(snapshot.chunks())
    assert dump(restore(written)) == then


def test_one_snapshot_at_a_time(world: World) -> None:
    snapshot = Snapshot(world.machine)
    with pytest.raises(AssertionError):
        Snapshot(world.machine)
    snapshot.abandon()
    assert dump(restore([whole(world.machine)])) == dump(world.machine)


def test_a_single_server_writes_and_reads_what_it_did_before_there_were_rosters() -> None:
    world = World()
    client = world.open(7)
    client.be(Identity("digest", "bob:hash"))
    client.create(b"/a", b"data")
    client.create(b"/e", flags=1, acls=[ACL(ALL, Identity("digest", "bob:hash"))])
    world.attach(client.session)
    assert whole(world.machine) == BEFORE_ROSTERS
    assert dump(restore([BEFORE_ROSTERS])) == dump(world.machine)


class TestShared:
    @pytest.fixture
    def state(self) -> SharedState:
        state = SharedState()
        state.join(A, "a:2181")
        state.join(B, "b:2181")
        for boot in (A, B, B):
            state.open(boot)
        state.commit(A, Entry(LEAVE, b""))
        state.changes()
        return state

    def test_roster_and_owners_come_back(self, state: SharedState) -> None:
        restored = restore([whole(state.machine)])
        assert dump(restored) == dump(state.machine)
        assert restored.shared_digest() == state.machine.shared_digest()

    def test_the_log_goes_on_where_it_was(self, state: SharedState) -> None:
        again = SharedState(restore([whole(state.machine)]))
        again.next = dict(state.next)
        for one in (state, again):
            # What is left of a boot that is over counts as little as before.
            assert one.commit(A, Entry(LEAVE, b"")) == []
            one.open(B)
            one.commit(B, Entry(LEAVE, b""))
            assert [change.heir for change in one.changes()] == [0]
        assert dump(again.machine) == dump(state.machine)

    def test_nothing_is_applied_before_a_batch_has_begun(self, state: SharedState) -> None:
        restored = restore([whole(state.machine)])
        assert restored.apply(Entry(LEAVE, b"")).error == SESSION_MOVED

    def test_in_single_bytes_or_cut_anywhere(self, state: SharedState) -> None:
        good = whole(state.machine)
        assert dump(restore([bytes([byte]) for byte in good])) == dump(state.machine)
        for cut in range(len(good)):
            with pytest.raises(SnapshotError):
                restore([good[:cut]])

    def test_it_is_not_taken_while_something_is_held(self, state: SharedState) -> None:
        state.commit(B, number=9)
        with pytest.raises(AssertionError, match="held"):
            Snapshot(state.machine)
        assert state.machine.tree.images is None

    def test_what_becomes_of_the_roster_meanwhile_is_not_in_it(self, state: SharedState) -> None:
        then = dump(state.machine)
        snapshot = Snapshot(state.machine)
        state.commit(B, Entry(LEAVE, b""))
        assert dump(restore(snapshot.chunks())) == then


def test_replies_of_a_session_that_is_not_there_are_refused() -> None:
    world = World()
    client = world.open(is_exact=True)
    client.create(b"/a")
    snapshot = whole(world.machine)
    at = snapshot.index(b"\x09" + client.session.to_bytes(8, "big"))
    other = snapshot[: at + 1] + (99).to_bytes(8, "big") + snapshot[at + 9 :]
    with pytest.raises(SnapshotError, match="replies of session 0x63, which is not there"):
        restore([other])
    # Behind its kind, session, generation and confirmed xid come the number of chunks, the length
    # of the only one, and the reply: xid, zxid, error, and the length of its body, which is 6.
    length_at = at + 1 + 8 + 8 + 4 + 4 + 4 + 16
    assert snapshot[length_at : length_at + 4] == (6).to_bytes(4, "big")
    for length in (0, 5, 7):
        other = snapshot[:length_at] + length.to_bytes(4, "big") + snapshot[length_at + 4 :]
        with pytest.raises(SnapshotError, match="malformed replies of session 0x1"):
            restore([other])
