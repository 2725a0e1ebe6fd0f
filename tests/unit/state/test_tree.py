"""The tree: what changes with a node, and that undoing leaves no trace."""

from __future__ import annotations

import gc
import sys

import pytest
from librt.strings import BytesWriter

from paddock.cli.version import is_compiled
from paddock.protocol.acl import ACL, ALL, ANYONE, READ, Identity
from paddock.state.node import (
    CONTAINER,
    TTL_BASE,
    Node,
    node_term,
)
from paddock.state.tree import SPECIAL, Tree
from tests.property.dump import check, dump_node

EVERYBODY = (ACL(ALL, ANYONE),)
BOB = (ACL(READ, Identity("digest", "bob:hash")),)


def create(
    tree: Tree,
    path: bytes,
    data: bytes | None = b"data",
    owner: int = 0,
    zxid: int = 7,
    acls: tuple[ACL, ...] = EVERYBODY,
) -> None:
    above = path[: path.rfind(b"/")]
    node = Node(data, tree.acls.acquire(acls), zxid, 100, owner)
    tree.create(path, node, above, tree.nodes[above])


def delete(tree: Tree, path: bytes, zxid: int) -> None:
    above = path[: path.rfind(b"/")]
    tree.delete(path, tree.nodes[path], above, tree.nodes[above], zxid)


def picture(tree: Tree) -> object:
    check(tree)
    return (
        {path: dump_node(node) for path, node in tree.nodes.items()},
        {owner: sorted(paths) for owner, paths in tree.ephemerals.items()},
        sorted(tree.containers),
        sorted(tree.ttls),
        {wire: acl.users for wire, acl in tree.acls._by_key.items()},
        tree.data_bytes,
        tree.digest(),
    )


@pytest.fixture
def tree() -> Tree:
    return planted()


def planted() -> Tree:
    """Return a tree with nodes of each kind, whose journal starts now."""
    tree = Tree.fresh()
    create(tree, b"/a")
    create(tree, b"/a/b")
    create(tree, b"/a/eph", owner=5)
    create(tree, b"/a/eph2", owner=5)
    create(tree, b"/box", owner=CONTAINER)
    create(tree, b"/ttl", owner=TTL_BASE + 50, acls=BOB)
    create(tree, b"/null", None)
    tree.begin()
    return tree


def test_a_fresh_tree_has_the_four_nodes_that_are_always_there() -> None:
    tree = Tree.fresh()
    check(tree)
    assert set(tree.nodes) == {b"", *SPECIAL}
    assert len(tree) == 4
    assert tree.nodes[b""] is tree.nodes[b"/"]


def test_a_created_node_is_counted_and_known_to_its_parent(tree: Tree) -> None:
    check(tree)
    assert sorted(tree.nodes[b"/a"].child_names()) == [b"b", b"eph", b"eph2"]
    assert sorted(tree.ephemerals[5]) == [b"/a/eph", b"/a/eph2"]
    assert list(tree.containers) == [b"/box"]
    assert list(tree.ttls) == [b"/ttl"]


def test_a_parent_counts_creates_and_keeps_the_zxid_of_the_last_change_of_its_children(
    tree: Tree,
) -> None:
    parent = tree.nodes[b"/a"]
    assert (parent.created, parent.pzxid) == (3, 7)
    delete(tree, b"/a/b", 9)
    assert (parent.created, parent.pzxid, parent.mzxid, parent.version) == (3, 9, 7, 0)
    create(tree, b"/a/b", zxid=10)
    assert (parent.created, parent.pzxid) == (4, 10)


def test_the_last_ephemeral_takes_its_owner_along(tree: Tree) -> None:
    delete(tree, b"/a/eph", 8)
    assert list(tree.ephemerals) == [5]
    delete(tree, b"/a/eph2", 9)
    assert tree.ephemerals == {}


def test_the_digest_follows_every_field(tree: Tree) -> None:
    seen = {tree.digest()}

    def differs() -> None:
        check(tree)
        assert tree.digest() not in seen
        seen.add(tree.digest())

    node = tree.nodes[b"/a"]
    tree.set_data(b"/a", node, b"other", 8, 101)
    differs()
    tree.set_data(b"/a", node, b"", 8, 101)
    differs()
    tree.set_data(b"/a", node, None, 8, 101)
    differs()
    tree.set_acl(b"/a", node, tree.acls.acquire(BOB))
    differs()
    delete(tree, b"/a/b", 9)
    differs()
    create(tree, b"/a/b", b"data", zxid=9)
    differs()


def test_the_digest_is_that_of_the_logs_there_are(tree: Tree) -> None:
    node = tree.nodes[b"/a"]
    node.version, node.created, node.aversion = -(2**31), -1, 2**31 - 1
    assert node_term(b"/a", node, BytesWriter()) == 0xA003CC2C
    assert node_term(b"/ttl", tree.nodes[b"/ttl"], BytesWriter()) == 0x147482E03
    assert node_term(b"/null", tree.nodes[b"/null"], BytesWriter()) == 0x845C9298


def test_an_answer_made_between_two_deletes_of_one_entry_is_not_kept(tree: Tree) -> None:
    parent = tree.nodes[b"/a"]
    delete(tree, b"/a/b", 9)
    between = tree.answers.data_and_stat(parent)
    tree.answers.child_list(parent)
    delete(tree, b"/a/eph", 9)
    assert tree.answers.data_and_stat(parent) != between
    assert tree.answers.data_and_stat(parent).endswith(parent.stat())
    assert tree.answers.child_list(parent).count(b"eph") == 1


def test_the_digest_forgets_what_came_and_went(tree: Tree) -> None:
    before = tree.digest()
    create(tree, b"/a/b/c")
    tree.undo()
    assert tree.digest() == before


def change_create(tree: Tree) -> None:
    create(tree, b"/new", acls=BOB)
    create(tree, b"/new/er", owner=6)
    create(tree, b"/new/box", owner=CONTAINER)
    create(tree, b"/new/ttl", owner=TTL_BASE + 1)


def change_delete(tree: Tree) -> None:
    for path in (b"/a/eph", b"/a/eph2", b"/a/b", b"/a", b"/box", b"/ttl"):
        delete(tree, path, 9)


def change_data(tree: Tree) -> None:
    tree.set_data(b"/a", tree.nodes[b"/a"], b"longer than before", 9, 101)
    tree.set_data(b"/a", tree.nodes[b"/a"], None, 9, 102)
    tree.set_data(b"/null", tree.nodes[b"/null"], b"", 9, 102)


def change_acl(tree: Tree) -> None:
    tree.set_acl(b"/a", tree.nodes[b"/a"], tree.acls.acquire(BOB))
    tree.set_acl(b"/ttl", tree.nodes[b"/ttl"], tree.acls.acquire(EVERYBODY))
    tree.set_acl(b"/a", tree.nodes[b"/a"], tree.acls.acquire(EVERYBODY))


def change_delete_and_create(tree: Tree) -> None:
    delete(tree, b"/ttl", 9)
    create(tree, b"/ttl", owner=8, acls=BOB)
    delete(tree, b"/a/b", 9)
    create(tree, b"/a/b", b"new")
    tree.set_data(b"/a/b", tree.nodes[b"/a/b"], b"newer", 9, 101)
    delete(tree, b"/a/b", 9)


def change_create_and_delete(tree: Tree) -> None:
    create(tree, b"/x", acls=(ACL(READ, Identity("ip", "1.2.3.4")),))
    create(tree, b"/x/y", owner=9)
    delete(tree, b"/x/y", 9)
    delete(tree, b"/x", 9)


@pytest.mark.parametrize(
    "change",
    [
        change_create,
        change_delete,
        change_data,
        change_acl,
        change_delete_and_create,
        change_create_and_delete,
    ],
    ids=lambda change: change.__name__,
)
@pytest.mark.parametrize("settled", [False, True])
def test_undo_restores_everything(tree: Tree, change: object, settled: bool) -> None:
    assert callable(change)
    if settled:
        tree.digest()
    change(tree)
    tree.undo()
    assert picture(tree) == picture(planted())
    # Not because nothing had happened.
    change(tree)
    assert picture(tree) != picture(planted())


def test_undo_goes_back_to_the_last_begin_and_no_further(tree: Tree) -> None:
    create(tree, b"/stays")
    tree.begin()
    before = picture(tree)
    create(tree, b"/goes")
    tree.undo()
    assert picture(tree) == before
    tree.undo()
    assert picture(tree) == before


@pytest.mark.parametrize("creates", range(4))
@pytest.mark.parametrize("sets", range(4))
def test_undo_knows_nothing_of_longer_entries_before(tree: Tree, creates: int, sets: int) -> None:
    for number in range(creates):
        create(tree, b"/stays-%d" % number)
    for _ in range(sets):
        tree.set_data(b"/a", tree.nodes[b"/a"], b"stays", 8, 101)
    tree.begin()
    before = picture(tree)
    tree.set_data(b"/a", tree.nodes[b"/a"], b"goes", 9, 102)
    tree.undo()
    assert picture(tree) == before


@pytest.mark.parametrize("is_undone", [False, True])
def test_what_a_long_entry_has_replaced_does_not_stay_in_memory(
    tree: Tree, is_undone: bool
) -> None:
    olds = [b"old %d" % number for number in range(50)]
    users = [sys.getrefcount(old) for old in olds]
    paths = [b"/%d" % number for number in range(50)]
    for path, number in zip(paths, range(50), strict=True):
        create(tree, path, olds[number])
    tree.begin()
    for path in paths:
        tree.set_data(path, tree.nodes[path], b"new", 8, 101)
    if is_undone:
        tree.undo()
        for path in paths:
            tree.begin()
            tree.set_data(path, tree.nodes[path], b"newer", 9, 102)
    assert [sys.getrefcount(old) for old in olds] != users
    tree.begin()
    tree.set_data(b"/a", tree.nodes[b"/a"], b"in its place", 10, 103)
    assert [sys.getrefcount(old) for old in olds] == users


def test_descendants_are_counted_at_every_depth(tree: Tree) -> None:
    assert tree.descendants(b"/a") == 3
    assert tree.descendants(b"/") == len(tree) - 1
    assert tree.descendants(b"/a/b") == 0
    create(tree, b"/a/b/c")
    assert tree.descendants(b"/a") == 4


def test_compiled_nodes_are_no_concern_of_the_garbage_collector(tree: Tree) -> None:
    # There may be millions, and each of its rounds would look at all of them.
    assert gc.is_tracked(tree.nodes[b"/a"]) != is_compiled()
