"""The watches that the shell has set.

zkCli's client reports watches that are removed; ours does not. So the shell keeps a record of its
watches, and reports removals itself.
"""

from typing import Final

from paddock.client.states import Event, EventType
from paddock.client.watches.watches import ClientWatches, WatchKind

# The events of removed watches, in the order in which they are reported.
_REMOVED: Final = {
    WatchKind.CHILDREN: EventType.CHILD_WATCH_REMOVED,
    WatchKind.DATA: EventType.DATA_WATCH_REMOVED,
    WatchKind.PERSISTENT: EventType.PERSISTENT_WATCH_REMOVED,
    WatchKind.RECURSIVE: EventType.PERSISTENT_WATCH_REMOVED,
}


class Watches:
    """The record of watches, by path and kind."""

    def __init__(self) -> None:
        self._noted = ClientWatches()

    def add_data(self, path: str) -> None:
        self._noted.add(self._noted.data, path.encode(), _ignore)

    def add_child(self, path: str) -> None:
        self._noted.add(self._noted.child, path.encode(), _ignore)

    def add_lasting(self, path: str, *, recursive: bool) -> None:
        table = self._noted.recursive if recursive else self._noted.persistent
        self._noted.add(table, path.encode(), _ignore)

    def take(self, event: Event) -> None:
        """Record an event: one-time watches end with it."""
        if event.path is not None:
            self._noted.take(event.type, event.path.encode())

    def remove(self, path: str, kind: WatchKind) -> list[EventType]:
        """Remove watches; return the events that report it."""
        # The two modes of persistent watches have one event.
        told: dict[EventType, None] = {}
        for one, event in _REMOVED.items():
            if kind in (one, WatchKind.ANY) and self._noted.remove(path.encode(), one):
                told[event] = None
        return list(told)


def _ignore(event: Event) -> None:
    """The watcher of every record: the shell prints events itself."""
