"""A tree in memory, and snapshots that share everything with it and never change."""

from __future__ import annotations

from random import Random

import pytest

from paddock.protocol.records import Stat
from paddock.recipes.cache.tree import CachedNode, Tree


def node(path: str, data: bytes = b"") -> CachedNode:
    return CachedNode(path, data, Stat(*[0] * 11))


@pytest.mark.parametrize("top", ["/", "/top"])
def test_a_tree_is_a_dictionary_of_its_nodes_and_so_is_every_snapshot(top: str) -> None:
    random = Random(top)
    tree, model = Tree(top), dict[str, CachedNode]()
    snapshots = []
    for number in range(2000):
        names = [random.choice("abc") for _ in range(random.randint(0, 4))]
        path = "/".join(["" if top == "/" else top, *names]) or "/"
        if random.random() < 0.7:
            model[path] = node(path, b"%d" % number)
            tree.put(model[path])
        else:
            gone = {one for one in model if one == path or one.startswith(path.rstrip("/") + "/")}
            removed = tree.remove(path)
            assert {one.path for one in removed} == gone
            depths = [one.path.count("/") for one in removed if one.path != "/"]
            assert depths == sorted(depths, reverse=True)
            for one in gone:
                del model[one]
        assert tree.get(path) == model.get(path)
        if random.random() < 0.2:
            snapshots.append((tree.snapshot(), dict(model)))
    for snapshot, expected in snapshots:
        assert snapshot == expected
        assert len(snapshot) == len(expected)


def test_a_change_copies_only_the_branches_on_its_way() -> None:
    tree = Tree("/top")
    for path in ("/top", "/top/a", "/top/a/b", "/top/c", "/top/c/d"):
        tree.put(node(path))
    before = tree.snapshot()
    tree.put(node("/top/a/b", b"new"))
    after = tree.snapshot()
    assert before._root.children["c"] is after._root.children["c"]
    assert before._root.children["a"] is not after._root.children["a"]


def test_what_we_know_only_by_what_is_below_it_goes_with_it() -> None:
    tree = Tree("/top")
    tree.put(node("/top/hidden/below"))
    assert tree.children("/top") == ["hidden"]
    assert tree.get("/top/hidden") is None
    assert list(tree.snapshot()) == ["/top/hidden/below"]
    tree.remove("/top/hidden/below")
    assert tree.children("/top") == []


def test_strange_paths_are_in_no_snapshot() -> None:
    tree = Tree("/top")
    tree.put(node("/top"))
    snapshot = tree.snapshot()
    assert "/topmost" not in snapshot
    assert "/" not in snapshot
    strange: object = 7
    assert strange not in snapshot
    assert repr(snapshot) == "<Snapshot /top: 1 nodes>"
