"""Deletion of our own nodes: at once, even if their owner is cancelled, or later and in batches."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from functools import partial
from typing import Final

from paddock.client.client import Client
from paddock.client.observer import Ended, WaitObserver
from paddock.errors import SessionExpiredError, SystemFailureError, TransactionFailedError
from paddock.recipes.common.retry import delete_if_exists, retry

# How long a sweeper waits for more nodes, and how many it deletes at once.
_WAIT_SECONDS: Final = 0.5
_NODES_MAX: Final = 100
# How long we wait before we ask a service once more that has refused to delete a node.
_AGAIN_SECONDS: Final = 1.0


class Departure:
    """A node deletion in progress; it survives cancellation of its waiters.

    If the deletion fails, its waiters get the error; without any, the event loop's exception
    handler does.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[asyncio.Future[None]] = []
        self._error: BaseException | None = None
        self.is_over = False
        # Called at its end, before the waiters, with its error if it has one.
        self.on_end: list[Ended] = []

    async def wait(self) -> None:
        """Wait until it is over; raise its error, if it has one."""
        if not self.is_over:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(waiter)
            await waiter
        if self._error is not None:
            raise self._error

    def end(self, error: BaseException | None = None) -> None:
        """End it; a second end changes nothing."""
        if self.is_over:
            return
        self.is_over, self._error = True, error
        for tell in self.on_end:
            tell(error)
        waiting = [waiter for waiter in self._waiting if not waiter.done()]
        for waiter in waiting:
            waiter.set_result(None)
        if error is not None and not waiting:
            self._loop.call_exception_handler(
                {"message": "a node of ours could not be deleted", "exception": error}
            )

    def end_with(self, task: asyncio.Task[None]) -> None:
        """End it as a task has ended, which may be cancelled."""
        self.end(None if task.cancelled() else task.exception())


class OwnedNode:
    """Nodes of ours, from before their create until they are surely gone."""

    def __init__(self, client: Client, path: str = "") -> None:
        self.client = client
        # Empty while it is not known.
        self.path = path
        # The zxid of its creation, once it is known.
        self.token = 0
        # Whom we wait for, for errors.
        self.blocked_by = ""
        # Whether others ask for it by the node's data.
        self.is_revocable = False
        # Who is told of the wait, if the client has an observer.
        self.wait: WaitObserver | None = None

    @property
    def guarded(self) -> Sequence[str]:
        """The nodes that a guarded write checks."""
        return (self.path,)

    def observe(self, wait: WaitObserver) -> None:
        """Tell an observer of the wait."""
        self.wait = wait

    def tell_blocked(self, node: str, session_id: int | None = None) -> None:
        """Tell the observer whose node we wait for."""
        if self.wait is not None:
            self.wait.blocked(node, session_id)

    def tell_woken(self, zxid: int | None) -> None:
        """Tell the observer that the wait may be over."""
        if self.wait is not None:
            self.wait.woken(zxid)

    async def leave(self) -> None:
        """Delete the nodes, even if the reply to their create was lost; for a task of the client.

        It returns when they are gone, or the session and so the nodes are. If the service refuses,
        as it does on a full disk, that is raised, and tried on without the caller.
        """
        try:
            with suppress(SessionExpiredError):
                await retry(self.client, self._delete)
        except SystemFailureError:
            self.leave_later()
            raise

    def leave_later(self) -> None:
        """Delete the nodes as soon as the service does it: they stand in the way of others."""
        self.client.start_task(self._leave_later())

    async def _leave_later(self) -> None:
        with suppress(SessionExpiredError):
            while True:
                await asyncio.sleep(_AGAIN_SECONDS)
                with suppress(SystemFailureError):
                    await retry(self.client, self._delete)
                    return

    async def _delete(self) -> None:
        """Delete the nodes; called again after a lost connection."""
        raise NotImplementedError

    def begin_to_leave(self) -> Departure:
        """Begin to delete the nodes."""
        task = self.client.start_task(self.leave())
        departure = Departure(task.get_loop())
        task.add_done_callback(departure.end_with)
        return departure

    def abandon(self, error: BaseException) -> None:
        """Begin to leave after an error, which then says whom we waited for.

        It waits for nothing: a cancelled task must not wait for the service.
        """
        if self.blocked_by:
            error.add_note(f"waiting for {self.blocked_by}")
        self.begin_to_leave()

    @contextmanager
    def left_on_error(self) -> Iterator[None]:
        """A scope that abandons the nodes if its body fails."""
        try:
            yield
        except BaseException as error:
            self.abandon(error)
            raise


class Sweeper:
    """Deletes nodes later and in batches, so that one costs a part of a request.

    They are ephemeral, do no harm meanwhile, and go with the session.
    """

    def __init__(self, client: Client) -> None:
        self._client = client
        self._paths: list[str] = []
        self._is_waiting = False

    def add(self, path: str) -> None:
        """Delete a node soon, if it exists."""
        if self._client.state.is_final:
            # It goes with the session.
            return
        self._paths.append(path)
        if len(self._paths) >= _NODES_MAX:
            self._client.start_task(self._sweep())
        elif not self._is_waiting:
            self._is_waiting = True
            self._client.start_task(self._sweep_later())

    async def _sweep_later(self) -> None:
        try:
            await asyncio.sleep(_WAIT_SECONDS)
        finally:
            self._is_waiting = False
        await self._sweep()

    async def _sweep(self) -> None:
        paths, self._paths = self._paths, []
        if not paths:
            return
        # The nodes go with an expired session.
        with suppress(SessionExpiredError):
            try:
                await retry(self._client, lambda: self._delete_together(paths))
            except TransactionFailedError:
                # One of them is gone already.
                for path in paths:
                    await retry(self._client, partial(delete_if_exists, self._client, path))

    async def _delete_together(self, paths: list[str]) -> None:
        async with self._client.transaction() as transaction:
            for path in paths:
                transaction.delete(path)
