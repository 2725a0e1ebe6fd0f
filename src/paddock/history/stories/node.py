"""The story of a node: who made it, who changed it last, and how it went."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from paddock.history.moment import Moment, shown_time
from paddock.history.past import ENDED, Gap, Past, Step
from paddock.history.telling import DELETED, Below, Image, NodeChange, changes


@dataclass
class NodeStory:
    """What is known of the node at a path, up to a moment."""

    path: str
    # As it is at the end; None if it is not there.
    image: Image | None = None
    # How often it was changed, created and deleted, and the last times.
    count: int = 0
    last: deque[NodeChange] = field(default_factory=deque)
    created: NodeChange | None = None
    gaps: list[Gap] = field(default_factory=list)

    @property
    def is_known(self) -> bool:
        """Whether anything at all is told of it."""
        return self.image is not None or self.count > 0

    def lines(self) -> Iterator[str]:
        """Yield the story, for people."""
        if self.image is None:
            yield f"{self.path}: not there"
        else:
            owner = self.image.stat.ephemeral_owner
            kind = f", ephemeral, of session 0x{owner & (1 << 64) - 1:x}" if owner else ""
            yield f"{self.path}: version {self.image.stat.version}{kind}"
        for gap in self.gaps:
            yield f"  {gap}"
        shown = [*self.last]
        if self.created is not None and self.created not in shown:
            yield f"  {_line(self.created)}"
            if self.count > len(shown) + 1:
                yield f"  … {self.count - len(shown) - 1} changes"
        for one in shown:
            yield f"  {_line(one)}"

    def fields(self) -> dict[str, Any]:
        """Return the story, for programs."""
        return {
            "path": self.path,
            "exists": self.image is not None,
            "version": None if self.image is None else self.image.stat.version,
            "owner": None
            if self.image is None or not self.image.stat.ephemeral_owner
            else f"0x{self.image.stat.ephemeral_owner & (1 << 64) - 1:x}",
            "changes": self.count,
            "created": None if self.created is None else _fields(self.created),
            "last": [_fields(one) for one in self.last],
            "gaps": [str(gap) for gap in self.gaps],
        }


def tell_node(past: Past, path: str, until: Moment, limit: int) -> NodeStory:
    """Tell the story of a node, with its last changes, from where a past is to a moment."""
    story = NodeStory(path, last=deque(maxlen=limit))
    key = path.encode()
    below = Below(key, is_recursive=False)
    for one in changes(past, until, below):
        if isinstance(one, Gap):
            story.gaps.append(one)
            continue
        story.count += 1
        story.last.append(one)
        if one.kind == "created":
            story.created = one
    node = past.nodes.get(key)
    story.image = None if node is None else Image.of(node)
    return story


def _line(change: NodeChange) -> str:
    cause = change.cause
    if isinstance(cause, Gap):
        return f"{change.kind} in the gap"
    return f"{shown_time(cause.time_ms)} (0x{cause.zxid:x})  {change.kind} by {_by(change, cause)}"


def _by(change: NodeChange, cause: Step) -> str:
    ended = cause.session_change
    if change.kind == DELETED and ended is not None and ended[1] == ENDED:
        word = "was closed" if cause.operation == "close_session" else "expired"
        return f"the end of its session 0x{ended[0] & (1 << 64) - 1:x}, which {word}"
    if not cause.session:
        return f"the service ({cause.operation})"
    who = f" ({', '.join(cause.identities)})" if cause.identities else ""
    return f"session 0x{cause.session & (1 << 64) - 1:x}{who}"


def _fields(change: NodeChange) -> dict[str, Any]:
    cause = change.cause
    if isinstance(cause, Gap):
        return {"kind": change.kind, "zxid": None}
    return {
        "kind": change.kind,
        "zxid": cause.zxid,
        "time_ms": cause.time_ms,
        "session": f"0x{cause.session & (1 << 64) - 1:x}" if cause.session else None,
        "identities": list(cause.identities),
        "operation": cause.operation,
    }
