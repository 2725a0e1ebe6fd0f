"""Commands about the shell and its session: connect, close, history, redo, quit, addWatch, …

Upstream does not look at what follows the names of most.
"""

from typing import Final

from paddock import __version__
from paddock.cli.shell.parsing import Given, decoded_int
from paddock.cli.shell.shell import Shell
from paddock.cli.shell.texts import CommandError, UsageError
from paddock.client.states import Event
from paddock.client.watches.watches import WatchKind

_SHOWN: Final = 10
# The version of upstream whose commands and words these are.
_UPSTREAM: Final = "3.8.0"


async def connect(shell: Shell, given: Given) -> None:
    await shell.connect(given.arguments[0] if given.arguments else shell.hosts)


async def close(shell: Shell, given: Given) -> None:
    await shell.close()


async def leave(shell: Shell, given: Given) -> None:
    await shell.close()
    shell.is_over = True


async def history(shell: Shell, given: Given) -> None:
    for number in range(max(0, shell.count - _SHOWN), shell.count + 1):
        # On the command line there is no line, which upstream calls null.
        shell.out(f"{number} - {shell.history.get(number, 'null')}")


async def redo(shell: Shell, given: Given) -> None:
    if not given.arguments:
        return
    number = decoded_int(given.arguments[0])
    if not 0 <= number < shell.count:
        raise CommandError("Command index out of range")
    await shell.repeat(shell.history[number])


async def printwatches(shell: Shell, given: Given) -> None:
    if given.arguments:
        shell.prints_watches = given.arguments[0] == "on"
    else:
        shell.out(f"printwatches is {'on' if shell.prints_watches else 'off'}")


async def version(shell: Shell, given: Given) -> None:
    shell.out(f"ZooKeeper CLI version: {_UPSTREAM}-paddock-{__version__}")


_MODES: Final = {"PERSISTENT": WatchKind.PERSISTENT, "PERSISTENT_RECURSIVE": WatchKind.RECURSIVE}
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
    client = await shell.client(given.path)
    kind = _MODES[mode]
    await client.add_watch(given.path, shell.watcher, recursive=kind is WatchKind.RECURSIVE)
    shell.watches.add(given.path, kind)


async def remove_watches(shell: Shell, given: Given) -> None:
    kind = next((kind for flag, kind in _KINDS.items() if given.has(flag)), WatchKind.ANY)
    client = await shell.client(given.path)
    await client.remove_watches(given.path, kind)
    for removed in shell.watches.remove(given.path, kind):
        shell.watcher(Event(client.state, removed, given.path))
