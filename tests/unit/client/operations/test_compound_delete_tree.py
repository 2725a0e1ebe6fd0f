"""A tree is deleted with a bounded number of requests under way."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from paddock.client.client import Client
from paddock.client.operations.compound import delete_tree
from paddock.errors import NotEmptyError


class Forest:
    """A client on a tree; it answers in the next pass of the loop, and counts what waits for it."""

    def __init__(self, paths: list[str]) -> None:
        self.paths = dict.fromkeys(paths)
        self.under_way_max = 0
        self._under_way = 0

    async def delete(self, path: str) -> None:
        await self._answer()
        if any(one.startswith(f"{path}/") for one in self.paths):
            raise NotEmptyError("delete", path)
        del self.paths[path]

    async def children(self, path: str) -> list[str]:
        await self._answer()
        below = [one.removeprefix(f"{path}/") for one in self.paths if one.startswith(f"{path}/")]
        return [name for name in below if "/" not in name]

    async def _answer(self) -> None:
        self._under_way += 1
        self.under_way_max = max(self.under_way_max, self._under_way)
        await asyncio.sleep(0)
        self._under_way -= 1


@pytest.mark.parametrize("batch", [1, 7, 64])
def test_no_more_requests_than_the_batch_are_under_way(batch: int) -> None:
    leaves = [f"/app/{number}/{leaf}" for number in range(10) for leaf in range(20)]
    forest = Forest(["/app", *(f"/app/{number}" for number in range(10)), *leaves])
    assert asyncio.run(delete_tree(cast(Client, forest), "/app", batch)) == 211
    assert forest.paths == {}
    assert forest.under_way_max == batch
