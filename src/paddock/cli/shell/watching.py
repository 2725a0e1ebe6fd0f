"""Commands that set and remove persistent watches: addWatch, removewatches."""

from typing import Final

from paddock.cli.shell.errors import UsageError, check_path
from paddock.cli.shell.options import Given
from paddock.cli.shell.shell import Shell
from paddock.client.states import Event
from paddock.client.watches.watches import WatchKind

_MODES: Final = {"PERSISTENT": False, "PERSISTENT_RECURSIVE": True}
# The first one counts, if several are given.
_KINDS: Final = {
    "c": WatchKind.CHILDREN,
    "d": WatchKind.DATA,
    "p": WatchKind.PERSISTENT,
    "r": WatchKind.RECURSIVE,
}


async def add_watch(shell: Shell, given: Given) -> None:
    mode = (given.value("m") or "PERSISTENT_RECURSIVE").upper()
    if mode not in _MODES:
        raise UsageError
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
