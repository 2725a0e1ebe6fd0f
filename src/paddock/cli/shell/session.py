"""Commands about the shell itself and its session: connect, close, history, redo, quit, and so on.

Upstream does not look at what follows these. They say nothing of a session that is not there; the
shell does.
"""

from typing import Final

from paddock import __version__
from paddock.cli.shell.errors import CommandError
from paddock.cli.shell.numbers import decoded_int
from paddock.cli.shell.options import Given
from paddock.cli.shell.shell import Shell

# How far back the history is printed.
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
    line = shell.history[number]
    await shell.repeat(line)


async def printwatches(shell: Shell, given: Given) -> None:
    if given.arguments:
        shell.prints_watches = given.arguments[0] == "on"
    else:
        shell.out(f"printwatches is {'on' if shell.prints_watches else 'off'}")


async def version(shell: Shell, given: Given) -> None:
    shell.out(f"ZooKeeper CLI version: {_UPSTREAM}-paddock-{__version__}")
