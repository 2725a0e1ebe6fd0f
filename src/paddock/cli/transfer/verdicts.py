"""Options of an import, its findings and its results."""

import enum
from dataclasses import dataclass


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
    # Nodes that are not in the stream are deleted.
    deletes: bool = False
    # Nothing is written.
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
    # How many nodes there are below one that is to be deleted.
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
