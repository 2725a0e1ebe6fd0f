"""A node that is kept in existence: over lost connections, over sessions, and if it is deleted.

    async with PersistentNode(client, "/workers/7", b"ready") as node:
        await node.set_data(b"busy")

Guaranteed is that the node is made again, whatever became of it, as soon as a server can be
reached; and that it goes, and does not come back, when it is closed.

* Suspension (the connection is lost): the node stays there as long as the session lives, and is
  looked after when the connection is back.
* Expiry: another session is opened, by a client like the one that was given, and the node is made
  anew. That goes on until the client that was given is closed.
* Cancellation: a wait that is cancelled changes nothing. Leaving the scope deletes the node, in the
  background if need be.
* Never promised: that the node is there at every moment. Between two sessions it is not.

An ephemeral node at this path that is not ours is waited for until it goes, such as that of an
older session of our own, from before the program was started again. It is never taken for ours.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from types import TracebackType
from typing import Final, Self

from paddock.client.arguments import check_flag, checked_acl, checked_data, checked_path
from paddock.client.client import Client
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
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.protocol.records import Stat
from paddock.recipes._keeper import Keeper
from paddock.recipes._nodes import Signal, make_container, parent, until_answered


class PersistentNode:
    """A node that is made again whenever it has gone, until it is closed.

        node = PersistentNode(client, "/workers/7", b"ready")
        async with node:
            print(node.is_there)  # True

    It is ephemeral, unless that is not wanted: then whoever makes it, it is the one that we keep.
    Without `recreate` it is made again only after an expired session: what somebody deletes while
    the session lives stays gone. One client keeps a path only once. Nodes above are made as needed.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        data: bytes = b"",
        *,
        ephemeral: bool = True,
        recreate: bool = True,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        checked_path(path)
        checked_data(data)
        checked_acl(acl)
        check_flag("ephemeral", ephemeral)
        check_flag("recreate", recreate)
        self.path: Final = path
        self._client = client
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
        self._keeper = Keeper(client)
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
        return f"<PersistentNode {self.path} {'there' if self.is_there else 'not there'}>"

    async def __aenter__(self) -> Self:
        self.start()
        try:
            await self.wait_there()
        except BaseException:
            # Not awaited: whoever is cancelled must not wait for the service.
            self._leave_soon()
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
        self._task = self._client.start_task(self._keep())

    async def wait_there(self) -> None:
        """Wait until our node is there.

        Raises RecipeError if somebody has deleted it and it is not to be made again, and
        SessionExpiredError if the client was closed.
        """
        await self._wait_until(lambda: self.is_there)

    async def wait_over(self) -> None:
        """Wait until it is kept no more: somebody has deleted it for good, or it was closed."""
        while not self._is_over:
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
        leaving = self._leave_soon()
        loop = asyncio.get_running_loop()
        while not leaving.done():
            remaining = self._keeper.client.session_valid_until - loop.time()
            if self._is_ephemeral and remaining <= 0:
                return
            await asyncio.wait([leaving], timeout=remaining if self._is_ephemeral else None)
        if not leaving.cancelled():
            leaving.result()

    @property
    def _is_over(self) -> bool:
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
                # By the client, which has been closed: that is the end of ours, too.
                self._end(SessionExpiredError("keep", self.path))
                await self._keeper.close()
            raise
        except Exception as error:
            # Whoever waits is told.
            self._end(error)

    async def _keep_on(self, client: Client) -> None:
        """Keep it while a session lives, or until it is deleted for good."""
        look = partial(self._look, client)
        while True:
            await until_answered(client, look)
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
            self._written = -1
            self._become(0)

    # How it ends.

    def _end(self, failure: Exception | None) -> None:
        if not self._is_over:
            self._failure = failure
        self._keeper.client.forget_watcher(self._signal)
        self._czxid = 0
        self._tell()

    def _leave_soon(self) -> asyncio.Task[None]:
        if self._leaving is None:
            was_deleted = self._is_deleted
            self._is_closed = True
            self._end(None)
            if self._task is not None:
                self._task.cancel()
            self._leaving = self._client.start_task(self._leave(was_deleted))
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
            await self._keeper.close()

    async def _delete(self, client: Client) -> None:
        # The server we are attached to now may be behind the one that took our create.
        await client.sync(self.path)
        stat = await client.exists(self.path)
        if stat is not None and self._is_ours(client, stat):
            try:
                await client.delete(self.path)
            except (NoNodeError, NotEmptyError):
                pass
