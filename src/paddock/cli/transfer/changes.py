"""Detect changes of a tree while it is read.

A watch on the whole tree, set before the first node is read, hears of every node that is created,
changed or deleted. It does not hear of changed ACLs, nor of anything while there is no connection;
and servers before 3.6 have no such watches. What cannot be known is told, too.
"""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from paddock.client.client import Client
from paddock.client.states import Event
from paddock.errors import UnimplementedError


class Changes:
    """What was heard of a tree."""

    def __init__(self) -> None:
        self.count = 0
        # The path of the first one.
        self.first = ""
        # Whether there may be more that we could not hear of.
        self.is_blind = False

    def hear(self, event: Event) -> None:
        if event.path is not None:
            self.first = self.first or event.path
            self.count += 1
        elif not event.state.is_connected:
            self.is_blind = True

    def say(self, root: str, *, was_interrupted: bool = False) -> str:
        """Return a warning, or an empty text."""
        if self.count:
            times = "once" if self.count == 1 else f"{self.count} times"
            return (
                f"{root} was changed {times} while it was read, first at {self.first}:"
                " what was read is of no single moment"
            )
        if self.is_blind or was_interrupted:
            return f"whether {root} was changed while it was read is not known"
        return ""


@asynccontextmanager
async def watched(client: Client, root: str) -> AsyncIterator[Changes]:
    """Listen for changes of a tree."""
    changes = Changes()
    try:
        await client.add_watch(root, changes.hear, recursive=True)
    except UnimplementedError:
        changes.is_blind = True
        # A server that does not know the request closes the connection.
        await client.exists(root)
    try:
        yield changes
    finally:
        client.forget_watcher(changes.hear)
