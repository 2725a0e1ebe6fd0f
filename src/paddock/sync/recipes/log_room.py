"""The blocking twin of `paddock.recipes.log_room`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock import recipes
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes import LogEntry, RoomEvent
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.recipes.locks import Grant
from paddock.sync.streams import Stream


class LogChannel(Twin[recipes.LogChannel]):
    """A channel of a room; `LogRoom` makes it."""

    @property
    def number(self) -> int:
        """Its own number in the room."""
        return self._inner.number

    @property
    def path(self) -> str:
        """The node whose children are the entries."""
        return self._inner.path

    def append(self, data: bytes, *, grant: Grant | None = None) -> int:
        """Append an entry; return its number.

        With a grant it is appended only while that is held; raises GrantLostError otherwise, and
        ChannelClosedError if the channel was closed or deleted.
        """
        return self._bridge.call(
            self._inner.append, data, grant=(None if grant is None else grant._inner)
        )

    def append_all(self, entries: Sequence[bytes], *, grant: Grant | None = None) -> list[int]:
        """Append several entries in one transaction; return their numbers."""
        return self._bridge.call(
            self._inner.append_all, entries, grant=(None if grant is None else grant._inner)
        )

    def entries(self) -> list[LogEntry]:
        """Return all entries, by their numbers."""
        return self._bridge.call(self._inner.entries)

    def close(self, *, grant: Grant | None = None) -> None:
        """Refuse further entries; existing ones can be read. Closing twice is fine.

        With a grant it is closed only while that is held; raises GrantLostError otherwise.
        """
        self._bridge.call(self._inner.close, grant=(None if grant is None else grant._inner))

    def delete(self, *, grant: Grant | None = None) -> None:
        """Close it, then delete its entries, from the first to the last, and the channel itself.

        With a grant that is not held any more, raises GrantLostError before anything is deleted.
        """
        self._bridge.call(self._inner.delete, grant=(None if grant is None else grant._inner))


class LogRoom(Twin[recipes.LogRoom]):
    """Channels, and a stream of their entries."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make("client", client, lambda bridge: recipes.LogRoom(client._inner, path, acl=acl))

    @property
    def path(self) -> str:
        """The node whose children are the channels."""
        return self._inner.path

    def open_channel(self, *, grant: Grant | None = None) -> LogChannel:
        """Open a channel with the next number; the room is created if need be.

        With a grant it is opened only while that is held; raises GrantLostError otherwise.
        """
        return LogChannel._of(
            self._bridge,
            self._bridge.call(
                self._inner.open_channel, grant=(None if grant is None else grant._inner)
            ),
        )

    def channels(self) -> list[LogChannel]:
        """Return all channels, by their numbers."""
        return [
            LogChannel._of(self._bridge, _one) for _one in self._bridge.call(self._inner.channels)
        ]

    def follow(self, *, after: LogEntry | None = None) -> Stream[RoomEvent]:
        """Return a stream of everything in the room, then of every change, in order.

            for event in room.follow():
                match event:
                    case ChannelOpened(channel):
                        print("channel", channel)
                    case LogEntry(channel, number, data):
                        print(channel, number, data)
                    case ChannelDeleted(channel, is_complete):
                        print("the end of", channel)
                        break

        The room may be created later. `after` goes on behind an entry that was read by another
        client: existing channels are repeated, and of the entries only later ones come. A
        checkpoint needs the `channel`, the `number` and the `zxid` of the last entry in it:
        `LogEntry(channel, number, b"", zxid)` stands for that entry. The stream survives lost
        connections, and raises SessionExpiredError when the session is over.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.follow, after=after))
