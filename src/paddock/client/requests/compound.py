"""What takes several requests: parents made on the way, creates and writes that survive a lost
reply.

Each step is one that may be repeated, or one whose outcome can be found out, so a lost connection
in the middle does no harm. Every loop ends: the first request after a lost one is a read, which
fails when the session may be over, and what loses its connection again and again, as a request
does that is too large for the server, is given up. What ends a session ends these too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from paddock.client.results import Created, NodeData
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    RequestError,
)
from paddock.protocol.records import Stat

if TYPE_CHECKING:
    from paddock.client.client import Client

# Upstream's recipes know this prefix, and skip it when they look for a number.
PROTECTION_PREFIX: Final = "_c_"
# How often something is sent in all before it is given up.
ATTEMPTS_MAX: Final = 10
# What comes after it is the least: versions are counted in 32 bits.
_VERSION_MAX: Final = 2**31 - 1


def parent(path: str) -> str:
    return path[: path.rfind("/")] or "/"


def child(above: str, name: str) -> str:
    return f"/{name}" if above == "/" else f"{above}/{name}"


class Root(NamedTuple):
    """Where a client with a chroot has its root: the same client without one, and the path."""

    client: Client
    path: str


async def make_parents(client: Client, path: str, root: Root | None) -> None:
    """Make every node above a path that is not there, the chroot and those above it included.

    That somebody else makes it is fine too.
    """
    above = parent(path)
    missing = []
    while above != "/" and await client.exists(above) is None:
        missing.append(above)
        above = parent(above)
    if above == "/" and root is not None and await client.exists("/") is None:
        await make_parents(root.client, root.path, None)
        await _make_sure(root.client, root.path)
    for node in reversed(missing):
        await _make_sure(client, node)


async def _make_sure(client: Client, node: str) -> None:
    lost: ConnectionLostError | None = None
    for _ in range(ATTEMPTS_MAX):
        try:
            await client.create(node)
        except NodeExistsError:
            return
        except ConnectionLostError as error:
            # Whether it was made or not: if it is there, that is all we want.
            lost = error
            if await client.exists(node) is not None:
                return
        else:
            return
    assert lost is not None
    raise lost


async def create_carefully(
    client: Client,
    path: str,
    under_way: asyncio.Future[Created],
    create: Callable[[], asyncio.Future[Created]],
    mark: str,
    *,
    with_parents: bool,
    root: Root | None,
) -> Created:
    """See a create that is under way through, with its parents if that is wanted.

    With a mark, which the node's name begins with, a lost reply is no question: after the next
    connect we look whether the node is there.
    """
    lost: ConnectionLostError | None = None
    failure: RequestError | ConnectionLostError | None = None
    for _ in range(ATTEMPTS_MAX):
        try:
            return await under_way
        except NoNodeError as error:
            if not with_parents or (parent(path) == "/" and root is None):
                raise
            failure = error
            await make_parents(client, path, root)
        except NodeExistsError:
            # Ours, if one that was lost has come through after all.
            found = None if lost is None else await _find(client, path, mark, lost)
            if found is None:
                raise
            return found
        except ConnectionLostError as error:
            if not mark:
                raise
            failure = lost = error
            found = await _find(client, path, mark, error)
            if found is not None:
                return found
        under_way = create()
    under_way.cancel()
    assert failure is not None
    raise failure


async def _find(client: Client, path: str, mark: str, lost: ConnectionLostError) -> Created | None:
    """Look for a node with a mark beside a path; raises what was lost if we cannot look."""
    above = parent(path)
    try:
        # The server we are attached to now may be behind the one that took our request.
        await client.sync(above)
        names = await client.children(above)
        for name in names:
            if name.startswith(mark):
                found = child(above, name)
                stat = await client.exists(found)
                if stat is not None:
                    return Created(found, stat)
    except NoNodeError:
        return None
    except (RequestError, ConnectionLostError):
        raise lost from None
    return None


async def set_carefully(
    client: Client,
    path: str,
    under_way: asyncio.Future[Stat],
    write: Callable[[], asyncio.Future[Stat]],
    version: int,
    mark: bytes,
    seen_zxid: int,
) -> Stat:
    """See a write that is under way through, whose data hold a mark that is in no other write.

    It asks for a version, so of all attempts at most one succeeds. After a lost reply we look, and
    only what follows from what we see is taken for the outcome:

    * The mark is there, in the next version: it was us.
    * The node is older than the last zxid we saw before the write, so it is the one that was
      there all the time, and its versions tell everything. Not beyond ours: the write has not
      happened, and is sent again. The next one, without the mark: somebody else was faster.
    * Anything else, such as a node that was deleted and made anew since, whose versions began
      again: nobody knows, and we say so.
    """
    following = version + 1 if version < _VERSION_MAX else -_VERSION_MAX - 1
    lost: ConnectionLostError | None = None
    for _ in range(ATTEMPTS_MAX):
        refusal: RequestError | None = None
        try:
            return await under_way
        except ConnectionLostError as error:
            lost = error
        except RequestError as error:
            if lost is None:
                raise
            # An earlier attempt may have come through, and be the very reason.
            refusal = error
        data, stat = await _look(client, path, lost)
        if mark in data and stat.version == following:
            return stat
        if stat.czxid > seen_zxid or stat.version > following:
            raise lost
        if stat.version == following:
            raise BadVersionError("set", path)
        if refusal is not None:
            raise refusal
        under_way = write()
    under_way.cancel()
    assert lost is not None
    raise lost


async def _look(client: Client, path: str, lost: ConnectionLostError) -> NodeData:
    """Read what everybody has; raises what was lost if we cannot."""
    try:
        await client.sync(path)
        return await client.get(path)
    except (RequestError, ConnectionLostError):
        raise lost from None
