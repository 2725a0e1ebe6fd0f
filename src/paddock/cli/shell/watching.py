"""Commands that set and remove lasting watches, and what the shell knows of its watches.

Upstream's client tells its watchers when their watches are removed; ours does not, since whoever
removes them knows. So the shell keeps note of its watches, and tells of it in the client's place.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from paddock.cli.shell.errors import CommandError, check_path
from paddock.client.states import Event, EventType
from paddock.client.watches.watches import ClientWatches, WatchKind

if TYPE_CHECKING:
    from paddock.cli.shell.options import Given
    from paddock.cli.shell.shell import Shell

_MODES: Final = {"PERSISTENT": False, "PERSISTENT_RECURSIVE": True}
# What is told of watches that were removed, in this order.
_REMOVED: Final = {
    WatchKind.CHILDREN: EventType.CHILD_WATCH_REMOVED,
    WatchKind.DATA: EventType.DATA_WATCH_REMOVED,
    WatchKind.PERSISTENT: EventType.PERSISTENT_WATCH_REMOVED,
    WatchKind.RECURSIVE: EventType.PERSISTENT_WATCH_REMOVED,
}
# The first one counts, if several are given.
_KINDS: Final = {
    "c": WatchKind.CHILDREN,
    "d": WatchKind.DATA,
    "p": WatchKind.PERSISTENT,
    "r": WatchKind.RECURSIVE,
}


class Watches:
    """Which watches the shell has set, and which of them are over."""

    def __init__(self) -> None:
        self._noted = ClientWatches()

    def add_data(self, path: str) -> None:
        self._noted.add(self._noted.data, path.encode(), _somebody)

    def add_child(self, path: str) -> None:
        self._noted.add(self._noted.child, path.encode(), _somebody)

    def add_lasting(self, path: str, *, recursive: bool) -> None:
        table = self._noted.recursive if recursive else self._noted.persistent
        self._noted.add(table, path.encode(), _somebody)

    def take(self, event: Event) -> None:
        """Take note of an event: watches that are told once are over with it."""
        if event.path is not None:
            self._noted.take(event.type, event.path.encode())

    def remove(self, path: str, kind: WatchKind) -> list[EventType]:
        """Take note that watches were removed; return what there is to tell of it."""
        full = path.encode()
        # The two modes of lasting watches have one event.
        told: dict[EventType, None] = {}
        for one, event in _REMOVED.items():
            if kind in (one, WatchKind.ANY) and self._noted.remove(full, one):
                told[event] = None
        return list(told)


def _somebody(event: Event) -> None:
    """Stands for the shell, which is the only one that watches."""


async def add_watch(shell: Shell, given: Given) -> None:
    from paddock.cli.shell.commands import COMMANDS

    mode = (given.value("m") or "PERSISTENT_RECURSIVE").upper()
    if mode not in _MODES:
        raise CommandError(COMMANDS["addWatch"].usage_line)
    (path,) = given.arguments
    check_path(path)
    client = await shell.client()
    await client.add_watch(path, shell.watcher, recursive=_MODES[mode])
    shell.watches.add_lasting(path, recursive=_MODES[mode])


async def remove_watches(shell: Shell, given: Given) -> None:
    path = given.arguments[0]
    check_path(path)
    kind = next((kind for flag, kind in _KINDS.items() if given.has(flag)), WatchKind.ANY)
    client = await shell.client()
    await client.remove_watches(path, kind)
    for removed in shell.watches.remove(path, kind):
        shell.watcher(Event(client.state, removed, path))
