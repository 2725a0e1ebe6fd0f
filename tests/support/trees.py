"""Trees of nodes as tests write them down, make them, and find them again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable

from paddock.cli.transfer.importing import Import
from paddock.cli.transfer.node import Difference, ImportOptions, Node, Tally
from paddock.cli.transfer.rights import rights_of
from paddock.cli.transfer.tree_reader import ReadOptions, TreeReader
from paddock.client.client import Client
from paddock.protocol.acl import OPEN

DEFAULT_READ = ReadOptions()
DEFAULT_IMPORT = ImportOptions()


def node(path: str, data: bytes = b"") -> Node:
    """Return a node that is open to all."""
    return Node(path, data, OPEN)


async def stream(nodes: Iterable[Node]) -> AsyncIterator[Node]:
    """Yield nodes as an import takes them."""
    for one in nodes:
        yield one


async def walked(client: Client, root: str, options: ReadOptions = DEFAULT_READ) -> list[Node]:
    """Read a tree."""
    return [one async for one in TreeReader(client, root, options).nodes()]


async def imported(
    client: Client,
    root: str,
    nodes: Iterable[Node],
    options: ImportOptions = DEFAULT_IMPORT,
    credentials: Iterable[tuple[str, str]] = (),
) -> tuple[Tally, list[Difference]]:
    """Make a tree hold these; give what was done, and what differed before."""
    differences: list[Difference] = []
    rights = await rights_of(client, credentials)
    job = Import(client, root, rights, options, report=differences.append)
    return await job.run(stream(nodes)), differences


async def make(client: Client, root: str, names: Iterable[str], data: bytes = b"") -> None:
    """Create nodes below a root, many at a time."""
    for part in chunks([*names], 1000):
        await asyncio.gather(*(client.create(f"{root}/{name}", data) for name in part))


def chunks(items: list[str], size: int) -> Iterable[list[str]]:
    return (items[start : start + size] for start in range(0, len(items), size))
