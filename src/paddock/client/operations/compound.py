"""Calls of several requests: careful creates and writes, whole paths, and deletes of trees.

Each step is idempotent, or its outcome can be found out, so a lost connection does no harm. Every
loop ends: the first request after a lost one is a read, which fails when the session may be over;
and a request that loses its connection `ATTEMPTS_MAX` times, as one that is too large for the
server does, fails. In an exact session the client has sent it as often itself.

Trees are deleted node by node. A node is deleted before its children are requested: most nodes have
none, and the service refuses those that have. Only these are listed. So a tree of a million nodes
takes little more than a million requests, and memory holds the children of some nodes per level.
"""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Final, NamedTuple, Protocol

from paddock.client.operations.operations import Operations
from paddock.client.results import Created, NodeData
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NoAuthError,
    NodeExistsError,
    NoNodeError,
    NotAppliedError,
    NotEmptyError,
    ReplyLostError,
    RequestError,
)
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path, parent_path
from paddock.protocol.records import Stat

# Upstream's recipes know this prefix, and skip it when they look for a sequence number.
PROTECTION_PREFIX: Final = "_c_"
# How often a request is sent before the call fails.
ATTEMPTS_MAX: Final = 10
# Versions are counted in 32 bits: the least one follows.
_VERSION_MAX: Final = 2**31 - 1
# How many nodes are listed at once: the children of so many may have to be held.
_LISTS_MAX: Final = 64


class CallsOfClient(Protocol):
    """The calls of a client that composed ones are made of."""

    def exists(self, path: str, /) -> asyncio.Future[Stat | None]: ...

    def get(self, path: str, /) -> asyncio.Future[NodeData]: ...

    def children(self, path: str, /) -> asyncio.Future[list[str]]: ...

    def sync(self, path: str, /) -> asyncio.Future[None]: ...

    def create(
        self, path: str, /, *, acl: Sequence[ACL], exist_ok: bool
    ) -> asyncio.Future[str]: ...


class Root(NamedTuple):
    """The chroot of a client: the same client without one, and its path."""

    client: CallsOfClient
    path: str


async def make_path(
    client: CallsOfClient, path: str, root: Root | None, acl: Sequence[ACL] = OPEN_TO_ALL
) -> None:
    """Create a node and every missing one above it, the chroot and its parents included.

    What exists is not created, so no permission is needed for it. If others delete what is above
    the next node, it begins again.
    """
    failure: NoNodeError | None = None
    for _ in range(ATTEMPTS_MAX):
        try:
            await _make_missing(client, path, root, acl)
        except NoNodeError as error:
            failure = error
        else:
            return
    assert failure is not None
    raise failure


async def _make_missing(
    client: CallsOfClient, path: str, root: Root | None, acl: Sequence[ACL]
) -> None:
    missing = []
    while path != "/" and not await _is_there(client.exists(path)):
        missing.append(path)
        path = parent_path(path)
    if path == "/" and root is not None and not await _is_there(client.exists("/")):
        await make_path(root.client, root.path, None, acl)
    for node in reversed(missing):
        await client.create(node, acl=acl, exist_ok=True)


async def ensure_path(
    client: CallsOfClient,
    path: str,
    looking: asyncio.Future[Stat | None],
    root: Root | None,
    acl: Sequence[ACL],
) -> None:
    """Create a path, unless a read that is in flight finds it."""
    if not await _is_there(looking):
        await make_path(client, path, root, acl)


async def _is_there(looking: asyncio.Future[Stat | None]) -> bool:
    """Return whether a read finds a node; one that it may not see exists, too."""
    try:
        return await looking is not None
    except NoAuthError:
        return True


async def create_carefully(
    client: CallsOfClient,
    path: str,
    in_flight: asyncio.Future[Created],
    create: Callable[[], asyncio.Future[Created]],
    mark: str,
    *,
    with_parents: bool,
    exist_ok: bool,
    root: Root | None,
) -> Created:
    """Complete a create that is in flight: create parents, or accept a node that exists.

    With a mark, which the node's name begins with, or `exist_ok`, a lost reply is resolved: after
    the next connect we look whether the node exists.
    """
    lost: ConnectionLostError | None = None
    failure: RequestError | ConnectionLostError | None = None
    for _ in range(ATTEMPTS_MAX):
        found: Created | None = None
        try:
            return await in_flight
        except NoNodeError as error:
            if not with_parents or (parent_path(path) == "/" and root is None):
                raise
            failure = error
            await make_path(client, parent_path(path), root)
        except NodeExistsError as error:
            failure = error
            if lost is not None and mark:
                # Ours, if a request whose reply was lost has created it.
                found = await _find(client, path, mark, lost)
            elif exist_ok:
                found = await _existing(client, path)
            if found is None and not exist_ok:
                raise
        except ConnectionLostError as error:
            failure = lost = error
            if mark:
                found = await _find(client, path, mark, error)
            elif exist_ok:
                found = await _existing(client, path)
            else:
                raise
        if found is not None:
            return found
        if isinstance(failure, NotAppliedError | ReplyLostError):
            # Sent often enough; or applied, and gone since.
            raise failure
        in_flight = create()
    in_flight.cancel()
    assert failure is not None
    raise failure


async def _existing(client: CallsOfClient, path: str) -> Created | None:
    stat = await client.exists(path)
    return None if stat is None else Created(path, stat)


async def _find(
    client: CallsOfClient, path: str, mark: str, lost: ConnectionLostError
) -> Created | None:
    """Look for a node with a mark beside a path; raises `lost` if that cannot be read."""
    above = parent_path(path)
    try:
        # Our server may now be behind the one that had our request.
        await client.sync(above)
        for name in await client.children(above):
            if name.startswith(mark):
                found = await _existing(client, child_path(above, name))
                if found is not None:
                    return found
    except NoNodeError:
        return None
    except (RequestError, ConnectionLostError):
        raise lost from None
    return None


async def set_carefully(
    client: CallsOfClient,
    path: str,
    in_flight: asyncio.Future[Stat],
    write: Callable[[], asyncio.Future[Stat]],
    version: int,
    mark: bytes,
    seen_zxid: int,
) -> Stat:
    """Complete a conditional write that is in flight, whose data hold a mark of no other write.

    It names a version, so at most one attempt succeeds. After a lost reply we read the node:

    * The mark is there, in the next version: the write succeeded.
    * The node is older than `seen_zxid`, which was read before the write, so its versions tell
      everything. Not beyond ours: the write has not happened, and is sent again. The next one,
      without the mark: another write was first.
    * Anything else, such as a node that was deleted and created anew, whose versions began again:
      the outcome stays unknown.
    """
    following = version + 1 if version < _VERSION_MAX else -_VERSION_MAX - 1
    lost: ConnectionLostError | None = None
    for _ in range(ATTEMPTS_MAX):
        refusal: RequestError | None = None
        try:
            return await in_flight
        except NotAppliedError:
            raise
        except ConnectionLostError as error:
            lost = error
        except RequestError as error:
            if lost is None:
                raise
            # An earlier attempt may have succeeded, and be the very reason.
            refusal = error
        try:
            await client.sync(path)
            data, stat = await client.get(path)
        except (RequestError, ConnectionLostError):
            raise lost from None
        if mark in data and stat.version == following:
            return stat
        if stat.czxid > seen_zxid or stat.version > following:
            raise lost
        if stat.version == following:
            raise BadVersionError("set", path)
        if refusal is not None:
            raise refusal
        in_flight = write()
    in_flight.cancel()
    assert lost is not None
    raise lost


async def delete_tree(client: Operations, path: str, batch: int) -> int:
    """Delete a node and everything below it; return how many deletes were acknowledged."""
    return await _TreeDeletion(client, batch).run([path])


async def delete_everything(client: Operations, batch: int) -> int:
    """Delete everything but the root and /zookeeper."""
    return await _TreeDeletion(client, batch).run(
        f"/{name}" for name in await client.children("/") if name != "zookeeper"
    )


class _Known(enum.Enum):
    """What is known of the children of a node."""

    NOTHING = enum.auto()
    THERE_ARE_SOME = enum.auto()
    # All that there were when we listed them come before it.
    THEY_COME_FIRST = enum.auto()


class _TreeDeletion:
    """The deletion of some trees."""

    def __init__(self, client: Operations, batch: int) -> None:
        self._client = client
        self._batch = batch
        # What is to be deleted, the next one last. We look at one run of the same kind at a time.
        self._stack: list[tuple[_Known, str]] = []
        self._deleted = 0
        # How often in a row a connection was lost.
        self._losses = 0

    async def run(self, paths: Iterable[str]) -> int:
        self._push(_Known.NOTHING, paths)
        while self._stack:
            known = self._stack[-1][0]
            if known is _Known.THERE_ARE_SOME:
                await self._list(self._take_run(known, _LISTS_MAX))
            else:
                await self._delete(known, self._take_run(known, self._batch))
        return self._deleted

    def _push(self, known: _Known, paths: Iterable[str]) -> None:
        self._stack.extend((known, path) for path in paths)

    def _take_run(self, known: _Known, limit: int) -> list[str]:
        run: list[str] = []
        while self._stack and len(run) < limit and self._stack[-1][0] is known:
            run.append(self._stack.pop()[1])
        return run

    async def _delete(self, known: _Known, nodes: list[str]) -> None:
        answers = await asyncio.gather(
            *(self._client.delete(node) for node in nodes), return_exceptions=True
        )
        lost: ConnectionLostError | None = None
        for node, answer in reversed([*zip(nodes, answers, strict=True)]):
            if answer is None:
                self._deleted += 1
            elif isinstance(answer, NotEmptyError):
                self._stack.append((_Known.THERE_ARE_SOME, node))
            elif isinstance(answer, ConnectionLostError):
                lost = answer
                self._stack.append((known, node))
            elif not isinstance(answer, NoNodeError):
                raise answer
        if lost is None:
            self._losses = 0
            return
        self._losses += 1
        if self._losses == ATTEMPTS_MAX or isinstance(lost, NotAppliedError):
            raise lost
        # A read waits for the next connection, and fails when there may be none in time.
        await self._client.exists(nodes[0])

    async def _list(self, nodes: list[str]) -> None:
        answers = await asyncio.gather(
            *(self._client.children(node) for node in nodes), return_exceptions=True
        )
        self._push(_Known.THEY_COME_FIRST, reversed(nodes))
        for node, answer in zip(nodes, answers, strict=True):
            if isinstance(answer, NoNodeError):
                continue
            if isinstance(answer, BaseException):
                raise answer
            self._push(_Known.NOTHING, (child_path(node, name) for name in answer))
