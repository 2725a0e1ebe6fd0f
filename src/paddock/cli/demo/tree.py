"""The tree: what the service holds, followed by a client of the demo's own."""

from collections.abc import Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from paddock.client.client import Client

# What the service keeps for itself.
_OWN: Final = "/zookeeper"


@dataclass(frozen=True, slots=True)
class Node:
    """A node, as far as it is shown."""

    path: str
    data: bytes
    # The session that it goes with, or 0.
    owner: int


class Tree:
    """All nodes but the service's own, by their paths."""

    def __init__(self, client: Client) -> None:
        self.client: Final = client
        self.nodes: dict[str, Node] = {}
        # Called after every change.
        self.on_change: Callable[[], None] = lambda: None

    async def follow(self) -> None:
        """Keep it as the service has it, for as long as the task lives."""
        async with aclosing(self.client.watch("/", recursive=True)) as changes:
            async for path, data, stat in changes:
                if path == "/" or path == _OWN or path.startswith(f"{_OWN}/"):
                    continue
                if data is None or stat is None:
                    self.nodes.pop(path, None)
                else:
                    self.nodes[path] = Node(path, data, stat.ephemeral_owner)
                self.on_change()

    def owners(self) -> set[int]:
        """Return the sessions that own nodes."""
        return {node.owner for node in self.nodes.values() if node.owner}

    async def clear(self) -> None:
        """Delete everything that an act has left."""
        for name in await self.client.children("/"):
            if f"/{name}" != _OWN:
                await self.client.delete_tree(f"/{name}")
