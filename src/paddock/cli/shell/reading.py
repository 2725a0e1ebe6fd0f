"""Commands that read: ls, get, stat, and those that count and list."""

from base64 import b64encode
from collections.abc import AsyncIterator, Awaitable, Callable
from functools import partial
from typing import TypeVar

from paddock.cli.shell.parsing import Given
from paddock.cli.shell.shell import Shell
from paddock.cli.shell.texts import UsageError, check_path, hex_lines, stat_lines, text_of
from paddock.client.results import NodeData
from paddock.client.watches.watches import WatchKind
from paddock.errors import NoNodeError, ServiceError
from paddock.protocol.records import Stat

T = TypeVar("T")


async def ls(shell: Shell, given: Given) -> None:
    if given.has("?"):
        shell.out("usage: ls [options] path")
        # Sorted as Java does, without regard to case.
        for name, says in (("?", "help"), ("R", "recurse"), ("s", "stat"), ("w", "watch")):
            shell.out(f" -{name}   {says}")
    if not given.arguments:
        raise UsageError
    path = given.arguments[0]
    check_path(path)
    if given.has("R"):
        async for one in visit(shell, path, watch=given.has("w")):
            shell.out(one)
        return
    client = await shell.client()
    call = partial(client.children_with_stat, path)
    names, stat = await watched(shell, given, path, WatchKind.CHILDREN, call)
    shell.out(f"[{', '.join(sorted(names))}]")
    print_stat(shell, stat, given.has("s"))


async def get(shell: Shell, given: Given) -> None:
    client = await shell.client(given.path)
    found = await watched(shell, given, given.path, WatchKind.DATA, partial(client.get, given.path))
    data = data_of(found)
    if given.has("x"):
        shell.out("\n".join(hex_lines(data)))
    elif given.has("b"):
        shell.out(b64encode(data).decode())
    else:
        shell.out(text_of(data))
    print_stat(shell, found.stat, given.has("s"))


async def stat(shell: Shell, given: Given) -> None:
    client = await shell.client(given.path)
    found = await watched(
        shell, given, given.path, WatchKind.DATA, partial(client.exists, given.path)
    )
    if found is None:
        raise NoNodeError("exists", given.path)
    print_stat(shell, found)


async def get_all_children_number(shell: Shell, given: Given) -> None:
    client = await shell.client(given.path)
    shell.out(str(await client.count_descendants(given.path)))


async def get_ephemerals(shell: Shell, given: Given) -> None:
    path = given.arguments[0] if given.arguments else "/"
    client = await shell.client(path)
    shell.out(f"[{', '.join(await client.ephemerals(path))}]")


async def sync(shell: Shell, given: Given) -> None:
    client = await shell.client(given.path)
    try:
        await client.sync(given.path)
    except ServiceError as error:
        shell.out(f"Sync has failed. rc={error.code}")
    else:
        shell.out("Sync is OK")


async def visit(shell: Shell, path: str, *, watch: bool = False) -> AsyncIterator[str]:
    """Yield a node, its children, then what is below each of them; sorted by name.

    A node that is deleted meanwhile is left out, unless it is the first.
    """
    client = await shell.client()
    wanted = True if watch else None
    await client.get(path, watch=wanted)
    if watch:
        shell.watches.add(path, WatchKind.DATA)
    yield path
    # Last in, first out: the first child's whole subtree comes before the second's.
    pending = [path]
    while pending:
        above = pending.pop()
        try:
            names = sorted(await client.children(above, watch=wanted))
        except NoNodeError:
            continue
        if watch:
            shell.watches.add(above, WatchKind.CHILDREN)
        below = [f"{above.rstrip('/')}/{name}" for name in names]
        for one in below:
            yield one
        pending.extend(reversed(below))


async def watched(
    shell: Shell, given: Given, path: str, kind: WatchKind, read: Callable[..., Awaitable[T]]
) -> T:
    """Await a read of a node, with the watch that -w asks for."""
    if not given.has("w"):
        return await read(watch=None)
    found = await read(watch=True)
    shell.watches.add(path, kind)
    return found


def data_of(found: NodeData) -> bytes:
    """Return the data as zkCli prints them: "null" if there are none at all."""
    return b"null" if found.is_null else found.data


def print_stat(shell: Shell, stat: Stat, is_wanted: bool = True) -> None:
    for line in stat_lines(stat) if is_wanted else ():
        shell.out(line)
