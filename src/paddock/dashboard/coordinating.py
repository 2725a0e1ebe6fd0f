"""The recipes that pages look at: recognised once, and again where something changes.

Who recognises them is handed in (`Recognition`). What was recognised below a root is kept for all
persons with the same session, as long as somebody asks for it, and is told of every change there by
a watch. If changes may have been missed, or there are too many of them, the tree is walked again.
"""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Final, Protocol, TypeAlias

from paddock.client.client import Client
from paddock.dashboard.people import Connection
from paddock.dashboard.watched import Follower

Fields: TypeAlias = dict[str, Any]

KEPT_MAX: Final = 8
KEPT_SECONDS: Final = 120.0


class Recognition(Protocol):
    """The recipes below a root, read a bounded number of nodes at a time."""

    @property
    def needs_look(self) -> bool:
        """Whether there is something to look at."""

    async def look(self, client: Client, /) -> int:
        """Look at the next nodes. Raises what the client raises."""

    def note_change(self, path: str, /) -> None:
        """Note that a node was created, changed or deleted."""

    def restart(self) -> None:
        """Walk the tree again."""

    async def close(self) -> None:
        """End the walk."""

    def fields(self) -> Fields:
        """Return what is known, as plain data."""


class _Kept:
    """What is known below one root."""

    def __init__(self, recognition: Recognition, follower: Follower) -> None:
        self.recognition = recognition
        self.follower = follower
        self.looking = asyncio.Lock()
        self.used_at = time.monotonic()


class Coordinating:
    """The recipes of one service."""

    def __init__(self, recognise: Callable[[str], Recognition]) -> None:
        self._recognise = recognise
        self._kept: OrderedDict[tuple[Connection, str], _Kept] = OrderedDict()

    async def present(self, connection: Connection, root: str) -> Fields:
        """Look on below a root, and return what is known."""
        client = connection.client
        await self.sweep()
        kept = self._of(connection, root)
        kept.used_at = time.monotonic()
        # One look at a time; who comes meanwhile has its result as well.
        async with kept.looking:
            if kept.follower.take_lost():
                kept.recognition.restart()
            if kept.recognition.needs_look:
                await kept.recognition.look(client)
        return kept.recognition.fields()

    async def past(self, client: Client, root: str) -> Fields:
        """Look once at a service of the past, which does not change."""
        recognition = self._recognise(root)
        try:
            await recognition.look(client)
            return recognition.fields()
        finally:
            await recognition.close()

    async def sweep(self) -> None:
        """Forget what nobody asks for any more."""
        ends_at = time.monotonic() - KEPT_SECONDS
        for key, kept in [*self._kept.items()]:
            is_old = kept.used_at < ends_at or len(self._kept) > KEPT_MAX
            if is_old and not kept.looking.locked():
                await self._forget(key)

    async def close(self) -> None:
        """Forget everything."""
        for key in [*self._kept]:
            await self._forget(key)

    def _of(self, connection: Connection, root: str) -> _Kept:
        key = connection, root
        if key not in self._kept:
            recognition = self._recognise(root)
            follower = connection.watched.follow(root, recognition.note_change)
            self._kept[key] = _Kept(recognition, follower)
        self._kept.move_to_end(key)
        return self._kept[key]

    async def _forget(self, key: tuple[Connection, str]) -> None:
        kept = self._kept.pop(key)
        key[0].watched.unfollow(kept.follower)
        await kept.recognition.close()


def with_addresses(fields: Fields, addresses: dict[str, str | None]) -> Fields:
    """Return recipes with the addresses of those who hold them and wait for them."""

    def known(contenders: list[Fields]) -> list[Fields]:
        return [
            {**one, "address": one.get("address") or addresses.get(one.get("session") or "")}
            for one in contenders
        ]

    recipes = [
        {
            **one,
            **{name: known(one[name]) for name in ("holders", "waiters") if name in one},
        }
        for one in fields.get("recipes", [])
    ]
    return {**fields, "recipes": recipes}
