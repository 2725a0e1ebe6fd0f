"""Log rooms: logs with many readers; a room has channels, a channel has numbered entries.

    room = LogRoom(client, "/rooms/masters")
    channel = await room.open_channel()
    print(await channel.append(b"mkdir /home"))  # 0

    async for event in room.follow():
        print(event)  # ChannelOpened(channel=0), then LogEntry(channel=0, ...)
        if isinstance(event, LogEntry):
            break

A reader gets the existing entries, then every new channel and entry: each once, and all of them in
the order of the service, across channels. Numbers begin with 0 and have no gaps, since each entry
is appended exactly once, also if the reply is lost.

For a checkpoint the writer opens a new channel and goes on there; its readers follow. When the
checkpoint is done, it deletes the old channel: first that is closed to other writers, then its
entries are deleted, from the first to the last. A reader that was too slow skips what is gone, and
`ChannelDeleted.is_complete` says so; a channel that it has missed as a whole shows as a jump in the
numbers of channels. In both cases it loads the checkpoint.

Several clients may write to one channel: its numbers are the order. A writer that may be replaced
passes its grant, and then nothing is appended after the grant is over.

* Suspension (the connection is lost): writers and readers wait for the next connection and go on,
  without a gap.
* Expiry: SessionExpiredError. An append in flight may have happened. With another client,
  `follow(after=...)` goes on behind an entry.
* Cancellation: an append in flight may have happened.
* Never promised: to know whether an append whose reply was lost has happened, if its channel's
  entries are deleted before we look. That raises ConnectionLostError.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_bytes
from paddock.client.transaction import Transaction
from paddock.errors import (
    BadVersionError,
    ChannelClosedError,
    ConnectionLostError,
    InvalidArgumentError,
    NoNodeError,
    NotAppliedError,
    NotEmptyError,
    NotReadOnlyError,
    ReplyLostError,
    ServiceError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.common.background import Recipe
from paddock.recipes.common.retry import (
    delete_if_exists,
    list_children,
    make_node,
    name_of,
    request_each,
    retry,
    wait_writable,
)
from paddock.recipes.locks.grant import Grant
from paddock.recipes.log_room.room_reader import (
    CHANNEL,
    ENTRY,
    LogEntry,
    Numbered,
    RoomEvent,
    RoomReader,
    in_order,
)

# How often a write is sent: one that is too large for the servers is lost each time.
_ATTEMPTS_MAX: Final = 10
# The version of a channel's node until it is closed.
_OPEN: Final = 0


class LogRoom(Recipe):
    """Channels, and a stream of their entries."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        super().__init__(client, path, acl)
        # The node whose children are the channels.
        self.path: str = path

    async def open_channel(self, *, grant: Grant | None = None) -> LogChannel:
        """Open a channel with the next number; the room is created if need be.

        With a grant it is opened only while that is held; raises GrantLostError otherwise.
        """
        [made] = await _SequentialCreate(self._client, self.path, CHANNEL, self._acl, grant).create(
            [b""]
        )
        return LogChannel(self._client, child_path(self.path, made.name), made.number, self._acl)

    async def channels(self) -> list[LogChannel]:
        """Return all channels, by their numbers."""
        names = await retry(self._client, lambda: list_children(self._client, self.path))
        return [
            LogChannel(self._client, child_path(self.path, one.name), one.number, self._acl)
            for one in in_order(names, CHANNEL)
        ]

    def follow(self, *, after: LogEntry | None = None) -> AsyncIterator[RoomEvent]:
        """Return a stream of everything in the room, then of every change, in order.

            async for event in room.follow():
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
        return RoomReader(self._client, self.path, after).events()


class LogChannel:
    """A channel of a room; `LogRoom` makes it."""

    def __init__(self, client: Client, path: str, number: int, acl: Sequence[ACL]) -> None:
        # Its own number in the room.
        self.number: int = number
        # The node whose children are the entries.
        self.path: str = path
        self._client = client
        self._acl = acl

    def __repr__(self) -> str:
        return f"<LogChannel {self.number} {self.path}>"

    async def append(self, data: bytes, *, grant: Grant | None = None) -> int:
        """Append an entry; return its number.

        With a grant it is appended only while that is held; raises GrantLostError otherwise, and
        ChannelClosedError if the channel was closed or deleted.
        """
        [number] = await self.append_all([data], grant=grant)
        return number

    async def append_all(
        self, entries: Sequence[bytes], *, grant: Grant | None = None
    ) -> list[int]:
        """Append several entries in one transaction; return their numbers."""
        if not isinstance(entries, list | tuple):
            raise InvalidArgumentError(f"entries: expected a list of bytes, not {entries!r}")
        for data in entries:
            checked_bytes("data", data)
        if not entries:
            return []
        create = _SequentialCreate(self._client, self.path, ENTRY, self._acl, grant)
        return [one.number for one in await create.create(entries)]

    async def entries(self) -> list[LogEntry]:
        """Return all entries, by their numbers."""
        numbers = {child_path(self.path, one.name): one.number for one in await self._listed()}
        found = await retry(self._client, lambda: request_each(self._client.get, [*numbers]))
        return [
            LogEntry(self.number, numbers[path], node.data, node.stat.czxid)
            for path, node in found.items()
        ]

    async def close(self, *, grant: Grant | None = None) -> None:
        """Refuse further entries; existing ones can be read. Closing twice is fine.

        With a grant it is closed only while that is held; raises GrantLostError otherwise.
        """

        async def close() -> None:
            try:
                async with _begin(self._client, grant) as transaction:
                    transaction.set(self.path, b"closed", version=_OPEN)
            except TransactionFailedError as error:
                why = error.cause or error
                if why.path != self.path:
                    raise _deposed(why, grant) from error
                if not isinstance(why, BadVersionError | NoNodeError):
                    raise why from error

        await retry(self._client, close)

    async def delete(self, *, grant: Grant | None = None) -> None:
        """Close it, then delete its entries, from the first to the last, and the channel itself.

        With a grant that is not held any more, raises GrantLostError before anything is deleted.
        """
        await self.close(grant=grant)
        await retry(self._client, self._delete)

    async def _listed(self) -> list[Numbered]:
        names = await retry(self._client, lambda: list_children(self._client, self.path))
        return in_order(names, ENTRY)

    async def _delete(self) -> None:
        while True:
            # This server may not have the last entries yet.
            await self._client.sync(self.path)
            entries = await self._listed()
            await request_each(
                self._client.delete, [child_path(self.path, one.name) for one in entries]
            )
            try:
                return await delete_if_exists(self._client, self.path)
            except NotEmptyError:
                if not entries:
                    # It has children that are no entries.
                    raise


class _SequentialCreate:
    """Sequential nodes that are created together, and recognised by their mark."""

    def __init__(
        self, client: Client, above: str, kind: str, acl: Sequence[ACL], grant: Grant | None
    ) -> None:
        self._client = client
        self._above = above
        self._kind = kind
        self._acl = acl
        self._grant = grant
        self._mark = f"_c_{client.new_mark()}-"

    async def create(self, data: Sequence[bytes]) -> list[Numbered]:
        """Create them; return them in order."""
        lost: ConnectionLostError | None = None
        for _ in range(_ATTEMPTS_MAX):
            try:
                return self._own(await self._submit(data))
            except ConnectionLostError as error:
                lost = error
                found = await retry(self._client, self._find)
                if found:
                    return found
                if found is None or isinstance(error, NotAppliedError | ReplyLostError):
                    break
            except NotReadOnlyError:
                await wait_writable(self._client)
            except TransactionFailedError as error:
                await self._repair(error.cause or error)
        raise ConnectionLostError("append", self._above) from lost

    async def _submit(self, data: Sequence[bytes]) -> list[str]:
        transaction = _begin(self._client, self._grant)
        if self._kind == ENTRY:
            transaction.check(self._above, version=_OPEN)
        for one in data:
            path = child_path(self._above, self._mark + self._kind)
            transaction.create(path, one, acl=self._acl, sequential=True)
        return [name_of(path) for path in await transaction.commit() if path is not None]

    async def _find(self) -> list[Numbered] | None:
        """Return the nodes that exist; None if they may have existed and been deleted."""
        # This server may be behind the one that took our request.
        await self._client.sync(self._above)
        try:
            names, stat = await self._client.children_with_stat(self._above)
        except NoNodeError:
            return [] if self._kind == CHANNEL else None
        found = self._own(names)
        has_lost_some = stat.cversion != stat.num_children
        return None if self._kind == ENTRY and not found and has_lost_some else found

    def _own(self, names: list[str]) -> list[Numbered]:
        return in_order([name for name in names if name.startswith(self._mark)], self._kind)

    def _is_here(self, why: ServiceError) -> bool:
        """Return whether it is about our nodes, and not about those of the grant."""
        return why.path is not None and f"{why.path}/".startswith(child_path(self._above, ""))

    async def _repair(self, why: ServiceError) -> None:
        """Create a missing room, or raise the meaning of a refusal."""
        if not self._is_here(why):
            raise _deposed(why, self._grant)
        if self._kind == CHANNEL and isinstance(why, NoNodeError):
            await make_node(self._client, self._above)
        elif isinstance(why, BadVersionError | NoNodeError):
            raise ChannelClosedError(f"{self._above}: the channel is closed")
        else:
            raise why


def _begin(client: Client, grant: Grant | None) -> Transaction:
    return client.transaction() if grant is None else grant.guard()


def _deposed(why: ServiceError, grant: Grant | None) -> Exception:
    return why if grant is None else grant.lost()
