"""The layouts of recipes: how Paddock, kazoo and Curator name the nodes of their recipes.

One definition, for the recipes themselves, for the stories of the past (`history`) and for the
dashboard, which recognise a recipe by these names. Pure: functions of names.

A contender in a line has an ephemeral sequential node:

    _c_<mark>-lock-0000000007                 Paddock's, with a mark of 32 hexadecimal digits;
                                              Curator's, with a UUID that has dashes
    <32 digits>__lock__0000000007             kazoo's; Paddock's with `layout="kazoo"`

A holder is asked to let go by the data of its node. Curator's Revoker writes `__REVOKE__`, and does
not say who asks. Paddock adds two lines, of which Curator knows nothing: who asks, as JSON, and the
data that were there before.

    __REVOKE__
    [{"mark": "9f...", "data": "worker 9", "session": "0x1000a"}]
    worker 7
"""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Iterable, Sequence
from typing import Final, NamedTuple

PADDOCK: Final = "Paddock"
KAZOO: Final = "kazoo"
CURATOR: Final = "Curator"

# The layouts that our recipes can be asked for; the first is that of both Paddock and Curator.
LAYOUT_NAMES: Final = ("curator", "kazoo")

# What a contender waits for: the part of its node's name before the number. The first five are
# those of Curator's recipes, so that its contenders and ours can stand in one line.
LOCK: Final = "lock-"
READ: Final = "__READ__"
WRITE: Final = "__WRIT__"
LEASE: Final = "lease-"
LATCH: Final = "latch-"
# Members of a double barrier or of a partitioner; consumers that wait for an item; workers.
MEMBER: Final = "member-"
WAIT: Final = "wait-"
WORKER: Final = "worker-"
# kazoo's locks, and the readers of its read-write locks.
KAZOO_LOCK: Final = "__lock__"
KAZOO_READ: Final = "__rlock__"
# What both Curator and kazoo have: locks, read-write locks and elections.
IN_BOTH_LAYOUTS: Final = frozenset({LOCK, READ, WRITE, LATCH, KAZOO_LOCK, KAZOO_READ})

# How Curator asks a holder to let go, and how many requests its node keeps of ours.
REVOKE: Final = b"__REVOKE__"
REQUESTS_MAX: Final = 100

# The data of a closed barrier of Paddock's, which is a persistent node of any name.
CLOSED_BARRIER: Final = b"paddock: closed barrier"

# The number of a sequential node; the service counts in 32 bits, so some are negative.
NUMBER: Final = r"(?P<number>-\d{9,10}|\d{10})"

_NUMBERS: Final = 2**32
_HEX: Final = "[0-9a-f]{32}"
_UUID: Final = "[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}"
_PROTECTED: Final = re.compile(
    f"_c_(?:(?P<uuid>{_UUID})|{_HEX})-"
    f"(?P<kind>{'|'.join((LOCK, READ, WRITE, LEASE, LATCH, MEMBER, WAIT, WORKER))}){NUMBER}"
)
_KAZOO_PLACE: Final = re.compile(f"{_HEX}(?P<kind>{KAZOO_LOCK}|{KAZOO_READ}){NUMBER}")
# How the names of a line begin, whatever its contenders wait for.
_LINES: Final = (
    (re.compile(f"{_HEX}(?:{KAZOO_LOCK}|{KAZOO_READ})"), KAZOO),
    (re.compile("_c_[0-9a-f-]{36}-"), CURATOR),
    (re.compile(f"_c_{_HEX}-"), PADDOCK),
)
_NUMBERED: Final = re.compile(r".*?(\d{10})", re.DOTALL)

# An item of Paddock's queue.
ITEM: Final = re.compile(
    rf"^item-(?P<priority>-?\d{{1,10}})-(?P<id>{_HEX})(?:-due(?P<due>\d{{1,19}}))?-{NUMBER}"
)
_ITEMS: Final = (
    (ITEM, PADDOCK),
    (re.compile(rf"entry-\d{{3}}-{NUMBER}"), KAZOO),
    # Plain, with a priority, with a time or an id; then those of SimpleDistributedQueue.
    (re.compile(rf"queue-(?:[01][0-9A-F]{{8}}|\|[^|]*\|)?{NUMBER}"), CURATOR),
    (re.compile(rf"qn-{NUMBER}"), CURATOR),
)
_PARTY: Final = re.compile(f"{_HEX}(?:__party__|-.*)", re.DOTALL)
_BARE_HEX: Final = re.compile(_HEX)
_BARE_UUID: Final = re.compile(_UUID)
_FENCE: Final = re.compile(f"(?P<name>.+)-{_HEX}", re.DOTALL)


class Place(NamedTuple):
    """A contender's place in a line, by its name."""

    layout: str
    # What it waits for, such as `lock-`.
    kind: str
    number: int


class Request(NamedTuple):
    """A request to let go."""

    # Random, to tell it from others; empty if it is Curator's.
    mark: str = ""
    # What the asker says about itself.
    data: bytes = b""
    # The asker's session; 0 if it is not known.
    session_id: int = 0


class Asked(NamedTuple):
    """The data of a contender's node: its own, and the requests to let go."""

    own: bytes
    requests: Sequence[Request]


def place_name(layout: str, mark: str, kind: str) -> str:
    """Return how the name of a contender begins: the service adds the number."""
    return f"{mark}{kind}" if layout == "kazoo" else f"_c_{mark}-{kind}"


def is_foreign(layout: str, name: str) -> bool:
    """Return whether it is a contender of another layout, which does not wait for ours."""
    place = place_of(name)
    return place is not None and (place.layout == KAZOO) != (layout == "kazoo")


def read_requests(data: bytes) -> Asked:
    """Return what is in the data of a contender's node."""
    if data == REVOKE:
        return Asked(b"", [Request()])
    head, _, rest = data.partition(b"\n")
    if head != REVOKE:
        return Asked(data, ())
    listed, _, own = rest.partition(b"\n")
    try:
        return Asked(own, [_request(one) for one in json.loads(listed)])
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
        # Somebody else's data.
        return Asked(data, ())


_LONG: Final = (1 << 64) - 1


def with_request(data: bytes, request: Request) -> bytes:
    """Return the data of a contender's node with one more request, without the oldest of many."""
    own, requests = read_requests(data)
    kept = [*requests, request][-REQUESTS_MAX:]
    listed = [
        {"mark": one.mark, "data": _text(one.data), "session": f"0x{one.session_id & _LONG:x}"}
        for one in kept
    ]
    return b"\n".join((REVOKE, json.dumps(listed).encode(), own))


def _request(fields: dict[str, str]) -> Request:
    data = fields["data"].encode("utf-8", "surrogateescape")
    session = int(fields["session"], 16)
    # An id is signed; it is written without a sign.
    return Request(fields["mark"], data, session - (session >> 63 << 64))


def _text(data: bytes) -> str:
    """Return data as text that can be read, and turned back into the same bytes."""
    return data.decode("utf-8", "surrogateescape")


@functools.lru_cache(maxsize=4096)
def place_of(name: str) -> Place | None:
    """Return the place that a name stands for; None if it is not that of a known line."""
    found = _PROTECTED.fullmatch(name)
    if found is not None:
        return Place(
            PADDOCK if found["uuid"] is None else CURATOR, found["kind"], int(found["number"])
        )
    found = _KAZOO_PLACE.fullmatch(name)
    return None if found is None else Place(KAZOO, found["kind"], int(found["number"]))


def layout_of(name: str) -> str | None:
    """Return whose way it is to begin the name of a contender so; None if it is nobody's."""
    return next((layout for pattern, layout in _LINES if pattern.match(name)), None)


def number_of(name: str) -> int | None:
    """Return the ten digits at the end of any name, as a sequential node has them."""
    found = _NUMBERED.fullmatch(name)
    return None if found is None else int(found[1])


def item_layout(name: str) -> str | None:
    """Return whose queue has items with such a name; None if nobody's."""
    return next((layout for pattern, layout in _ITEMS if pattern.fullmatch(name)), None)


def is_party_member(name: str) -> bool:
    """Return whether it is the name of a member of kazoo's Party or ShallowParty."""
    return _PARTY.fullmatch(name) is not None


def unique_layout(name: str) -> str | None:
    """Return who gives such random names: kazoo's have no dashes, Curator's have."""
    if _BARE_HEX.fullmatch(name):
        return KAZOO
    return CURATOR if _BARE_UUID.fullmatch(name) else None


def fenced(name: str) -> str | None:
    """Return the name of the claim that a node with a mark stands beside; None if it has none."""
    found = _FENCE.fullmatch(name)
    return None if found is None else found["name"]


def in_order(names: Iterable[str], pattern: re.Pattern[str]) -> list[re.Match[str]]:
    """Return the matches of the names that end with the pattern, in the order of creation."""
    found = [one for name in names if (one := pattern.search(name)) and one.end() == len(name)]
    if len(found) < 2:
        return found
    ranks = ranked([int(one["number"]) for one in found])
    return [found[place] for place in sorted(range(len(found)), key=ranks.__getitem__)]


def ranked(numbers: list[int]) -> list[int]:
    """Return a rank for each number of a line, in the order in which the service gave them."""
    # After the largest number the service goes on with the least, which is negative.
    is_wrapped = bool(numbers) and max(numbers) - min(numbers) >= _NUMBERS // 2
    return [number % _NUMBERS for number in numbers] if is_wrapped else numbers
