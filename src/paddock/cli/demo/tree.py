"""The tree: what the service holds, followed by a client of the demo's own, and how it is drawn."""

import re
from collections.abc import Callable, Iterator, Mapping
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from paddock.client.client import Client
from paddock.protocol.paths import parent_path

_OWN: Final = "/zookeeper"
# What makes a name unlike any other, and says nothing to people.
_MARK: Final = re.compile(r"(?:_c_)?([0-9a-f]{6})[0-9a-f]{2}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"-(\d{10})$")


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the drawing."""

    depth: int
    name: str
    owner: int
    # How many nodes directly below it are not drawn.
    hidden: int


class Tree:
    """All nodes but the service's own."""

    def __init__(self, client: Client) -> None:
        self.client: Final = client
        # By path, the session that a node goes with, or 0.
        self.owners: dict[str, int] = {}
        self.on_change: Callable[[], None] = lambda: None

    async def follow(self) -> None:
        """Keep it as the service has it, for as long as the task lives."""
        async with aclosing(self.client.watch("/", recursive=True)) as changes:
            async for path, _, stat in changes:
                if path == "/" or f"{path}/".startswith(f"{_OWN}/"):
                    continue
                if stat is None:
                    self.owners.pop(path, None)
                else:
                    self.owners[path] = stat.ephemeral_owner
                self.on_change()

    def sessions(self) -> set[int]:
        """Return the sessions that own nodes."""
        return set(self.owners.values()) - {0}

    async def clear(self) -> None:
        """Delete everything that an act has left."""
        for name in await self.client.children("/"):
            if f"/{name}" != _OWN:
                await self.client.delete_tree(f"/{name}")


def drawn(owners: Mapping[str, int]) -> Iterator[Branch]:
    """Yield the lines, a node before its children, of nodes that go with a session and those above.

    Of others it is said how many there are.
    """
    above_owned = {above for path, owner in owners.items() if owner for above in _parents(path)}
    for path in sorted(owners, key=_place):
        depth = path.count("/") - 1
        if depth and parent_path(path) not in above_owned:
            continue
        is_opened = path in above_owned
        hidden = 0 if is_opened else sum(parent_path(one) == path for one in owners)
        yield Branch(depth, _short(path), owners[path], hidden)


def _parents(path: str) -> Iterator[str]:
    while path := path.rpartition("/")[0]:
        yield path


def _short(path: str) -> str:
    above, _, name = path.rpartition("/")
    mark = _MARK.fullmatch(name)
    short = f"{mark[1]}…" if mark else _MARK.sub("…", name)
    return short if above else f"/{short}"


def _place(path: str) -> list[tuple[int, str]]:
    """Sort by its number whatever has one, so that contenders stand in their line."""
    names = path.split("/")
    return [(int(match[1]) if (match := _NUMBER.search(one)) else -1, one) for one in names]
