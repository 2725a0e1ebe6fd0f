"""A lock for the stage itself to be tried on: right as it is, and wrong in a chosen way.

It is no model for anything; `paddock.recipes.locks.lock` is. Each `Flaw` is one that real libraries
have had, and the stage has to find it.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from paddock.client.client import Client
from paddock.client.states import Event, EventType, SessionState
from paddock.client.transaction import Transaction
from paddock.errors import ConnectionLostError, LockStateError, NoNodeError, SessionExpiredError
from paddock.protocol.records import Stat


class Flaw(enum.Enum):
    """What is wrong with a lock."""

    NONE = "nothing"
    STAYS_WHEN_CANCELLED = "who is cancelled while waiting stays in the line"
    STAYS_WHEN_CANCELLED_EARLY = "who is cancelled before the reply to its create stays"
    CREATES_TWICE = "who loses the reply to its create creates once more"
    TRUSTS_THE_EVENT = "who hears that the one before has gone does not look who is there now"
    KEEPS_THE_BODY = "the body goes on when the session is over"
    WRONG_TOKEN = "the token is that of the line, not of the place in it"
    NO_GUARD = "what is written under a grant is not guarded"
    LEAVES_A_WATCH = "a watch is left behind"
    LEAVES_A_TASK = "a task is left behind"
    SWALLOWS = "being cancelled is not passed on"
    DELETES_ONCE = "a release whose reply is lost is not tried again"


class ToyGrant:
    """That it is held."""

    def __init__(self, client: Client, path: str, token: int, *, is_guarded: bool) -> None:
        self.token = token
        self._client = client
        self._path = path
        self._is_guarded = is_guarded

    def guard(self) -> Transaction:
        transaction = self._client.transaction()
        return transaction.check(self._path if self._is_guarded else "/")


class ToyLock:
    """One contender."""

    def __init__(self, client: Client, path: str, flaw: Flaw = Flaw.NONE) -> None:
        self._client = client
        self._path = path
        self._flaw = flaw
        # One contender for each session.
        self._mark = f"{client.session_id:016x}"
        self._name = ""
        self._token = 0
        self._leaving: asyncio.Task[None] | None = None

    @asynccontextmanager
    async def hold(self) -> AsyncIterator[ToyGrant]:
        try:
            await self._enter()
            await self._wait_turn()
        except asyncio.CancelledError:
            if self._flaw is Flaw.SWALLOWS:
                await self._leave()
                return
            if self._flaw is Flaw.STAYS_WHEN_CANCELLED_EARLY and not self._name:
                raise
            if self._flaw is not Flaw.STAYS_WHEN_CANCELLED:
                # Not awaited: nobody who is cancelled is to wait for a server.
                self._leaving = asyncio.create_task(self._leave())
            raise
        except BaseException:
            self._leaving = asyncio.create_task(self._leave())
            raise
        task = asyncio.current_task()
        assert task is not None
        was_told = False

        def end() -> None:
            nonlocal was_told
            if not was_told:
                was_told = True
                task.cancel()

        def listen(state: SessionState) -> None:
            if state.is_final or state is SessionState.OVERDUE:
                end()

        def watch(event: Event) -> None:
            if event.type is EventType.DELETED:
                end()

        def look(seen: asyncio.Future[Stat | None]) -> None:
            if not seen.cancelled() and seen.exception() is None and seen.result() is None:
                end()

        path = f"{self._path}/{self._name}"
        if self._flaw is not Flaw.KEEPS_THE_BODY:
            self._client.add_listener(listen)
            self._client.exists(path, watch=watch).add_done_callback(look)
        is_guarded = self._flaw is not Flaw.NO_GUARD
        try:
            yield ToyGrant(self._client, path, self._token, is_guarded=is_guarded)
        except asyncio.CancelledError:
            # Another task may have cancelled it, too.
            if was_told and task.uncancel() == 0:
                raise SessionExpiredError("hold") from None
            raise
        finally:
            was_told = True
            self._client.remove_listener(listen)
            self._client.forget_watcher(watch)
            self._leaving = asyncio.create_task(self._leave())
            await asyncio.wait((self._leaving,), timeout=self._client.session_timeout)

    async def _enter(self) -> None:
        while True:
            try:
                path, stat = await self._client.create_with_stat(
                    f"{self._path}/{self._mark}-", ephemeral=True, sequential=True
                )
            except ConnectionLostError:
                if self._flaw is not Flaw.CREATES_TWICE and await self._find():
                    return
            else:
                self._name, self._token = path.rpartition("/")[2], stat.czxid
                if self._flaw is Flaw.WRONG_TOKEN:
                    above = await self._client.exists(self._path)
                    assert above is not None
                    self._token = above.czxid
                return

    async def _find(self) -> bool:
        await self._client.wait_connected()
        for name in await self._names():
            if name.startswith(self._mark):
                stat = await self._client.exists(f"{self._path}/{name}")
                assert stat is not None
                self._name, self._token = name, stat.czxid
                return True
        return False

    async def _names(self) -> list[str]:
        names = await self._client.children(self._path)
        return sorted(names, key=lambda name: name[-10:])

    async def _wait_turn(self) -> None:
        while True:
            names = await self._names()
            if self._name not in names:
                raise LockStateError("the node was deleted by somebody")
            place = names.index(self._name)
            if place == 0:
                return
            has_gone = asyncio.Event()

            def watch(event: Event, has_gone: asyncio.Event = has_gone) -> None:
                if event.type is not EventType.NONE or event.state.is_final:
                    has_gone.set()

            try:
                await self._client.get(f"{self._path}/{names[place - 1]}", watch=watch)
                await has_gone.wait()
            except NoNodeError:
                continue
            finally:
                if self._flaw is not Flaw.LEAVES_A_WATCH:
                    self._client.forget_watcher(watch)
            if self._flaw is Flaw.TRUSTS_THE_EVENT:
                return

    async def _leave(self) -> None:
        if self._flaw is Flaw.LEAVES_A_TASK:
            self._leaving = asyncio.create_task(asyncio.sleep(3600))
        with suppress(SessionExpiredError):
            while True:
                try:
                    if not self._name and not await self._find():
                        return
                    with suppress(NoNodeError):
                        await self._client.delete(f"{self._path}/{self._name}")
                    return
                except ConnectionLostError:
                    if self._flaw is Flaw.DELETES_ONCE:
                        return
                    await self._client.wait_connected()
