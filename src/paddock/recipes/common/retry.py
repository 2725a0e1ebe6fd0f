"""What every recipe does with nodes: ask until there is an answer, wait for a change.

Whatever is asked here may be asked twice, so a lost connection is never the caller's concern: it is
asked again once a server can be reached. What ends such a wait is the answer, the end of the
session, or the caller's own deadline.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, TypeVar

from paddock.client.client import Client
from paddock.client.operations.compound import ATTEMPTS_MAX
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import (
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    NotReadOnlyError,
    SessionExpiredError,
)
from paddock.protocol.acl import ACL

T = TypeVar("T")


def child(above: str, name: str) -> str:
    """Give the path of a child."""
    return f"/{name}" if above == "/" else f"{above}/{name}"


def parent(path: str) -> str:
    """Give the path above."""
    return path[: path.rfind("/")] or "/"


class Losses:
    """How often one write of ours was lost in a row, with the connection.

    Servers come and go, and it is sent again. But one that is larger than they take costs us the
    connection each time, and nobody may wait for that for ever.
    """

    def __init__(self) -> None:
        self._count = 0

    def add(self, error: ConnectionLostError) -> None:
        """Count one more; raises the error if that is too many."""
        self._count += 1
        if self._count == ATTEMPTS_MAX:
            raise error


async def until_answered(
    client: Client, ask: Callable[[], Awaitable[T]], losses: Losses | None = None
) -> T:
    """Ask, and ask again after a lost connection; for what may happen twice.

    With `losses` it is not asked for ever: for what may be too large for the servers.
    """
    while True:
        try:
            return await ask()
        except ConnectionLostError as error:
            if losses is not None:
                losses.add(error)
            await client.wait_connected()
        except NotReadOnlyError:
            await wait_writable(client)


async def wait_writable(client: Client) -> None:
    """Wait for a server that can be written to; raises SessionExpiredError if there is none."""
    async for state in client.states():
        if state.is_connected and state is not SessionState.CONNECTED_READ_ONLY:
            return
    raise SessionExpiredError("wait_writable")


async def make_container(client: Client, path: str) -> None:
    """Make a node for others to stand under, with everything above it; that it is there is fine.

    The service removes it some time after the last of them has gone, so nothing piles up.
    """

    async def make() -> None:
        try:
            await client.create(path, container=True, make_parents=True)
        except NodeExistsError:
            pass

    await until_answered(client, _make_root(client) if path == "/" else make)


def _make_root(client: Client) -> Callable[[], Awaitable[None]]:
    """Give what makes a client's own root, which may be a chroot that is not there yet."""
    # It is made on the way to something below it, and in no other way.
    below = f"/root-{client.new_mark()}"

    async def make() -> None:
        try:
            await client.create(below, ephemeral=True, make_parents=True)
        except NodeExistsError:
            pass
        try:
            await client.delete(below)
        except NoNodeError:
            pass

    return make


async def make_node(client: Client, path: str) -> None:
    """Make a node that stays, with everything above it; that it is there is fine."""

    async def make() -> None:
        # Whoever may not create it need not, if it is there.
        if await client.exists(path) is None:
            try:
                await client.create(path, make_parents=True)
            except NodeExistsError:
                pass

    await until_answered(client, make)


def fraction(client: Client) -> float:
    """Give a number from 0 to below 1, by the client's lot."""
    return int(client.new_mark()[:8], 16) / 2**32


async def create_numbered(client: Client, path: str, data: bytes, *, acl: Sequence[ACL]) -> str:
    """Create a persistent sequential node, and what is above it; give its name.

    It is created once, whatever becomes of the replies: its name has a mark of ours.
    """
    mark = client.new_mark()

    async def find() -> str | None:
        await client.sync(path)
        try:
            names = await client.children(parent(path))
        except NoNodeError:
            return None
        return next((name for name in names if mark in name), None)

    losses = Losses()
    while True:
        try:
            created = await client.create(
                path, data, acl=acl, sequential=True, protected=mark, make_parents=True
            )
        except NotReadOnlyError:
            await wait_writable(client)
        except ConnectionLostError as error:
            # Nobody looks for the node any more, so we do, whenever a server can be reached.
            found = await until_answered(client, find)
            if found is not None:
                return found
            losses.add(error)
        else:
            return created[created.rfind("/") + 1 :]


class Signal:
    """A watcher that wakes up whoever waits for it, with any event that may have changed something.

    It says only that it is time to look again. A connection that is back counts as well, and so
    does the end of the session: the next request then says so.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self, event: Event) -> None:
        is_news = event.type is not EventType.NONE
        if is_news or event.state.is_connected or event.state.is_final:
            self._event.set()

    def set(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event.clear()


async def wait_gone(client: Client, path: str) -> None:
    """Wait until there is no node at a path."""
    signal = Signal()
    try:
        while await until_answered(client, lambda: client.exists(path, watch=signal)):
            await signal.wait()
    finally:
        client.forget_watcher(signal)


def discard(future: asyncio.Future[Any]) -> None:
    """Give up an answer that nobody will look at."""
    if not future.cancel() and not future.cancelled():
        future.exception()


class Departure:
    """That something of ours is given up, which goes on whatever becomes of those who wait for it.

    What it ends with, if it cannot be given up, goes to them, or to the event loop's exception
    handler if there are none.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._waiting: list[asyncio.Future[None]] = []
        self._error: BaseException | None = None
        self.is_over = False
        # Called when it is, before anybody else hears of it.
        self.on_end: Callable[[], None] | None = None

    async def wait(self) -> None:
        """Wait until it is over, and raise what it ended with."""
        if not self.is_over:
            waiter: asyncio.Future[None] = self._loop.create_future()
            self._waiting.append(waiter)
            await waiter
        if self._error is not None:
            raise self._error

    def end(self, error: BaseException | None = None) -> None:
        """Have it end, well or with an error; once it is over, nothing changes that."""
        if self.is_over:
            return
        self.is_over, self._error = True, error
        if self.on_end is not None:
            self.on_end()
        waiting = [waiter for waiter in self._waiting if not waiter.done()]
        for waiter in waiting:
            waiter.set_result(None)
        if error is not None and not waiting:
            self._loop.call_exception_handler(
                {"message": "a node of ours could not be deleted", "exception": error}
            )

    def end_with(self, task: asyncio.Task[None]) -> None:
        """Have it end as a task has; one that was cancelled is over, too."""
        self.end(None if task.cancelled() else task.exception())


class Leaver:
    """Something of ours in the service that has to be given up, whatever becomes of its owner."""

    client: Client

    async def leave(self) -> None:
        """Give it up, for good; ends when it is gone, or the session is."""
        raise NotImplementedError

    def begin_to_leave(self) -> Departure:
        """Begin to give it up."""
        task = self.client.start_task(self.leave())
        departure = Departure(task.get_loop())
        task.add_done_callback(departure.end_with)
        return departure
