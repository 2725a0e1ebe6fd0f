"""A node that is re-created after deletion or session expiry, and the sessions that it needs.

`paddock.recipes.values.persistent_node` says what is guaranteed. A client has one session, so
another session is another client with the same settings, which a session renewer opens and closes.
The first client belongs to the user; when it is closed, no more are opened.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final, TypeVar

from paddock.client.client import Client
from paddock.client.requests.arguments import check_flag, checked_acl, checked_data, checked_path
from paddock.client.states import SessionState
from paddock.errors import (
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    NotEmptyError,
    RecipeError,
    SessionExpiredError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.paths import parent_path
from paddock.protocol.records import Stat
from paddock.recipes.common.background import Background
from paddock.recipes.common.retry import (
    RetryLimit,
    Signal,
    check_client,
    make_container,
    newest_stat,
    retry,
    wait_in_session,
)

T = TypeVar("T")


class SessionRenewer:
    """A client whose session lives, opened anew after each expiry."""

    def __init__(self, client: Client) -> None:
        check_client(client)
        # The latest one, and the user's.
        self.client = client
        self.first = client
        # One task opens the next client for all.
        self._opening = asyncio.Lock()
        self._is_over = False
        # Cancelled when the first client is closed.
        self._end = client.start_task(self._end_with_first())

    async def living(self) -> Client:
        """Return a client whose session has not expired; wait for a server if need be.

        Raises AuthenticationError if our credentials are not accepted any more, and
        SessionExpiredError if the renewer or the first client is closed.
        """
        async with self._opening:
            while self.client.state is SessionState.EXPIRED and not self._is_over:
                following = self.client.another()
                try:
                    await following.start()
                except ConnectionLostError:
                    continue
                expired, self.client = self.client, following
                if expired is not self.first:
                    await expired.close()
            if self._is_over:
                await self._close_own()
                raise SessionExpiredError("connect")
            return self.client

    async def ask(self, ask: Callable[[Client], Awaitable[T]]) -> T:
        """Send an idempotent request, in one session after the other, until it is answered."""
        while True:
            client = await self.living()
            try:
                return await retry(client, partial(ask, client))
            except SessionExpiredError:
                if client.state is not SessionState.EXPIRED:
                    raise

    async def close(self) -> None:
        """Open no more clients, and close the last one, unless it is the user's."""
        self._is_over = True
        self._end.cancel()
        await asyncio.wait([self._end])

    async def _end_with_first(self) -> None:
        try:
            await asyncio.Event().wait()
        finally:
            self._is_over = True
            await self._close_own()

    async def _close_own(self) -> None:
        if self.client is not self.first:
            await self.client.close()


class RecreatedNode(Background):
    """A node that is re-created whenever it is gone, until it is closed."""

    def __init__(
        self,
        renewer: SessionRenewer,
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
        super().__init__(path)
        self.path: Final = path
        self._is_ephemeral = ephemeral
        self._recreates = recreate
        self._acl = acl
        # The data that are wanted, and how often they were changed.
        self._data = data
        self._wanted = 0
        # The change that the existing node has.
        self._written = -1
        # The creation of our node, when we last saw it; 0 if it does not exist.
        self._czxid = 0
        self._renewer = renewer
        self._leaving: asyncio.Task[None] | None = None
        # Whether it was deleted, and is not re-created.
        self._is_deleted = False
        # It is time to look at the node.
        self._signal = Signal()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.path} {'there' if self.is_there else 'not there'}>"

    @property
    def is_there(self) -> bool:
        """Whether our node existed when we last heard of it, in a session that lives."""
        return self._czxid != 0

    def start(self) -> None:
        """Begin to keep the node, as entering the scope does; `close` has to follow."""
        self._check_unstarted()
        self._task = self._renewer.first.start_task(self._keep())

    async def wait_there(self) -> None:
        """Wait until our node exists.

        Raises RecipeError if it was deleted and is not re-created, and SessionExpiredError if the
        client was closed.
        """
        await self._wait_until(lambda: self.is_there)

    async def wait_over(self) -> None:
        """Wait until it is not re-created any more: it was deleted for good, or closed."""
        while not self.is_over:
            await self._changed.wait()

    async def set_data(self, data: bytes) -> None:
        """Change the data of the node, also for when it is re-created; wait until it has them.

        Data that others write stay until then.
        """
        checked_data(data)
        self._check()
        self._data = data
        self._wanted += 1
        wanted = self._wanted
        self._signal.set()
        await self._wait_until(lambda: self._written >= wanted)

    async def close(self) -> None:
        """Delete the node, and do not re-create it.

        For an ephemeral node it waits no longer than the session surely lives. A node with children
        stays. Closing twice is fine.
        """
        leaving = self.leave_soon()
        if self._is_ephemeral:
            await wait_in_session(self._renewer.client, leaving)
        else:
            await asyncio.wait([leaving])
        if leaving.done() and not leaving.cancelled():
            leaving.result()

    @property
    def is_over(self) -> bool:
        """Whether it is not re-created any more."""
        return self._is_over or self._is_deleted

    async def _open(self) -> None:
        self.start()
        await self.wait_there()

    def _stop(self) -> None:
        self.leave_soon()

    def _check(self) -> None:
        if self._is_deleted and not self._is_over:
            raise RecipeError(f"{self.path}: it was deleted, and is not re-created")
        super()._check()

    # How it is kept.

    async def _keep(self) -> None:
        try:
            while not self._is_deleted:
                client = await self._renewer.living()
                try:
                    await self._keep_on(client)
                except SessionExpiredError:
                    if client.state is not SessionState.EXPIRED:
                        raise
                    if self._is_ephemeral:
                        self._become(0)
            self._end(None)
        except asyncio.CancelledError:
            if not self._is_closed:
                # The client was closed.
                self._end(SessionExpiredError("keep", self.path))
            raise
        except Exception as error:
            # Raised to the waiters.
            self._end(error)

    async def _keep_on(self, client: Client) -> None:
        """Keep it while a session lives, or until it is deleted for good."""
        while True:
            await retry(client, partial(self._look, client), RetryLimit())
            if self._is_deleted:
                return
            await self._signal.wait()

    async def _look(self, client: Client) -> None:
        """Create or write the node if needed; the signal says when to look again."""
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
            # The watch of `_look` fires.
            return
        except NoNodeError:
            await make_container(client, parent_path(self.path))
            self._signal.set()
            return
        self._written = wanted
        self._become(created.stat.czxid)

    async def _write(self, client: Client) -> None:
        """Write the wanted data, if the node may not have them."""
        while self._written < self._wanted:
            wanted = self._wanted
            try:
                await client.set(self.path, self._data)
            except NoNodeError:
                # The watch of `_look` fires.
                return
            self._written = wanted
            self._wake()

    def _is_ours(self, client: Client, stat: Stat) -> bool:
        return not self._is_ephemeral or stat.ephemeral_owner == client.session_id

    def _become(self, czxid: int) -> None:
        if czxid != self._czxid:
            self._czxid = czxid
            self._wake()

    # How it ends.

    def _end(self, failure: Exception | None) -> None:
        if not self.is_over:
            self._failure = failure
        self._renewer.client.forget_watcher(self._signal)
        self._czxid = 0
        self._wake()

    def leave_soon(self) -> asyncio.Task[None]:
        """Close it, without waiting for the service."""
        if self._leaving is None:
            was_deleted = self._is_deleted
            self._is_closed = True
            self._end(None)
            if self._task is not None:
                self._task.cancel()
            self._leaving = self._renewer.first.start_task(self._leave(was_deleted))
        return self._leaving

    async def _leave(self, was_deleted: bool) -> None:
        """Delete our node, even if the reply to its create was lost."""
        try:
            if self._task is not None:
                await asyncio.wait([self._task])
                client = self._renewer.client
                # An ephemeral node goes with an expired session.
                with suppress(SessionExpiredError):
                    if not was_deleted:
                        await retry(client, partial(self._delete, client))
        finally:
            await self._leave_renewer()

    async def _leave_renewer(self) -> None:
        """Close the renewer, unless it is shared with others."""

    async def _delete(self, client: Client) -> None:
        stat = await newest_stat(client, self.path)
        if stat is not None and self._is_ours(client, stat):
            with suppress(NoNodeError, NotEmptyError):
                await client.delete(self.path)
