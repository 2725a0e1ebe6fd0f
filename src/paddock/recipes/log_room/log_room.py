"""Log rooms: logs that many follow; a room has channels, a channel has numbered entries.

    room = LogRoom(client, "/rooms/masters")
    channel = await room.open_channel()
    print(await channel.append(b"mkdir /home"))  # 0

    async for event in room.follow():
        print(event)  # ChannelOpened(channel=0), then LogEntry(channel=0, ...)
        if isinstance(event, LogEntry):
            break

Whoever joins a room is told what is there, then every new channel and entry: each once, and all of
them in the order in which the service has taken them, whichever channel they are in. Numbers begin
with 0 and have no gaps, since each entry is appended exactly once, also if the reply is lost.

For a checkpoint the writer opens a new channel and goes on there, so nothing waits for it; its
readers follow. When the checkpoint is done, it deletes the old channel: first that is closed, for
whoever would still append to it, then its entries go, from the first to the last. A reader that was
too slow for that skips what is gone, and is told by `ChannelDeleted.is_complete`; so is one by a
jump in the numbers of channels that did not even see a channel. Both load the checkpoint then.

Several may write to one channel: its numbers are the order. A writer that others may take over from
gives its grant, and then nothing is appended after the grant is over.

* Suspension (the connection is lost): writers and readers wait for the next connection and go on,
  without a gap.
* Expiry: SessionExpiredError. An append that was under way may have happened. With another client,
  `follow(after=...)` goes on behind an entry.
* Cancellation: an append that was under way may have happened.
* Never promised: to know whether an append whose reply was lost has happened, if its channel's
  entries are deleted before we look. That raises ConnectionLostError.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_acl, checked_bytes, checked_path
from paddock.client.transaction import Transaction
from paddock.errors import (
    BadVersionError,
    ChannelClosedError,
    ConnectionLostError,
    InvalidArgumentError,
    NoNodeError,
    NotEmptyError,
    NotReadOnlyError,
    ServiceError,
    TransactionFailedError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.retry import child, make_node, until_answered, wait_writable
from paddock.recipes.locks.grant import Grant
from paddock.recipes.log_room.room import (
    CHANNEL,
    ENTRY,
    LogEntry,
    Numbered,
    RoomEvent,
    in_order,
)
from paddock.recipes.log_room.room_reader import RoomReader

# How often something is sent in all: what is too large for the server is lost each time.
_ATTEMPTS_MAX: Final = 10
# How many requests are under way at once.
_REQUESTS_MAX: Final = 256
# A channel's data have this version until it is closed.
_OPEN: Final = 0


class LogRoom:
    """Channels, and those who follow them."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        checked_path(path)
        checked_acl(acl)
        # The node whose children are the channels.
        self.path: str = path
        self._client = client
        self._acl = acl

    def __repr__(self) -> str:
        return f"<LogRoom {self.path}>"

    async def open_channel(self, *, grant: Grant | None = None) -> LogChannel:
        """Open a channel, the next one by number; the room is made if it is not there.

        With a grant it is opened only while that is held; raises GrantLostError otherwise.
        """
        [made] = await _Writing(self._client, self.path, CHANNEL, self._acl, grant).create([b""])
        return LogChannel(self._client, child(self.path, made.name), made.number, self._acl)

    async def channels(self) -> list[LogChannel]:
        """Give all channels that there are, by their numbers."""
        return [
            LogChannel(self._client, child(self.path, one.name), one.number, self._acl)
            for one in in_order(await _names(self._client, self.path), CHANNEL)
        ]

    def follow(self, *, after: LogEntry | None = None) -> AsyncIterator[RoomEvent]:
        """Give everything that is in the room, then everything that comes, in its order.

            async for event in room.follow():
                match event:
                    case ChannelOpened(channel):
                        print("channel", channel)
                    case LogEntry(channel, number, data):
                        print(channel, number, data)
                    case ChannelDeleted(channel, is_complete):
                        print("the end of", channel)
                        break

        The room may be made later. Who was told everything up to an entry, by another client, goes
        on behind it with `after`: the channels that are there are told again, and of the entries
        only those that come after it. It goes on over lost connections, and raises
        SessionExpiredError when the session is over.
        """
        return RoomReader(self._client, self.path, after).events()


class LogChannel:
    """A channel of a room; `LogRoom` gives it."""

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
        """Append an entry; give its number.

        What one writer appends one after the other stands in this order. With a grant it is
        appended only while that is held; raises GrantLostError otherwise, and ChannelClosedError if
        the channel was closed or deleted.
        """
        [number] = await self.append_all([data], grant=grant)
        return number

    async def append_all(
        self, entries: Sequence[bytes], *, grant: Grant | None = None
    ) -> list[int]:
        """Append several entries, all of them together or none; give their numbers."""
        if not isinstance(entries, list | tuple):
            raise InvalidArgumentError(f"entries: expected a list of bytes, not {entries!r}")
        for data in entries:
            checked_bytes("data", data)
        if not entries:
            return []
        writing = _Writing(self._client, self.path, ENTRY, self._acl, grant)
        return [one.number for one in await writing.create(entries)]

    async def entries(self) -> list[LogEntry]:
        """Give all entries that there are, by their numbers."""
        found = []
        listed = in_order(await _names(self._client, self.path), ENTRY)
        for start in range(0, len(listed), _REQUESTS_MAX):
            some = listed[start : start + _REQUESTS_MAX]
            answers = await asyncio.gather(*(self._read(one) for one in some))
            found += [entry for entry in answers if entry is not None]
        return found

    async def close(self, *, grant: Grant | None = None) -> None:
        """Let nobody append any more; what is there can be read. Closing twice is fine.

        With a grant it is closed only while that is held; raises GrantLostError otherwise.
        """

        async def close() -> None:
            transaction = _begin(self._client, grant)
            transaction.set(self.path, b"closed", version=_OPEN)
            try:
                await transaction.commit()
            except TransactionFailedError as error:
                why = error.cause or error
                if why.path != self.path:
                    raise _deposed(why, grant) from error
                if not isinstance(why, BadVersionError | NoNodeError):
                    raise why from error

        await until_answered(self._client, close)

    async def delete(self, *, grant: Grant | None = None) -> None:
        """Close it, then delete its entries, from the first to the last, and the channel itself.

        That it is gone already is fine. With a grant, raises GrantLostError before anything is
        deleted if that is held no more.
        """
        await self.close(grant=grant)
        await until_answered(self._client, self._delete)

    async def _read(self, entry: Numbered) -> LogEntry | None:
        async def read() -> LogEntry | None:
            try:
                data, stat = await self._client.get(child(self.path, entry.name))
            except NoNodeError:
                return None
            return LogEntry(self.number, entry.number, data, stat.czxid)

        return await until_answered(self._client, read)

    async def _delete(self) -> None:
        while True:
            # The server we are attached to may not have seen the last entries.
            await self._client.sync(self.path)
            entries = in_order(await _names(self._client, self.path), ENTRY)
            for start in range(0, len(entries), _REQUESTS_MAX):
                await self._delete_some(entries[start : start + _REQUESTS_MAX])
            try:
                await self._client.delete(self.path)
            except NoNodeError:
                pass
            except NotEmptyError:
                if not entries:
                    # What is below it is none of ours.
                    raise
                continue
            return

    async def _delete_some(self, entries: Sequence[Numbered]) -> None:
        answers = await asyncio.gather(
            *(self._client.delete(child(self.path, one.name)) for one in entries),
            return_exceptions=True,
        )
        for answer in answers:
            if answer is not None and not isinstance(answer, NoNodeError):
                raise answer


class _Writing:
    """Nodes that are made together below another one, and known again by their mark."""

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
        """Make them; give them in their order."""
        lost: ConnectionLostError | None = None
        for _ in range(_ATTEMPTS_MAX):
            try:
                return self._own(await self._submit(data))
            except ConnectionLostError as error:
                lost = error
                found = await until_answered(self._client, self._find)
                if found is None:
                    break
                if found:
                    return found
            except NotReadOnlyError:
                await wait_writable(self._client)
            except TransactionFailedError as error:
                await self._mend(error.cause or error)
        raise ConnectionLostError("append", self._above) from lost

    async def _submit(self, data: Sequence[bytes]) -> list[str]:
        transaction = _begin(self._client, self._grant)
        if self._kind == ENTRY:
            transaction.check(self._above, version=_OPEN)
        for one in data:
            path = child(self._above, self._mark + self._kind)
            transaction.create(path, one, acl=self._acl, sequential=True)
        paths = [result for result in await transaction.commit() if result is not None]
        return [path[path.rfind("/") + 1 :] for path in paths]

    async def _find(self) -> list[Numbered] | None:
        """Give what there is of them; None if nobody can know whether there were any."""
        # The server we are attached to now may be behind the one that took our request.
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
        """Tell whether it is about our nodes, and not about those that stand for the grant."""
        return why.path is not None and f"{why.path}/".startswith(child(self._above, ""))

    async def _mend(self, why: ServiceError) -> None:
        """Do something about a refusal, or raise what it means."""
        if not self._is_here(why):
            raise _deposed(why, self._grant)
        if self._kind == CHANNEL and isinstance(why, NoNodeError):
            await make_node(self._client, self._above)
        elif isinstance(why, BadVersionError | NoNodeError):
            raise ChannelClosedError(f"{self._above}: the channel takes no more entries")
        else:
            raise why


def _begin(client: Client, grant: Grant | None) -> Transaction:
    return client.transaction() if grant is None else grant.guard()


def _deposed(why: ServiceError, grant: Grant | None) -> Exception:
    return why if grant is None else grant.lost()


async def _names(client: Client, path: str) -> list[str]:
    async def names() -> list[str]:
        try:
            return await client.children(path)
        except NoNodeError:
            return []

    return await until_answered(client, names)
