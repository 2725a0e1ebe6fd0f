"""Requests that are repeated after a lost connection, and waits for a change.

Every request here is idempotent. It is sent again as soon as a server can be reached, until it is
answered, the session ends, or the caller's own deadline passes.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Final, TypeVar

from paddock.client.client import Client
from paddock.client.operations.compound import ATTEMPTS_MAX
from paddock.client.requests.arguments import checked_acl, checked_path
from paddock.client.results import NodeData
from paddock.client.states import Event, EventType, SessionState
from paddock.client.watches.watches import Watcher
from paddock.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    NodeExistsError,
    NoNodeError,
    NotAppliedError,
    NotReadOnlyError,
    ReplyLostError,
    ServiceError,
    SessionExpiredError,
)
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import is_valid, parent_path
from paddock.protocol.records import Stat

T = TypeVar("T")

# How many requests are in flight at once; their replies are held in memory.
_IN_FLIGHT_MAX: Final = 256


def check_recipe(client: object, path: object, acl: object = OPEN_TO_ALL) -> None:
    """Raise InvalidArgumentError unless a recipe can be made of these arguments."""
    check_client(client)
    checked_path(path)
    checked_acl(acl)


def check_client(client: object) -> None:
    """Raise InvalidArgumentError for what is not a client, or one of the blocking API."""
    if not isinstance(client, Client):
        hint = "; use paddock.sync.recipes with it" if hasattr(client, "_bridge") else ""
        raise InvalidArgumentError(f"client: expected one of paddock.connect, not {client!r}{hint}")


def check_name(what: str, name: object) -> None:
    """Raise InvalidArgumentError unless it can be the name of a node."""
    is_text = isinstance(name, str) and name and "/" not in name
    if not is_text or not is_valid(f"/{name}".encode("utf-8", "surrogatepass")):
        raise InvalidArgumentError(f"{what}: {name!r} cannot be the name of a node")


def name_of(path: str) -> str:
    """Return the last part of a path."""
    return path[path.rfind("/") + 1 :]


class RetryLimit:
    """How often one write was lost in a row, with its connection.

    A server that goes away is replaced by another. But a request larger than servers accept costs
    the connection each time, and must not be repeated for ever.
    """

    def __init__(self) -> None:
        self._count = 0
        # Whether one of those that were lost may have had an effect.
        self._may_be_applied = False

    def count(self, error: ConnectionLostError) -> None:
        """Count one more; raise the error if the limit is reached, here or by the client."""
        self._count += 1
        self._may_be_applied |= error.may_be_applied
        error.may_be_applied = self._may_be_applied
        if self._count == ATTEMPTS_MAX or isinstance(error, NotAppliedError):
            raise error


async def retry(
    client: Client, request: Callable[[], Awaitable[T]], limit: RetryLimit | None = None
) -> T:
    """Send an idempotent request, and again after each lost connection.

    `limit` is for a request that may be too large for the servers.
    """
    while True:
        try:
            return await request()
        except ConnectionLostError as error:
            if limit is not None:
                limit.count(error)
            await client.wait_connected()
        except NotReadOnlyError:
            await wait_writable(client)


async def wait_writable(client: Client) -> None:
    """Wait for a server that accepts writes; raise SessionExpiredError if the session ends."""
    async for state in client.states():
        if state.is_connected and state is not SessionState.CONNECTED_READ_ONLY:
            return
    raise SessionExpiredError("wait_writable")


async def newest_stat(client: Client, path: str) -> Stat | None:
    """Return the stat of a node, or None; the server may be another one than took our write."""
    await client.sync(path)
    return await client.exists(path)


async def read_node(client: Client, path: str, watch: Watcher | None = None) -> NodeData | None:
    """Return the data and the stat of a node, or None; only an existing node is watched."""
    try:
        return await client.get(path, watch=watch)
    except NoNodeError:
        return None


async def list_children(client: Client, path: str, watch: Watcher | None = None) -> list[str]:
    """Return the names of a node's children; none if there is no such node."""
    try:
        return await client.children(path, watch=watch)
    except NoNodeError:
        return []


async def delete_if_exists(client: Client, path: str) -> None:
    """Delete a node, unless it is gone already."""
    with suppress(NoNodeError):
        await client.delete(path)


def delete_first(path: str) -> Callable[[Client], Awaitable[None]]:
    """Return a request that deletes the node at a path, if there is one.

    It may be repeated: a later node at the path stays, also if the reply was lost.
    """
    found: list[Stat] = []

    async def delete(client: Client) -> None:
        stat = await (newest_stat(client, path) if found else client.exists(path))
        if stat is not None and (not found or found[0].czxid == stat.czxid):
            found.append(stat)
            await delete_if_exists(client, path)

    return delete


async def request_each(
    request: Callable[[str], Awaitable[T]],
    paths: Sequence[str],
    missing: type[ServiceError] | tuple[type[ServiceError], ...] = NoNodeError,
) -> dict[str, T]:
    """Send a request for each of many nodes, in batches; missing nodes are left out."""
    found: dict[str, T] = {}
    for start in range(0, len(paths), _IN_FLIGHT_MAX):
        batch = paths[start : start + _IN_FLIGHT_MAX]
        answers = await asyncio.gather(*map(request, batch), return_exceptions=True)
        for path, answer in zip(batch, answers, strict=True):
            if not isinstance(answer, BaseException):
                found[path] = answer
            elif not isinstance(answer, missing):
                raise answer
    return found


async def make_container(client: Client, path: str) -> None:
    """Create a container and its parents, unless it exists.

    The service deletes it some time after its last child.
    """

    async def make() -> None:
        with suppress(NodeExistsError):
            await client.create(path, container=True, make_parents=True)

    # The root is a chroot that may not exist yet.
    await (make_node(client, path) if path == "/" else retry(client, make))


async def make_node(client: Client, path: str) -> None:
    """Create a persistent node and its parents, unless it exists."""
    await retry(client, lambda: client.ensure_path(path))


async def write_once(
    client: Client,
    write: Callable[[], Awaitable[T]],
    find: Callable[[ConnectionLostError], Awaitable[T | None]],
    limit: RetryLimit | None = None,
) -> T:
    """Send a write until it has happened, once; after a lost reply `find` returns its result.

    `find` gets the error, and raises it if nobody can tell. `limit` is for a request that may be
    too large for the servers.
    """
    while True:
        try:
            return await write()
        except NotReadOnlyError:
            await wait_writable(client)
        except ConnectionLostError as error:
            found = await find(error)
            if found is not None:
                return found
            if isinstance(error, ReplyLostError):
                # It has happened, and what it left is gone already.
                raise
            if limit is not None:
                limit.count(error)


def random_fraction(client: Client) -> float:
    """Return a number from 0 to below 1, from the client's randomness."""
    return int(client.new_mark()[:8], 16) / 2**32


async def create_numbered(client: Client, path: str, data: bytes, *, acl: Sequence[ACL]) -> str:
    """Create a persistent sequential node and its parents; return its name.

    It is created once, whichever replies are lost: its name has a mark.
    """
    mark = client.new_mark()

    def create() -> Awaitable[str]:
        return client.create(
            path, data, acl=acl, sequential=True, protected=mark, make_parents=True
        )

    async def find() -> str | None:
        await client.sync(path)
        names = await list_children(client, parent_path(path))
        return next((name for name in names if mark in name), None)

    # If the client gives up looking for the node, we do not.
    return name_of(await write_once(client, create, lambda _: retry(client, find), RetryLimit()))


class Signal:
    """A watcher that wakes its waiter on every event that may have changed something.

    It only says that it is time to read again. A new connection counts as well, and so does the end
    of the session: the next request then raises.
    """

    def __init__(self) -> None:
        self._event = asyncio.Event()

    def __call__(self, event: Event) -> None:
        is_change = event.type is not EventType.NONE
        if is_change or event.state.is_connected or event.state.is_final:
            self._event.set()

    def set(self) -> None:
        self._event.set()

    async def wait(self) -> None:
        await self._event.wait()
        self._event.clear()


@contextmanager
def watch_signal(client: Client) -> Iterator[Signal]:
    """A signal for the watches of a scope, whose end removes them."""
    signal = Signal()
    try:
        yield signal
    finally:
        client.forget_watcher(signal)


async def wait_gone(client: Client, path: str) -> None:
    """Wait until there is no node at a path."""
    with watch_signal(client) as signal:
        while await retry(client, lambda: client.exists(path, watch=signal)):
            await signal.wait()


async def wait_in_session(client: Client, task: asyncio.Task[Any]) -> None:
    """Wait for a task, but not longer than the session surely lives."""
    loop = asyncio.get_running_loop()
    while not task.done() and (remaining := client.session_valid_until - loop.time()) > 0:
        await asyncio.wait([task], timeout=remaining)


async def wait_finished(tasks: Sequence[asyncio.Task[None]]) -> None:
    """Wait for tasks that go on if we are cancelled."""
    if tasks:
        await asyncio.wait(tasks)
    for task in tasks:
        if not task.cancelled():
            task.result()


def discard(future: asyncio.Future[Any]) -> None:
    """Cancel a request whose reply is not needed."""
    if not future.cancel() and not future.cancelled():
        future.exception()
