"""Classes of every kind that the tool has a rule for; its tests write their twins, and use them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import TracebackType
from typing import Self, TypeAlias

Listener: TypeAlias = Callable[[str], None]

MANY = 3


class House:
    """What everything comes from."""

    def __init__(self) -> None:
        # Who is in it.
        self.guests: list[str] = []
        self._listeners: dict[Listener, None] = {}

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    async def close(self) -> None:
        """Say that it is over."""
        self._tell("closed")

    def another(self) -> House:
        """Build one more."""
        return House()

    @property
    def size(self) -> int:
        """How many are in it."""
        return len(self.guests)

    def add_listener(self, listener: Listener | None) -> None:
        """Have somebody told.

        await house.add_listener(print)
        async for one in house.count():
            async with asyncio.timeout(1):
                await one
        """
        if listener is not None:
            self._listeners[listener] = None
            self._tell("listening")

    def remove_listener(self, listener: Listener) -> None:
        del self._listeners[listener]

    def invite(
        self, name: str, /, times: int = MANY, *, loudly: bool = False
    ) -> asyncio.Future[str]:
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self.guests.append(name)
        self._tell(name)
        future.set_result((name.upper() if loudly else name) * times)
        return future

    async def count(self, limit: int) -> AsyncIterator[int]:
        for number in range(limit):
            yield number

    @asynccontextmanager
    async def party(self, name: str) -> AsyncIterator[str]:
        self._tell(f"{name} begins")
        yield name
        self._tell(f"{name} ends")

    def key(self) -> Key:
        """Make a key."""
        return Key(self)

    def _tell(self, what: str) -> None:
        for listener in self._listeners:
            listener(what)


class Key:
    """What others are made with."""

    def __init__(self, house: House) -> None:
        self._house = house
        self._teeth: list[int] = []

    def cut(self, depth: int) -> Self:
        """Cut one more tooth."""
        self._teeth.append(depth)
        return self

    async def fits(self, other: Key) -> bool:
        """Whether two are alike."""
        return other._teeth == self._teeth

    async def copy(self) -> Key:
        copy = Key(self._house)
        copy._teeth = list(self._teeth)
        return copy

    async def __aenter__(self) -> Key:
        return await self.copy()

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> bool:
        return isinstance(error, KeyError)


def build() -> House:
    """Build one."""
    return House()
