"""A node as it is carried from one place to another, where it belongs, and what becomes of it.

Its path is the one that it has below the root of the tree that is carried, so that the same tree
looks the same wherever it came from: the root itself is `/`.
"""

import enum
from dataclasses import dataclass
from typing import Final

from paddock.errors import PaddockError
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
    return path if above == ROOT else path[len(above) :] or ROOT


def is_below(above: str, path: str) -> bool:
    """Return whether a path is a descendant of another one."""
    return path.startswith("/" if above == ROOT else above + "/") and path != above


class TransferError(PaddockError):
    """It cannot be done, or not like this."""


class DamagedExportError(TransferError):
    """A file is not what an export should be; the message names the line and the byte."""


class Existing(enum.Enum):
    """What becomes of a node that is there and is not as it should be."""

    REFUSE = "refuse"
    KEEP = "keep"
    OVERWRITE = "overwrite"


class Verdict(enum.Enum):
    """What is done with a node, or would be."""

    SAME = "same"
    CREATE = "create"
    CHANGE = "change"
    DELETE = "delete"
    # It is there, but for the ACL that an interrupted import has still to set.
    FINISH = "finish"


@dataclass(frozen=True, slots=True)
class ImportOptions:
    """What may be done to the service."""

    existing: Existing = Existing.REFUSE
    deletes: bool = False
    is_dry: bool = False
    # Nodes that are not in the stream are reported, even if they are not deleted.
    looks_for_more: bool = False
    # How many nodes at the beginning are known to be as they should be.
    same_before: int = 0


@dataclass(frozen=True, slots=True)
class Difference:
    """Something that differs from what the stream says, before anything is done about it."""

    verdict: Verdict
    path: str
    # What differs, of a node that is there: "data", "acl".
    what: tuple[str, ...] = ()
    below: int = 0


@dataclass(slots=True)
class Tally:
    """What was done, or would be, in numbers of nodes."""

    same: int = 0
    created: int = 0
    changed: int = 0
    # There, different, and left alone.
    kept: int = 0
    deleted: int = 0
    # The place in the stream, from 0, of the first node that is not as it should be.
    first_different: int | None = None
