"""The recipes that pages look at: recognised once, and again where something changes.

Who recognises them is handed in (`Recognition`). What was recognised below a root is kept for all
persons with the same session, as long as somebody asks for it, and is told of every change there by
a watch. If changes may have been missed, or there are too many of them, the tree is walked again.

How much of that the service pays for does not depend on how many look, nor how large the tree is:

* At most `NODES_PER_SECOND` nodes are looked at, for all persons with the same session together.
* A walk that has begun is gone on with. The next one begins when it has paid for itself: on
  average at most `WALKED_PER_SECOND` nodes are walked. Until then, what is known is given out, with
  the time of the last walk (`read_ms`).
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
NODES_PER_SECOND: Final = 20_000
WALKED_PER_SECOND: Final = 1000
# For so long somebody waits for a walk; if it is due later, they get what is known.
_PATIENCE_SECONDS: Final = 1.0


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
        # Whether changes may have been missed since the last walk began.
        self._is_lost = True
        self.is_walking = False
        # When the next look and the next walk are due, and when the last walk ended.
        self._look_due = self._walk_due = 0.0
        self._read_ms: int | None = None

    async def look(self, client: Client) -> None:
        """Look on, if there is something to look at and it is due."""
        self._is_lost = self.follower.take_lost() or self._is_lost
        if self._is_lost and not self.is_walking and await _is_due(self._walk_due):
            self.recognition.restart()
            self._is_lost, self.is_walking = False, True
        if self.recognition.needs_look:
            await self._look_on(client)

    async def _look_on(self, client: Client) -> None:
        await asyncio.sleep(max(0.0, self._look_due - time.monotonic()))
        count = await self.recognition.look(client)
        now = time.monotonic()
        self._look_due = now + count / NODES_PER_SECOND
        if self.is_walking:
            self._walk_due = max(self._walk_due, now) + count / WALKED_PER_SECOND
            self.is_walking = self.recognition.needs_look
            if not self.is_walking:
                self._read_ms = time.time_ns() // 1_000_000

    def fields(self) -> Fields:
        """Return what is known, and of when it is if changes are not followed."""
        read_ms = None if self.follower.is_watched else self._read_ms
        return {**self.recognition.fields(), "read_ms": read_ms}


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
        # One look at a time; who comes while the tree is walked has its result as well.
        has_waited = kept.looking.locked()
        async with kept.looking:
            if not (has_waited and kept.is_walking):
                await kept.look(client)
        return kept.fields()

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


async def _is_due(at: float) -> bool:
    """Return whether something is due, also if it was so after a short wait."""
    left = at - time.monotonic()
    if left > _PATIENCE_SECONDS:
        return False
    await asyncio.sleep(max(0.0, left))
    return True


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
