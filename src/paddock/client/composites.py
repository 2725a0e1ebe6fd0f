"""What takes several requests: parents made on the way, creates that survive a lost reply, trees
deleted.

Each step is one that may be repeated, or one whose outcome can be found out, so a lost connection
in the middle does no harm. What ends a session ends these too.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from paddock.errors import ConnectionLostError, NodeExistsError, NoNodeError, NotEmptyError

if TYPE_CHECKING:
    from paddock.client.client import Client, Created

# Upstream's recipes know this prefix, and skip it when they look for a number.
PROTECTION_PREFIX: Final = "_c_"


def parent(path: str) -> str:
    return path[: path.rfind("/")] or "/"


async def make_parents(client: Client, path: str) -> None:
    """Make every node above a path that is not there; that somebody else makes it is fine too."""
    above = parent(path)
    missing = []
    while above != "/" and await client.exists(above) is None:
        missing.append(above)
        above = parent(above)
    for node in reversed(missing):
        while True:
            try:
                await client.create(node)
            except NodeExistsError:
                break
            except ConnectionLostError:
                # Whether it was made or not: if it is there, that is all we want.
                continue
            else:
                break


async def create_carefully(
    client: Client,
    path: str,
    create: Callable[[str], asyncio.Future[Created]],
    mark: str,
    *,
    with_parents: bool,
) -> Created:
    """Create a node, with its parents if that is wanted.

    With a mark, which becomes part of the node's name, a lost reply is no question: after the next
    connect we look whether the node is there.
    """
    above, name = parent(path), path[path.rfind("/") + 1 :]
    marked = f"{'' if above == '/' else above}/{mark}{name}" if mark else path
    while True:
        try:
            return await create(marked)
        except NoNodeError:
            if not with_parents or above == "/":
                raise
            await make_parents(client, path)
        except ConnectionLostError:
            if not mark:
                raise
            found = await _find(client, above, mark)
            if found is not None:
                return found


async def _find(client: Client, above: str, mark: str) -> Created | None:
    from paddock.client.client import Created

    # The server we are attached to now may be behind the one that took our request.
    await client.sync(above)
    try:
        names = await client.children(above)
    except NoNodeError:
        return None
    for name in names:
        if name.startswith(mark):
            path = f"{'' if above == '/' else above}/{name}"
            stat = await client.exists(path)
            if stat is not None:
                return Created(path, stat)
    return None


async def delete_tree(client: Client, path: str, batch: int) -> int:
    """Delete a node with everything below it; give how many nodes were deleted.

    Not as one: others may see a part of it gone, and what they create meanwhile is deleted too.
    """
    deleted = 0
    while True:
        nodes = await _list_tree(client, path, batch)
        if not nodes:
            return deleted
        try:
            for first in range(0, len(nodes), batch):
                calls = [client.delete(node) for node in nodes[first : first + batch]]
                for outcome in await asyncio.gather(*calls, return_exceptions=True):
                    if outcome is None:
                        deleted += 1
                    elif not isinstance(outcome, NoNodeError):
                        raise outcome
        except (NotEmptyError, ConnectionLostError):
            # Somebody has created something, or we do not know how far we came: look again.
            continue
        return deleted


async def _list_tree(client: Client, path: str, batch: int) -> list[str]:
    """Give a node and everything below it, children before their parents."""
    if await client.exists(path) is None:
        return []
    listed = [path]
    done = 0
    while done < len(listed):
        some = listed[done : done + batch]
        answers = await asyncio.gather(
            *(client.children(node) for node in some), return_exceptions=True
        )
        for node, names in zip(some, answers, strict=True):
            if isinstance(names, NoNodeError):
                continue
            if isinstance(names, BaseException):
                raise names
            listed.extend(f"{node.rstrip('/')}/{name}" for name in names)
        done += len(some)
    return listed[::-1]
