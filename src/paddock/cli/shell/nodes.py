"""The names of nodes, for completion: asked of the service, and remembered for a moment.

A request that takes too long is not waited for; its answer serves the next completion. Nodes with
very many children are not listed, since their names would be megabytes. Without a connection no
request is made.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Final

from paddock.client.client import Client
from paddock.errors import PaddockError

# A node with more children than this is not listed.
CHILDREN_MAX: Final = 50_000
# How long a completion waits for names.
_PATIENCE_S: Final = 1.0
# How long names are as good as new; a command that was run makes all of them old.
_FRESH_S: Final = 3.0
_LISTS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Children:
    """The names of a node's children in their order, or how many there are if too many."""

    names: tuple[str, ...] = ()
    unlisted: int = 0


NOTHING: Final = Children()


class Nodes:
    """What is known of the tree at this moment."""

    def __init__(self, client: Callable[[], Client | None]) -> None:
        # Which client to ask is asked each time: `connect` makes another one.
        self._client = client
        self._lists: dict[str, asyncio.Task[Children]] = {}

    async def children(self, path: str) -> Children:
        """Return the children of a node; none if they are not known in time."""
        task = self._lists.get(path)
        if task is None:
            client = self._client()
            if client is None or not client.state.is_connected:
                return NOTHING
            task = self._lists[path] = asyncio.create_task(_list(client, path))
            task.add_done_callback(partial(self._answered, path))
            while len(self._lists) > _LISTS_MAX:
                oldest = next(iter(self._lists))
                self._drop(oldest, self._lists[oldest])
        await asyncio.wait([task], timeout=_PATIENCE_S)
        return task.result() if task.done() and not task.cancelled() else NOTHING

    def forget(self) -> None:
        """Ask anew from now on: something may have changed."""
        for path, task in list(self._lists.items()):
            self._drop(path, task)

    async def close(self) -> None:
        """Cancel pending requests."""
        tasks = list(self._lists.values())
        self.forget()
        if tasks:
            await asyncio.wait(tasks)

    def _answered(self, path: str, task: asyncio.Task[Children]) -> None:
        asyncio.get_running_loop().call_later(_FRESH_S, self._drop, path, task)

    def _drop(self, path: str, task: asyncio.Task[Children]) -> None:
        if self._lists.get(path) is task:
            del self._lists[path]
            task.cancel()


async def _list(client: Client, path: str) -> Children:
    try:
        stat = await client.exists(path)
        if stat is None:
            return NOTHING
        if stat.num_children > CHILDREN_MAX:
            return Children(unlisted=stat.num_children)
        return Children(tuple(sorted(await client.children(path))))
    except PaddockError:
        # No permission, no connection, no path at all: there is nothing to offer.
        return NOTHING
