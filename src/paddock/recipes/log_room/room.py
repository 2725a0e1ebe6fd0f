"""What rooms of logs look like in the tree, and what their readers are told.

A room's node has its channels as children, a channel's node its entries. Both are sequential and
have a mark of their writer's in their names, `_c_<mark>-channel-0000000003`, by which the writer
finds them again after a lost reply. Nothing else is made below them, so the service counts them
without a gap, from 0.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import Final, NamedTuple, TypeAlias

# What a name says before its number.
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
    """A channel is there, and its entries follow."""

    channel: int


@dataclass(frozen=True, slots=True)
class ChannelDeleted:
    """A channel is gone, and no entry of it follows."""

    channel: int
    #: Whether surely every entry that it ever had was told. If not, what was missed is in the
    #: checkpoint for which it was deleted.
    is_complete: bool


# What a reader of a room is told, in the order of the service.
RoomEvent: TypeAlias = ChannelOpened | LogEntry | ChannelDeleted


class Numbered(NamedTuple):
    """A node with a number."""

    number: int
    name: str


def number_of(name: str, kind: str) -> int | None:
    """Give the number in the name of a channel or an entry; None for any other name."""
    found = _NUMBERED.fullmatch(name)
    return int(found[2]) if found is not None and found[1] == kind else None


def in_order(names: list[str], kind: str) -> list[Numbered]:
    """Give those of some names that are of a kind, by their numbers."""
    found = []
    for name in names:
        number = number_of(name, kind)
        if number is not None:
            found.append(Numbered(number, name))
    return sorted(found)
