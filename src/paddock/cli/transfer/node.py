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
    # None: nobody has looked, and whoever creates it leaves it open to all.
    acl: tuple[ACL, ...] | None


def order_of(path: str) -> list[str]:
    """Give what paths are sorted by: a node before its children, these by their names."""
    return [] if path == ROOT else path.split("/")[1:]


def joined(above: str, path: str) -> str:
    """Give where a path of a tree is, if the root of the tree is at `above`."""
    if path == ROOT:
        return above
    return path if above == ROOT else above + path


def below(above: str, path: str) -> str:
    """Give where a path is in the tree whose root is at `above`; the other way round."""
    if above == ROOT:
        return path
    return path[len(above) :] or ROOT


def is_below(above: str, path: str) -> bool:
    """Tell whether a path leads on from another one."""
    return path.startswith("/" if above == ROOT else above + "/") and path != above


def name_of(path: str) -> str:
    """Give the last part of a path."""
    return path[path.rfind("/") + 1 :]


def above_of(path: str) -> str:
    """Give the path of the parent."""
    return path[: path.rfind("/")] or ROOT
