"""The nodes of log rooms, and the events of their readers.

A room's node has its channels as children, a channel's node its entries. Both are sequential and
have a mark of their writer in their names, `_c_<mark>-channel-0000000003`, by which the writer
recognises them after a lost reply. Nothing else is created below them, so the service numbers them
without a gap, from 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

# The prefixes of the nodes.
CHANNEL: Final = "channel-"
ENTRY: Final = "entry-"

_NUMBERED: Final = re.compile(r"(?:_c_[0-9A-Za-z]+-)?(channel-|entry-)(\d{10})")


@dataclass(frozen=True, slots=True)
class LogEntry:
    """An entry of a channel."""

    #: The number of its channel.
    channel: int
    #: Its own number in the channel, from 0.
    number: int
    data: bytes
    #: The zxid of its creation: its place in the order of all entries of a room.
    zxid: int = field(repr=False)


@dataclass(frozen=True, slots=True)
class ChannelOpened:
    """A channel exists, and its entries follow."""

    channel: int


@dataclass(frozen=True, slots=True)
class ChannelDeleted:
    """A channel is gone; no entry of it follows."""

    channel: int
    #: Whether surely every entry of it was yielded. If not, the checkpoint has the missing ones.
    is_complete: bool


# An event of a room, in the order of the service.
RoomEvent: TypeAlias = ChannelOpened | LogEntry | ChannelDeleted


class Numbered(NamedTuple):
    """A node with a number."""

    number: int
    name: str


def number_of(name: str, kind: str) -> int | None:
    """Return the number of a channel or an entry; None for any other name."""
    found = _NUMBERED.fullmatch(name)
    return int(found[2]) if found is not None and found[1] == kind else None


def in_order(names: list[str], kind: str) -> list[Numbered]:
    """Return the nodes of a kind in a list of names, by their numbers."""
    numbers = [(number_of(name, kind), name) for name in names]
    return sorted(Numbered(number, name) for number, name in numbers if number is not None)
