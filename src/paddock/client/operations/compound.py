"""Calls of several requests: creates with parents, and writes that survive a lost reply.

Each step is idempotent, or its outcome can be found out, so a lost connection does no harm. Every
loop ends: the first request after a lost one is a read, which fails when the session may be over;
and a request that loses its connection `ATTEMPTS_MAX` times, as one that is too large for the
server does, fails.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Final, NamedTuple, Protocol

from paddock.client.results import Created, NodeData
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    RequestError,
)
from paddock.protocol.paths import child_path, parent_path
from paddock.protocol.records import Stat

# Upstream's recipes know this prefix, and skip it when they look for a sequence number.
PROTECTION_PREFIX: Final = "_c_"
# How often a request is sent before the call fails.
ATTEMPTS_MAX: Final = 10
# Versions are counted in 32 bits: the least one follows.
_VERSION_MAX: Final = 2**31 - 1


class CallsOfClient(Protocol):
    """The calls of a client that composed ones are made of."""

    def exists(self, path: str, /) -> asyncio.Future[Stat | None]: ...

    def get(self, path: str, /) -> asyncio.Future[NodeData]: ...

    def children(self, path: str, /) -> asyncio.Future[list[str]]: ...

    def sync(self, path: str, /) -> asyncio.Future[None]: ...

    def create(self, path: str, /, *, exist_ok: bool) -> asyncio.Future[str]: ...


class Root(NamedTuple):
    """The chroot of a client: the same client without one, and its path."""

    client: CallsOfClient
    path: str


async def make_parents(client: CallsOfClient, path: str, root: Root | None) -> None:
    """Create every missing node above a path, the chroot and its parents included."""
    above = parent_path(path)
    missing = []
    while above != "/" and await client.exists(above) is None:
        missing.append(above)
        above = parent_path(above)
    if above == "/" and root is not None and await client.exists("/") is None:
        await make_parents(root.client, root.path, None)
        await root.client.create(root.path, exist_ok=True)
    for node in reversed(missing):
        await client.create(node, exist_ok=True)


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
            await make_parents(client, path, root)
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
