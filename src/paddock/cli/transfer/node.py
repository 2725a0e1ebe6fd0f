"""A node as it is carried from one place to another, and where it belongs.

Its path is the one that it has below the root of the tree that is carried, so that the same tree
looks the same wherever it came from: the root itself is `/`.
"""

from dataclasses import dataclass
from typing import Final

from paddock.protocol.acl import ACL

ROOT: Final = "/"


@dataclass(frozen=True, slots=True)
class Node:
    """What is carried of a node: where it is in its tree, what it holds, and who may do what."""

    path: str
    data: bytes
    # None: not read; the node is created open to all.
    acl: tuple[ACL, ...] | None


def order_of(path: str) -> list[str]:
    """Return the sort key of a path: a node before its children, these by name."""
    return [] if path == ROOT else path.split("/")[1:]


def joined(above: str, path: str) -> str:
    """Return the path of the service for a path of the tree whose root is at `above`."""
    if path == ROOT:
        return above
    return path if above == ROOT else above + path


def below(above: str, path: str) -> str:
    """Return the path in the tree whose root is at `above`: the inverse of `joined`."""
    if above == ROOT:
        return path
    return path[len(above) :] or ROOT


def is_below(above: str, path: str) -> bool:
    """Return whether a path is a descendant of another one."""
    return path.startswith("/" if above == ROOT else above + "/") and path != above


def name_of(path: str) -> str:
    """Return the last part of a path."""
    return path[path.rfind("/") + 1 :]
