"""How a tree of nodes is drawn: whose they are, in the order of their numbers, in few lines.

What is shown are nodes that go with a session, and what stands above them. Of others it is said how
many there are.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

from paddock.cli.demo.tree import Node

# What makes a name unlike any other, and says nothing to people.
_MARK: Final = re.compile(r"(?:_c_)?([0-9a-f]{6})[0-9a-f]{2}-?(?:[0-9a-f]{4}-?){3}[0-9a-f]{12}")
_NUMBER: Final = re.compile(r"-(\d{10})$")


@dataclass(frozen=True, slots=True)
class Branch:
    """One line of the drawing."""

    depth: int
    name: str
    # The session that it goes with, or 0.
    owner: int
    # How many nodes directly below it are not drawn.
    hidden: int


def drawn(nodes: Iterable[Node]) -> Iterator[Branch]:
    """Yield the lines, a node before its children."""
    everything = list(nodes)
    above_owned = {above for node in everything if node.owner for above in _parents(node.path)}
    for node in sorted(everything, key=_place):
        depth = node.path.count("/") - 1
        if depth > 0 and _parent(node.path) not in above_owned:
            continue
        is_opened = node.path in above_owned
        hidden = 0 if is_opened else sum(_parent(one.path) == node.path for one in everything)
        yield Branch(depth, _short(node.path), node.owner, hidden)


def _parent(path: str) -> str:
    return path.rpartition("/")[0]


def _parents(path: str) -> Iterator[str]:
    while path := _parent(path):
        yield path


def _short(path: str) -> str:
    name = path.rpartition("/")[2]
    mark = _MARK.fullmatch(name)
    short = f"{mark[1]}…" if mark else _MARK.sub("…", name)
    return short if path.rpartition("/")[0] else f"/{short}"


def _place(node: Node) -> list[tuple[int, str]]:
    """Sort by its number whatever has one, so that contenders stand in their line."""
    names = node.path.split("/")
    return [(int(match[1]) if (match := _NUMBER.search(one)) else -1, one) for one in names]
