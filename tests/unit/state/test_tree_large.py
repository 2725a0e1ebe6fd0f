"""A tree so large that its tables are spread over many dicts: nothing of it is overlooked."""

from __future__ import annotations

import pytest

from paddock.protocol.acl import OPEN
from paddock.protocol.jute import Reader
from paddock.state.machine import StateMachine
from paddock.state.node import TTL_BASE, Node
from paddock.state.snapshot import Snapshot, restore
from paddock.state.table import FIRST_MAX
from paddock.state.tree import Tree
from tests.unit.state.driver import Connection, World

COUNT = FIRST_MAX + 2_000
NAMES = sorted(b"n%d" % number for number in range(COUNT))


@pytest.fixture
def world() -> World:
    """Return a world with many TTL nodes under one parent."""
    world = World()
    world.open().create(b"/p")
    tree = Tree()
    for path, node in world.machine.tree.nodes.items():
        if path:
            node.children = None
            tree.acls.retain(node.acl)
            tree.plant(path, node)
    for name in NAMES:
        tree.plant(b"/p/" + name, Node(b"", tree.acls.acquire(OPEN), 1, 1, TTL_BASE + 5_000))
    assert tree.link() is None
    tree.nodes[b"/p"].created = COUNT
    tree.adopt_digest()
    world.machine.adopt(tree)
    for table in (tree.nodes, tree.nodes[b"/p"].children):
        assert table is not None
        assert len(table.dicts()) > 1
    return world


def names(machine: StateMachine) -> list[bytes]:
    return sorted(machine.tree.nodes[b"/p"].child_names())


def listed(machine: StateMachine) -> list[bytes]:
    """Return the names in the answer to get_children."""
    tree = machine.tree
    return sorted(Reader(tree.answers.child_list(tree.nodes[b"/p"])).strings())


def test_a_snapshot_has_its_point_whatever_changes_meanwhile(
    world: World, client: Connection
) -> None:
    machine = world.machine
    zxid, digest = machine.zxid, machine.digest()
    chunks = list[bytes]()
    for number, chunk in enumerate(Snapshot(machine).chunks()):
        chunks.append(chunk)
        # Some that were walked already, some that were not, and some that are new.
        client.set(b"/p/" + NAMES[number * 331], b"later")
        client.delete(b"/p/" + NAMES[-1 - number * 331])
        client.create(b"/p/later%d" % number)
    assert len(chunks) > COUNT // 1000
    assert machine.digest() != digest
    restored = restore(chunks)
    assert (restored.zxid, restored.digest()) == (zxid, digest)
    assert names(restored) == NAMES
    assert len(restored.tree.ttls) == COUNT


def test_all_children_are_listed_and_can_be_deleted(world: World, client: Connection) -> None:
    machine = world.machine
    assert listed(machine) == names(machine) == NAMES
    gone = NAMES[::40]
    for name in gone:
        client.delete(b"/p/" + name)
    left = sorted(set(NAMES).difference(gone))
    assert listed(machine) == names(machine) == left
    assert sorted(machine.tree.ttls) == [b"/p/" + name for name in left]
    assert world.stat(b"/p").num_children == len(left)
