"""A node that is kept in existence, by whoever keeps it: one node of one keeper of sessions.

What is promised, and to whom, is said in `persistent_node`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Self

from paddock.client.client import Client
from paddock.client.requests.arguments import check_flag, checked_acl, checked_data, checked_path
from paddock.client.states import SessionState
from paddock.errors import (
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RecipeClosedError,
    RecipeError,
    SessionExpiredError,
    UsageError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.records import Stat
from paddock.recipes.common.retry import Losses, Signal, make_container, parent, until_answered
from paddock.recipes.common.session_renewer import Keeper


class Kept:
    """A node that is made again whenever it has gone, until it is closed."""

    def __init__(
        self,
        keeper: Keeper,
        path: str,
        data: bytes,
        *,
        ephemeral: bool,
        recreate: bool,
        acl: Sequence[ACL],
    ) -> None:
        checked_path(path)
        checked_data(data)
        checked_acl(acl)
        check_flag("ephemeral", ephemeral)
        check_flag("recreate", recreate)
        self.path: Final = path
        self._is_ephemeral = ephemeral
        self._recreates = recreate
        self._acl = acl
        # What the node is to say, and how often that was changed.
        self._data = data
        self._wanted = 0
        # How often it had been changed when it was written to the node that is there.
        self._written = -1
        # The creation of our node, when we last saw it; 0 if it is not there.
        self._czxid = 0
        self._keeper = keeper
        self._task: asyncio.Task[None] | None = None
        self._leaving: asyncio.Task[None] | None = None
        self._is_closed = False
        # Whether somebody has deleted it for good.
        self._is_deleted = False
        self._failure: Exception | None = None
        # It is time to look at the node.
        self._signal = Signal()
        # Something of the above has changed; there is a new one for each time.
        self._news = asyncio.Event()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path} {'there' if self.is_there else 'not there'}>"

    async def __aenter__(self) -> Self:
        self.start()
        try:
            await self.wait_there()
        except BaseException:
            # Not awaited: whoever is cancelled must not wait for the service.
            self.leave_soon()
            raise
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self.close()

    @property
    def is_there(self) -> bool:
        """Whether our node was there when we last heard of it, in a session that lives."""
        return self._czxid != 0

    def start(self) -> None:
        """Begin to keep it, as entering the scope does; whoever calls this calls `close`, too."""
        if self._is_closed:
            raise self._closed()
        if self._task is not None:
            raise UsageError(f"{self.path} is kept already")
        self._task = self._keeper.first.start_task(self._keep())

    async def wait_there(self) -> None:
        """Wait until our node is there.

        Raises RecipeError if somebody has deleted it and it is not to be made again, and
        SessionExpiredError if the client was closed.
        """
        await self._wait_until(lambda: self.is_there)

    async def wait_over(self) -> None:
        """Wait until it is kept no more: somebody has deleted it for good, or it was closed."""
        while not self.is_over:
            await self._news.wait()

    async def set_data(self, data: bytes) -> None:
        """Change what the node says; wait until it does.

        It says so from now on, also when it is made again. What somebody else writes to it stays
        until then.
        """
        checked_data(data)
        self._check()
        self._data = data
        self._wanted += 1
        wanted = self._wanted
        self._signal.set()
        await self._wait_until(lambda: self._written >= wanted)

    async def close(self) -> None:
        """Delete the node, and keep it no more; nothing is made from now on.

        An ephemeral one is not waited for longer than its session surely lives. One that has
        children stays. Closing twice is fine.
        """
        leaving = self.leave_soon()
        loop = asyncio.get_running_loop()
        while not leaving.done():
            remaining = self._keeper.client.session_valid_until - loop.time()
            if self._is_ephemeral and remaining <= 0:
                return
            await asyncio.wait([leaving], timeout=remaining if self._is_ephemeral else None)
        if not leaving.cancelled():
            leaving.result()

    @property
    def is_over(self) -> bool:
        """Whether it is kept no more."""
        return self._is_closed or self._is_deleted or self._failure is not None

    def _check(self) -> None:
        if self._failure is not None:
            raise self._failure
        if self._is_closed:
            raise self._closed()
        if self._is_deleted:
            raise RecipeError(f"{self.path}: it was deleted by somebody, and is not made again")
        if self._task is None:
            raise UsageError(f"{self.path} is not kept yet; enter the scope")

    def _closed(self) -> RecipeClosedError:
        return RecipeClosedError(f"{self.path} is kept no more: it was closed")

    async def _wait_until(self, condition: Callable[[], bool]) -> None:
        self._check()
        while not condition():
            await self._news.wait()
            self._check()

    def _tell(self) -> None:
        news, self._news = self._news, asyncio.Event()
        news.set()

    # How it is kept.

    async def _keep(self) -> None:
        try:
            while not self._is_deleted:
                client = await self._keeper.living()
                try:
                    await self._keep_on(client)
                except SessionExpiredError:
                    if client.state is not SessionState.EXPIRED:
                        raise
                    self._forget_session()
            self._end(None)
        except asyncio.CancelledError:
            if not self._is_closed:
                # By the client, which has been closed.
                self._end(SessionExpiredError("keep", self.path))
            raise
        except Exception as error:
            # Whoever waits is told.
            self._end(error)

    async def _keep_on(self, client: Client) -> None:
        """Keep it while a session lives, or until it is deleted for good."""
        look = partial(self._look, client)
        while True:
            await until_answered(client, look, Losses())
            if self._is_deleted:
                return
            await self._signal.wait()

    async def _look(self, client: Client) -> None:
        """Look at the node, and do what is to be done; the signal says when to look again."""
        stat = await client.exists(self.path, watch=self._signal)
        if stat is not None and self._is_ours(client, stat):
            self._become(stat.czxid)
            await self._write(client)
            return
        if self._czxid:
            self._become(0)
            self._is_deleted = not self._recreates
        if stat is None and not self._is_deleted:
            await self._make(client)

    async def _make(self, client: Client) -> None:
        wanted = self._wanted
        try:
            created = await client.create_with_stat(
                self.path, self._data, acl=self._acl, ephemeral=self._is_ephemeral
            )
        except NodeExistsError:
            # The watch that stands there tells of it.
            return
        except NoNodeError:
            await make_container(client, parent(self.path))
            self._signal.set()
            return
        self._written = wanted
        self._become(created.stat.czxid)

    async def _write(self, client: Client) -> None:
        """Write what the node is to say, if that is not known to be there."""
        while self._written < self._wanted:
            wanted = self._wanted
            try:
                await client.set(self.path, self._data)
            except NoNodeError:
                # The watch tells of it.
                return
            self._written = wanted
            self._tell()

    def _is_ours(self, client: Client, stat: Stat) -> bool:
        return not self._is_ephemeral or stat.ephemeral_owner == client.session_id

    def _become(self, czxid: int) -> None:
        if czxid != self._czxid:
            self._czxid = czxid
            self._tell()

    def _forget_session(self) -> None:
        if self._is_ephemeral:
            self._become(0)

    # How it ends.

    def _end(self, failure: Exception | None) -> None:
        if not self.is_over:
            self._failure = failure
        self._keeper.client.forget_watcher(self._signal)
        self._czxid = 0
        self._tell()

    def leave_soon(self) -> asyncio.Task[None]:
        """Close it, without waiting for the service."""
        if self._leaving is None:
            was_deleted = self._is_deleted
            self._is_closed = True
            self._end(None)
            if self._task is not None:
                self._task.cancel()
            self._leaving = self._keeper.first.start_task(self._leave(was_deleted))
        return self._leaving

    async def _leave(self, was_deleted: bool) -> None:
        """Delete what is there of ours, wherever our create has got to."""
        try:
            if self._task is None:
                return
            await asyncio.wait([self._task])
            client = self._keeper.client
            if not was_deleted:
                await until_answered(client, partial(self._delete, client))
        except SessionExpiredError:
            # And with it the node, if it was ephemeral.
            pass
        finally:
            await self._leave_keeper()

    async def _leave_keeper(self) -> None:
        """Be done with the keeper; nothing to do for who shares it with others."""

    async def _delete(self, client: Client) -> None:
        # The server we are attached to now may be behind the one that took our create.
        await client.sync(self.path)
        stat = await client.exists(self.path)
        if stat is not None and self._is_ours(client, stat):
            try:
                await client.delete(self.path)
            except (NoNodeError, NotEmptyError):
                pass
