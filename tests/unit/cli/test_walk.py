"""The walk over a tree: its order, its limits, what it asks for ahead, what it makes of changes."""

import asyncio
import gc
from collections.abc import Callable, Coroutine, Iterable
from contextlib import aclosing
from typing import Any, TypeVar, cast

import pytest

from paddock.cli.walk import (
    AHEAD_MAX,
    EVERYTHING,
    MANY_BYTES,
    MANY_CHILDREN,
    WINDOW,
    Found,
    Limits,
    child_of,
    walk,
)
from paddock.client.client import Client
from paddock.client.results import NodeData
from paddock.errors import ConnectionLostError, NoAuthError, NoNodeError
from paddock.protocol.records import Stat

T = TypeVar("T")


class FakeClient:
    """A tree in memory that answers in the order of the questions, each in a pass of its own."""

    def __init__(self, paths: Iterable[str]) -> None:
        self.data = {"/": b"", **dict.fromkeys(paths, b"data")}
        # Listed as they were, but not there any more when somebody asks.
        self.gone: set[str] = set()
        # There when its stat is asked for, and gone when anything else is.
        self.vanished: set[str] = set()
        self.forbidden: set[str] = set()
        self.under_way: dict[str, int] = {"exists": 0, "children": 0, "get": 0}
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


def walked(
    client: FakeClient, path: str = "/", limits: Limits = EVERYTHING, **options: Any
) -> list[Found]:
    async def walking() -> list[Found]:
        return [found async for found in walk(cast(Client, client), path, limits, **options)]

    return asyncio.run(walking())


TREE = ["/b", "/a", "/a/y", "/a/x", "/a/x/deep", "/a-b", "/c"]
IN_ORDER = ["/", "/a", "/a/x", "/a/x/deep", "/a/y", "/a-b", "/b", "/c"]


def test_parents_come_first_and_children_by_name() -> None:
    found = walked(FakeClient(TREE))
    assert [one.path for one in found] == IN_ORDER
    assert [one.depth for one in found] == [0, 1, 2, 3, 2, 1, 1, 1]
    assert [one.path for one in found if one.is_last] == ["/", "/a/x/deep", "/a/y", "/c"]
    assert [one.name for one in found][:3] == ["/", "a", "x"]


def test_it_begins_where_it_is_told() -> None:
    found = walked(FakeClient(TREE), "/a/x")
    assert [(one.path, one.depth) for one in found] == [("/a/x", 0), ("/a/x/deep", 1)]


def test_a_node_that_is_not_there_is_said_so() -> None:
    with pytest.raises(NoNodeError, match="/none"):
        walked(FakeClient(TREE), "/none")


def test_limits_leave_out_what_is_deeper_and_who_comes_later() -> None:
    found = walked(FakeClient(TREE), "/", Limits(depth=1))
    assert [one.path for one in found] == ["/", "/a", "/a-b", "/b", "/c"]
    assert [(one.path, one.omitted) for one in found if one.omitted] == [("/a", 2)]
    found = walked(FakeClient(TREE), "/", Limits(children=1))
    assert [one.path for one in found] == ["/", "/a", "/a/x", "/a/x/deep"]
    assert [one.omitted for one in found] == [3, 1, 0, 0]
    assert [one.is_leaf for one in found] == [False, False, False, True]


def test_nothing_below_the_deepest_level_is_asked_for() -> None:
    client = FakeClient(TREE)
    walked(client, "/", Limits(depth=1))
    assert [path for kind, path in client.asked if kind == "children"] == ["/"]


def test_what_has_gone_meanwhile_is_left_out() -> None:
    client = FakeClient(TREE)
    client.gone = {"/a/x", "/c"}
    found = walked(client)
    assert [one.path for one in found] == ["/", "/a", "/a/y", "/a-b", "/b"]
    # The last one is the last of those that are there.
    assert [one.path for one in found if one.is_last] == ["/", "/a/y", "/b"]


def test_what_goes_between_two_questions_ends_there() -> None:
    client = FakeClient(TREE)
    client.vanished = {"/a"}
    found = walked(client, wants_data=lambda path, stat: True)
    assert [one.path for one in found] == ["/", "/a", "/a-b", "/b", "/c"]
    assert [one.path for one in found if one.data is None] == ["/a"]
    assert [one.problem for one in found if one.problem is not None] == []


def test_what_may_not_be_listed_says_so_and_the_rest_comes() -> None:
    client = FakeClient(TREE)
    client.forbidden = {"/a"}
    found = walked(client)
    assert [one.path for one in found] == ["/", "/a", "/a-b", "/b", "/c"]
    assert [one.path for one in found if one.problem is not None] == ["/a"]


def test_data_are_read_of_those_of_which_they_are_wanted() -> None:
    client = FakeClient(TREE)
    client.forbidden = {"/b"}
    found = walked(client, wants_data=lambda path, stat: path in ("/a", "/b"))
    assert [one.path for one in found if one.data == b"data"] == ["/a"]
    assert [str(one.problem) for one in found if one.problem] == [
        "get /b: the ACL does not permit it"
    ]
    assert sorted(path for kind, path in client.asked if kind == "get") == ["/a", "/b"]


def test_much_is_asked_for_at_once_and_no_more_than_the_window() -> None:
    client = FakeClient(f"/n{number:04}" for number in range(3 * WINDOW))
    assert len(walked(client)) == 3 * WINDOW + 1
    assert client.under_way_max["exists"] == WINDOW


def test_few_are_looked_into_ahead_of_time() -> None:
    names = [f"/n{number:04}" for number in range(2 * AHEAD_MAX)]
    client = FakeClient([*names, *(f"{name}/x" for name in names)])
    assert len(walked(client, wants_data=lambda path, stat: True)) == 4 * AHEAD_MAX + 1
    assert 1 < client.under_way_max["children"] <= AHEAD_MAX + 1
    assert 1 < client.under_way_max["get"] <= 2 * AHEAD_MAX


def test_what_is_much_is_asked_for_when_we_come_to_it() -> None:
    client = FakeClient(["/a", "/a/x", "/large", "/wide"])
    client.data["/large"] = bytes(MANY_BYTES + 1)
    client.data |= {f"/wide/{number}": b"" for number in range(MANY_CHILDREN + 1)}

    async def asked_when_at(path: str) -> list[tuple[str, str]]:
        everywhere = walk(cast(Client, client), "/", wants_data=lambda path, stat: True)
        async with aclosing(everywhere) as nodes:
            async for found in nodes:
                if found.path == path:
                    break
        return client.asked

    asked = asyncio.run(asked_when_at("/a/x"))
    assert ("children", "/a") in asked
    assert ("get", "/large") not in asked
    assert ("children", "/wide") not in asked
    assert len(walked(client)) == len(client.data)


def complaints_of(walking: Callable[[], Coroutine[Any, Any, None]]) -> list[dict[str, Any]]:
    """Give what asyncio says of answers that nobody has looked at."""
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
        whole = walk(cast(Client, client), "/", wants_data=lambda path, stat: path != "/")
        async with aclosing(whole) as nodes:
            async for found in nodes:
                if found.path == "/n0002":
                    # What comes next was asked for, and has failed by now.
                    break

    assert complaints_of(leaving) == []


@pytest.mark.parametrize("after", [1, 2, 3, 10, WINDOW, WINDOW + 10, WINDOW + 40])
def test_a_walk_that_fails_says_so_once(after: int) -> None:
    client = FakeClient(f"/n{number:04}/x" for number in range(WINDOW))
    client.data |= {f"/n{number:04}": b"data" for number in range(WINDOW)}
    client.answers_left = after

    async def failing() -> None:
        everywhere = walk(cast(Client, client), "/", wants_data=lambda path, stat: True)
        with pytest.raises(ConnectionLostError):
            async for _ in everywhere:
                pass

    assert complaints_of(failing) == []


def test_the_child_of_the_root_has_one_slash() -> None:
    assert (child_of("/", "a"), child_of("/a", "b")) == ("/a", "/a/b")
