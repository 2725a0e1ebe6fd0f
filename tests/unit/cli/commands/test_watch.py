"""What a stream of changes becomes: each one by its name, also those that came as one."""

import asyncio
from collections.abc import AsyncGenerator, Sequence
from typing import cast

import pytest

from paddock.cli.commands.watch import node_changes
from paddock.client.client import Client
from paddock.client.operations.streams import Change
from paddock.protocol.records import Stat

NOW = 100


def found(path: str, czxid: int, mzxid: int) -> Change:
    return Change(path, b"", Stat(czxid, mzxid, 0, 0, 0, 0, 0, 0, 0, 0, 0))


def gone(path: str) -> Change:
    return Change(path, None, None)


class FakeClient:
    """Has seen everything up to NOW, and watches what it is given."""

    last_zxid = 0

    def __init__(self, changes: Sequence[Change]) -> None:
        self._changes = changes

    async def sync(self, path: str) -> None:
        self.last_zxid = NOW

    async def watch(self, path: str, *, recursive: bool) -> AsyncGenerator[Change, None]:
        for change in self._changes:
            yield change


def told(changes: Sequence[Change], *, initially: bool) -> list[str]:
    async def listening() -> list[str]:
        client = cast(Client, FakeClient(changes))
        stream = node_changes(client, "/", recursive=True, initially=initially)
        return [change.kind async for change in stream]

    return asyncio.run(listening())


CASES = {
    "there before": ([found("/a", 1, 100)], ["present"]),
    "not there": ([gone("/a")], ["absent"]),
    "made while we began": ([found("/a", 101, 101)], ["created"]),
    "written while we began": ([found("/a", 100, 101)], ["changed"]),
    "made and written as one": ([gone("/a"), found("/a", 101, 105)], ["absent", "created"]),
    "written later": ([found("/a", 1, 1), found("/a", 1, 101)], ["present", "changed"]),
    "deleted": ([found("/a", 1, 1), gone("/a")], ["present", "deleted"]),
    "deleted and made as one": ([found("/a", 1, 1), found("/a", 101, 101)], ["present", "created"]),
    "made again": (
        [found("/a", 1, 1), gone("/a"), found("/a", 101, 101), gone("/a")],
        ["present", "deleted", "created", "deleted"],
    ),
    "two nodes": ([found("/a", 101, 101), found("/b", 102, 102)], ["created", "created"]),
}


@pytest.mark.parametrize(("changes", "names"), CASES.values(), ids=CASES)
def test_each_change_has_its_name(changes: list[Change], names: list[str]) -> None:
    assert told(changes, initially=True) == names
    assert told(changes, initially=False) == [
        name for name in names if name not in ("present", "absent")
    ]
