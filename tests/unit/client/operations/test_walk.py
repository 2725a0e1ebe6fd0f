"""The walk over a tree: its order, its limits, what it asks for ahead, what it makes of changes."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterable
from contextlib import aclosing
from itertools import product
from typing import Any, TypeVar, cast

import pytest

from paddock.client.operations import walk as module
from paddock.client.operations.operations import Operations
from paddock.client.operations.walk import NAMES_MAX, WINDOW, TreeWalk, WalkedNode
from paddock.client.results import NodeData
from paddock.errors import ConnectionLostError, InvalidArgumentError, NoAuthError, NoNodeError
from paddock.protocol.acl import ACL, OPEN
from paddock.protocol.records import Stat

T = TypeVar("T")


class FakeClient:
    """A tree in memory that answers in the order of the questions, each in a pass of its own."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.data = {"/": b"", **dict.fromkeys(paths, b"data")}
        # Listed as they were, but gone when they are read.
        self.gone: set[str] = set()
        # There when its stat is asked for, and gone when anything else is.
        self.vanished: set[str] = set()
        self.forbidden: set[str] = set()
        self.under_way: dict[str, int] = {"exists": 0, "children": 0, "get": 0, "get_acl": 0}
        self.under_way_max = dict(self.under_way)
        self.asked: list[tuple[str, str]] = []
        # After so many the connection is lost.
        self.answers_left = 1_000_000

    def exists(self, path: str) -> "asyncio.Future[Stat | None]":
        def answer() -> Stat | None:
            return self._stat(path) if path in self.data and path not in self.gone else None

        return self._answer("exists", path, answer)

    def children(self, path: str) -> "asyncio.Future[list[str]]":
        return self._answer("children", path, lambda: self._names(path))

    def get(self, path: str) -> "asyncio.Future[NodeData]":
        return self._answer("get", path, lambda: NodeData(self.data[path], self._stat(path)))

    def get_acl(self, path: str) -> "asyncio.Future[tuple[list[ACL], Stat]]":
        return self._answer("get_acl", path, lambda: ([*OPEN], self._stat(path)))

    def _names(self, path: str) -> list[str]:
        start = path.rstrip("/") + "/"
        # In no particular order.
        return [
            one.removeprefix(start)
            for one in reversed(self.data)
            if one.startswith(start) and one != "/" and "/" not in one.removeprefix(start)
        ]

    def _stat(self, path: str) -> Stat:
        return Stat(0, 0, 0, 0, 0, 0, 0, 0, len(self.data[path]), len(self._names(path)), 0)

    def _answer(self, kind: str, path: str, answer: Callable[[], T]) -> "asyncio.Future[T]":
        future: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        self.asked.append((kind, path))
        self.under_way[kind] += 1
        self.under_way_max[kind] = max(self.under_way_max[kind], self.under_way[kind])

        def reply() -> None:
            self.under_way[kind] -= 1
            self.answers_left -= 1
            if future.cancelled():
                return
            if self.answers_left < 0:
                future.set_exception(ConnectionLostError(kind, path))
                return
            if kind != "exists" and path in self.forbidden:
                future.set_exception(NoAuthError(kind, path))
            elif kind != "exists" and path in self.gone | self.vanished:
                future.set_exception(NoNodeError(kind, path))
            else:
                future.set_result(answer())

        asyncio.get_running_loop().call_soon(reply)
        return future


def tree_walk(client: FakeClient, path: str, **options: Any) -> TreeWalk:
    return TreeWalk(cast(Operations, client), path, **options)


def walked(client: FakeClient, path: str = "/", **options: Any) -> list[WalkedNode]:
    async def walking() -> list[WalkedNode]:
        return [node async for node in tree_walk(client, path, **options).nodes()]

    return asyncio.run(walking())


def paths_of(nodes: Iterable[WalkedNode]) -> list[str]:
    return [node.path for node in nodes]


TREE = ["/b", "/a", "/a/y", "/a/x", "/a/x/deep", "/a-b", "/c"]
IN_ORDER = ["/", "/a", "/a/x", "/a/x/deep", "/a/y", "/a-b", "/b", "/c"]


def test_parents_come_first_and_children_by_name() -> None:
    found = walked(FakeClient(TREE))
    assert paths_of(found) == IN_ORDER
    assert [one.depth for one in found] == [0, 1, 2, 3, 2, 1, 1, 1]
    assert [one.path for one in found if one.is_last] == ["/", "/a/x/deep", "/a/y", "/c"]
    assert [one.name for one in found][:3] == ["/", "a", "x"]


def test_it_begins_where_it_is_told() -> None:
    found = walked(FakeClient(TREE), "/a/x")
    assert [(one.path, one.depth) for one in found] == [("/a/x", 0), ("/a/x/deep", 1)]


@pytest.mark.parametrize("acl", [False, True])
def test_a_root_that_does_not_exist_is_an_error(acl: bool) -> None:
    client = FakeClient(TREE)
    client.gone = {"/a"}
    with pytest.raises(NoNodeError, match="walk /a: no such node"):
        walked(client, "/a", acl=acl)
    with pytest.raises(NoNodeError, match="walk /a: no such node"):
        walked(client, "/a", acl=acl, after="/a/x")


def test_limits_leave_out_deeper_levels_and_later_children() -> None:
    found = walked(FakeClient(TREE), "/", depth=1)
    assert paths_of(found) == ["/", "/a", "/a-b", "/b", "/c"]
    assert [(one.path, one.omitted) for one in found if one.omitted] == [("/a", 2)]
    found = walked(FakeClient(TREE), "/", max_children=1)
    assert paths_of(found) == ["/", "/a", "/a/x", "/a/x/deep"]
    assert [one.omitted for one in found] == [3, 1, 0, 0]
    assert [one.is_leaf for one in found] == [False, False, False, True]


def test_nothing_below_the_deepest_level_is_asked_for() -> None:
    client = FakeClient(TREE)
    walked(client, "/", depth=1)
    assert [path for kind, path in client.asked if kind == "children"] == ["/"]


def test_a_node_that_was_deleted_meanwhile_is_left_out() -> None:
    client = FakeClient(TREE)
    client.gone = {"/a/x", "/c"}
    found = walked(client)
    assert paths_of(found) == ["/", "/a", "/a/y", "/a-b", "/b"]
    # The last one is the last of those that are there.
    assert [one.path for one in found if one.is_last] == ["/", "/a/y", "/b"]


def test_a_node_that_is_deleted_between_two_requests_is_gone() -> None:
    client = FakeClient(TREE)
    client.vanished = {"/a"}
    found = walked(client, data=True)
    assert paths_of(found) == ["/", "/a", "/a-b", "/b", "/c"]
    assert [one.path for one in found if one.data is None] == ["/a"]
    assert [one.path for one in found if one.is_gone] == ["/a"]
    assert [one.error for one in found if one.error is not None] == []


def test_vanished_nodes_are_counted_once() -> None:
    client = FakeClient(TREE)
    client.vanished, client.gone = {"/a"}, {"/c"}

    async def main() -> int:
        walk = tree_walk(client, "/", data=True)
        async for _ in walk.nodes():
            pass
        return walk.vanished

    assert asyncio.run(main()) == 2


def test_a_node_that_may_not_be_listed_has_an_error_and_the_rest_comes() -> None:
    client = FakeClient(TREE)
    client.forbidden = {"/a"}
    found = walked(client)
    assert paths_of(found) == ["/", "/a", "/a-b", "/b", "/c"]
    assert [one.path for one in found if one.error is not None] == ["/a"]


def test_data_are_read_of_those_nodes_that_the_filter_selects() -> None:
    client = FakeClient(TREE)
    client.forbidden = {"/b"}
    found = walked(client, data=lambda path, stat: path in ("/a", "/b"))
    assert [one.path for one in found if one.data == b"data"] == ["/a"]
    assert [str(one.error) for one in found if one.error] == ["get /b: the ACL does not permit it"]
    assert sorted(path for kind, path in client.asked if kind == "get") == ["/a", "/b"]


def test_empty_data_take_no_request() -> None:
    client = FakeClient(TREE)
    client.data["/b"] = b""
    found = {one.path: one.data for one in walked(client, data=True)}
    assert (found["/b"], found["/c"]) == (b"", b"data")
    assert ("get", "/b") not in client.asked


def test_acls_come_with_the_stats() -> None:
    client = FakeClient(TREE)
    client.forbidden = {"/a"}
    found = walked(client, acl=True)
    assert paths_of(found) == ["/", "/a", "/a-b", "/b", "/c"]
    assert [one.path for one in found if one.acl != [*OPEN]] == ["/a"]
    assert [str(one.error) for one in found if one.error] == [
        "get_acl /a: the ACL does not permit it"
    ]
    assert not any(kind == "exists" for kind, _ in client.asked)


def test_what_is_below_a_node_is_left_out_on_request() -> None:
    async def main() -> list[str]:
        paths = []
        async for node in tree_walk(FakeClient(TREE), "/", data=True).nodes():
            paths.append(node.path)
            node.descends = node.path != "/a"
        return paths

    assert asyncio.run(main()) == ["/", "/a", "/a-b", "/b", "/c"]


@pytest.mark.parametrize(
    ("window", "bytes_max", "names_max"), [*product((2, 3, 7, 500), (0, 9), (0, 3, 9))]
)
def test_the_budgets_do_not_change_the_order_and_a_walk_resumes_anywhere(
    window: int, bytes_max: int, names_max: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "WINDOW", window)
    monkeypatch.setattr(module, "DATA_BYTES_MAX", bytes_max)
    monkeypatch.setattr(module, "NAMES_MAX", names_max)
    paths = ["/", "/a", "/a/a", "/a/a/a", "/a/b", "/b", "/c", "/c/a", "/c/b", "/c/b/a", "/d"]
    client = FakeClient(reversed(paths))
    whole = walked(client, data=True)
    assert paths_of(whole) == paths
    assert [one.path for one in whole if one.is_last] == [
        "/",
        "/a/a/a",
        "/a/b",
        "/c/b",
        "/c/b/a",
        "/d",
    ]
    for number, path in enumerate(paths):
        assert walked(client, data=True, after=path) == whole[number + 1 :]


@pytest.mark.parametrize("gone", ["/b", "/b/deep", "/c/w/deep"])
def test_a_walk_resumes_behind_a_node_that_is_gone(gone: str) -> None:
    client = FakeClient(["/a", "/c", "/c/x", "/e"])
    expected = [path for path in ("/c", "/c/x", "/e") if path.split("/") > gone.split("/")]
    assert paths_of(walked(client, after=gone)) == expected


def test_a_node_that_may_not_be_listed_on_the_way_to_the_resumption_comes_with_its_error() -> None:
    client = FakeClient(TREE)
    client.forbidden = {"/a"}
    found = walked(client, after="/a/x")
    assert paths_of(found) == ["/a", "/a-b", "/b", "/c"]
    assert found[0].error is not None


def test_a_resumed_walk_keeps_its_limits() -> None:
    assert paths_of(walked(FakeClient(TREE), depth=1, after="/a")) == ["/a-b", "/b", "/c"]
    assert paths_of(walked(FakeClient(TREE), max_children=2, after="/a/x")) == [
        "/a/x/deep",
        "/a/y",
        "/a-b",
    ]


def test_many_requests_are_in_flight_and_no_more_than_the_window() -> None:
    client = FakeClient(f"/n{number:04}" for number in range(3 * WINDOW))
    assert len(walked(client, data=True)) == 3 * WINDOW + 1
    assert client.under_way_max["exists"] == WINDOW
    assert client.under_way_max["get"] == WINDOW


def test_a_deep_tree_is_read_ahead() -> None:
    names = [f"/n{number:04}" for number in range(50)]
    client = FakeClient([*names, *(f"{name}/x" for name in names)])

    async def asked_when_at(path: str) -> list[str]:
        async with aclosing(tree_walk(client, "/").nodes()) as nodes:
            async for node in nodes:
                if node.path == path:
                    break
        return [path for kind, path in client.asked if kind == "children"]

    assert len(asyncio.run(asked_when_at("/n0000"))) == 51


def test_large_nodes_are_read_when_it_is_their_turn() -> None:
    client = FakeClient(["/a", "/a/x", "/large", "/wide"])
    client.data["/large"] = bytes(module.DATA_BYTES_MAX + 1)
    client.data |= {f"/wide/{number}": b"" for number in range(NAMES_MAX + 1)}

    async def asked_when_at(path: str) -> list[tuple[str, str]]:
        async with aclosing(tree_walk(client, "/", data=True).nodes()) as nodes:
            async for node in nodes:
                if node.path == path:
                    break
        return client.asked

    asked = asyncio.run(asked_when_at("/a/x"))
    assert ("children", "/a") in asked
    assert ("get", "/large") not in asked
    assert ("children", "/wide") not in asked
    assert len(walked(client)) == len(client.data)


def complaints_of(walking: Callable[[], Coroutine[Any, Any, None]]) -> list[dict[str, Any]]:
    """Return what asyncio reports of results that were never retrieved."""
    complaints: list[dict[str, Any]] = []

    async def listened() -> None:
        asyncio.get_running_loop().set_exception_handler(lambda _, one: complaints.append(one))
        await walking()
        await asyncio.sleep(0)
        gc.collect()

    asyncio.run(listened())
    return complaints


def test_a_walk_that_is_left_waits_for_nothing() -> None:
    client = FakeClient(f"/n{number:04}" for number in range(WINDOW))
    client.forbidden = set(client.data) - {"/"}

    async def leaving() -> None:
        whole = tree_walk(client, "/", data=lambda path, stat: path != "/").nodes()
        async with aclosing(whole) as nodes:
            async for found in nodes:
                if found.path == "/n0002":
                    # What comes next was asked for, and has failed by now.
                    break

    assert complaints_of(leaving) == []


@pytest.mark.parametrize("after", [1, 2, 3, 10, WINDOW, WINDOW + 10, 2 * WINDOW + 40])
def test_a_walk_that_fails_says_so_once(after: int) -> None:
    client = FakeClient(f"/n{number:04}/x" for number in range(WINDOW))
    client.data |= {f"/n{number:04}": b"data" for number in range(WINDOW)}
    client.answers_left = after

    async def failing() -> None:
        everywhere = tree_walk(client, "/", data=True).nodes()
        with pytest.raises(ConnectionLostError):
            async for _ in everywhere:
                pass

    assert complaints_of(failing) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"depth": -1}, "depth: -1 is not 0 or more"),
        ({"max_children": 0}, "max_children: 0 is not 1 or more"),
        ({"acl": None}, "acl: expected True or False"),
        ({"data": None}, "data: expected True, False or a function, not None"),
        ({"after": "/b"}, "after: '/b' is not in the tree '/a'"),
        ({"after": "a"}, "path: 'a' does not begin with a slash"),
    ],
)
def test_arguments_are_checked_at_once(options: dict[str, Any], message: str) -> None:
    with pytest.raises(InvalidArgumentError, match=message):
        tree_walk(FakeClient([]), "/a", **options)
