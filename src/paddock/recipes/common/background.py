"""The common parts of recipes: their arguments, and a background task with a scope."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Self

from paddock.client.client import Client
from paddock.errors import RecipeClosedError, UsageError
from paddock.protocol.acl import ACL
from paddock.recipes.common.retry import check_recipe


class Recipe:
    """The client, the path and the ACL of a recipe, checked."""

    def __init__(self, client: Client, path: str, acl: Sequence[ACL]) -> None:
        check_recipe(client, path, acl)
        self._client = client
        self._path = path
        self._acl = acl

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self._path}>"


class Background:
    """A recipe with a scope: entering it starts a task, leaving it closes the recipe."""

    def __init__(self, subject: str) -> None:
        # What errors call it.
        self._subject = subject
        self._task: asyncio.Task[None] | None = None
        self._is_closed = False
        self._failure: Exception | None = None
        # Replaced and set when something has changed.
        self._changed = asyncio.Event()

    async def __aenter__(self) -> Self:
        try:
            await self._open()
        except BaseException:
            # Not awaited: a cancelled task must not wait for the service.
            self._stop()
            raise
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Stop; what is known stays. Closing twice is fine."""
        self._stop()
        if self._task is not None:
            await asyncio.wait([self._task])

    async def _open(self) -> None:
        """Start it, and wait until it is ready."""
        raise NotImplementedError

    def _stop(self) -> None:
        self._is_closed = True
        self._wake()
        if self._task is not None:
            self._task.cancel()

    @property
    def _is_over(self) -> bool:
        return self._is_closed or self._failure is not None

    def _check_unstarted(self) -> None:
        if self._is_closed:
            raise self._closed()
        if self._task is not None:
            raise UsageError(f"{self._subject} was started before")

    def _check(self) -> None:
        """Raise unless it is started and goes on."""
        if self._failure is not None:
            raise self._failure
        if self._is_closed:
            raise self._closed()
        if self._task is None:
            raise UsageError(f"{self._subject} was not started; enter its scope")

    def _closed(self) -> RecipeClosedError:
        return RecipeClosedError(f"{self._subject} was closed")

    def _wake(self) -> None:
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        self._check()
        while not condition():
            await self._changed.wait()
            self._check()
