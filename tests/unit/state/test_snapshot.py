"""Snapshots that are damaged, and what keeps a snapshot to its point."""

from __future__ import annotations

import pytest

from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, Identity
from paddock.state.machine import StateMachine
from paddock.state.snapshot import BACKLOG_BYTES_MAX, FORMAT, Snapshot, SnapshotError, restore
from tests.property.dump import dump
from tests.unit.state.driver import World


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
