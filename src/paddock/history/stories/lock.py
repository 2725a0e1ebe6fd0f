"""The story of a lock: who held it from when to when, who waited, and how each lost it.

It knows a lock by its nodes: children that end with ten digits, of which the one with the lowest
number holds it. So do Paddock's locks and elections, kazoo's and Curator's. A contender that is
gone had released it, if its own session deleted the node; or its session ended; or somebody else
deleted the node, which is nobody's right and a bug of somebody's.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any, Final

from paddock.history.moment import Moment, shown_time
from paddock.history.past import Gap, Past, Step
from paddock.history.telling import Below, NodeChange, changes
from paddock.layouts import layout_of, number_of, read_requests

RELEASED: Final = "released"
EXPIRED: Final = "its session expired"
CLOSED: Final = "its session was closed"
DELETED_BY_OTHER: Final = "deleted by another session"
DELETED_BY_SERVICE: Final = "deleted by the service"
HIDDEN: Final = "in a gap of the history"


@dataclass
class Contender:
    """One node in the line for a lock."""

    path: bytes
    number: int
    session: int
    # Who asked for it, and when.
    came: Step | None
    identities: tuple[str, ...] = ()
    data: bytes = b""
    # Whether it has held the lock, since when (None: before this history), and how it lost the
    # lock or its place.
    has_held: bool = False
    held: Step | Gap | None = None
    went: Step | Gap | None = None
    how: str = ""

    @property
    def layout(self) -> str:
        return layout_of(_name(self.path)) or "another"


@dataclass
class LockStory:
    """What is known of one lock, up to a moment."""

    path: str
    # Whether there was such a node at any time.
    is_known: bool = False
    # In the order of their coming; those that are there at the end are in the line.
    contenders: list[Contender] = field(default_factory=list)
    gaps: list[Gap] = field(default_factory=list)

    @property
    def line(self) -> list[Contender]:
        """Who is there at the end, the holder first."""
        return sorted(
            (one for one in self.contenders if one.went is None), key=lambda one: one.number
        )

    def lines(self) -> Iterator[str]:
        """Yield the story, for people."""
        line = self.line
        if line:
            yield f"{self.path}: held by {_who(line[0])} since {_when(line[0].held)}"
        else:
            yield f"{self.path}: nobody holds it"
        for place, one in enumerate(line[1:], 1):
            yield f"  waits as number {place}: {_who(one)} since {_when(one.came)}"
        for gap in self.gaps:
            yield f"  {gap}"
        for one in self.contenders:
            if one.has_held and one.went is not None:
                yield (
                    f"  held from {_when(one.held)} to {_when(one.went)} by {_who(one)}:"
                    f" {_how(one)}"
                )
            elif one.went is not None:
                waited = f"waited from {_when(one.came)} to {_when(one.went)}"
                yield f"  {waited}: {_who(one)}: {_how(one)}"

    def fields(self) -> dict[str, Any]:
        """Return the story, for programs."""
        line = self.line
        return {
            "path": self.path,
            "holder": _fields(line[0]) if line else None,
            "waiters": [_fields(one) for one in line[1:]],
            "former": [_fields(one) for one in self.contenders if one.went is not None],
            "gaps": [str(gap) for gap in self.gaps],
        }


def tell_lock(past: Past, path: str, until: Moment) -> LockStory:
    """Tell the story of a lock from where a past is to a moment."""
    story = LockStory(path)
    there: dict[bytes, Contender] = {}
    base = b"" if path == "/" else path.encode()
    story.is_known = past.nodes.get(base) is not None
    # Those that are there already; since when is not known here.
    for node_path, node in past.nodes.items():
        number = _number(base, node_path)
        if number is not None:
            _add(story, there, Contender(node_path, number, node.owner, None, (), _own(node.data)))
    _note_holder(there, None)
    for one in changes(past, until, Below(path.encode())):
        if isinstance(one, Gap):
            story.gaps.append(one)
            continue
        story.is_known = True
        number = _number(base, one.path)
        if number is None:
            continue
        if one.after is None or (one.before is not None and one.kind == "created"):
            gone = there.pop(one.path, None)
            if gone is not None:
                gone.went, gone.how = one.cause, _reason(one, gone)
        if one.after is not None and one.path not in there:
            came = one.cause if isinstance(one.cause, Step) else None
            owner = one.after.stat.ephemeral_owner or (came.session if came else 0)
            who = () if came is None else came.identities
            _add(story, there, Contender(one.path, number, owner, came, who, one.after.data or b""))
        _note_holder(there, one.cause)
    return story


def _own(data: bytes | None) -> bytes:
    """Return what a contender says about itself; somebody may have asked it to let go."""
    return read_requests(data or b"").own


def _add(story: LockStory, there: dict[bytes, Contender], one: Contender) -> None:
    story.contenders.append(one)
    there[one.path] = one


def _note_holder(there: dict[bytes, Contender], cause: Step | Gap | None) -> None:
    if there:
        first = min(there.values(), key=lambda one: one.number)
        if not first.has_held:
            first.has_held = True
            first.held = cause


def _number(base: bytes, path: bytes) -> int | None:
    """Return the place in the line of a node below the lock; None if it is no contender."""
    above, _, name = path.rpartition(b"/")
    return number_of(name.decode("utf-8", "replace")) if path and above == base else None


def _reason(change: NodeChange, gone: Contender) -> str:
    cause = change.cause
    if isinstance(cause, Gap):
        return HIDDEN
    ended = cause.session_change
    if ended is not None and ended[0] == gone.session and ended[1] == "ended":
        return CLOSED if cause.operation == "close_session" else EXPIRED
    if not cause.session:
        return DELETED_BY_SERVICE
    return RELEASED if cause.session == gone.session else DELETED_BY_OTHER


def _who(one: Contender) -> str:
    who = f" ({', '.join(one.identities)})" if one.identities else ""
    return f"session 0x{one.session & (1 << 64) - 1:x}{who}, {_name(one.path)}"


def _name(path: bytes) -> str:
    return path[path.rfind(b"/") + 1 :].decode("utf-8", "replace")


def _how(one: Contender) -> str:
    if one.how == DELETED_BY_OTHER and isinstance(one.went, Step):
        who = f" ({', '.join(one.went.identities)})" if one.went.identities else ""
        return f"{one.how}, 0x{one.went.session & (1 << 64) - 1:x}{who}"
    return one.how


def _when(moment: Step | Gap | None) -> str:
    if moment is None:
        return "before this history"
    if isinstance(moment, Gap):
        return "some time in the gap"
    return f"{shown_time(moment.time_ms)} (0x{moment.zxid:x})"


def _fields(one: Contender) -> dict[str, Any]:
    return {
        "path": one.path.decode("utf-8", "replace"),
        "session": f"0x{one.session & (1 << 64) - 1:x}",
        "identities": list(one.identities),
        "layout": one.layout,
        "came": _moment_fields(one.came),
        "held": _moment_fields(one.held),
        "went": _moment_fields(one.went),
        "how": one.how or None,
    }


def _moment_fields(moment: Step | Gap | None) -> dict[str, Any] | None:
    if isinstance(moment, Step):
        return {"zxid": moment.zxid, "time_ms": moment.time_ms}
    return None
