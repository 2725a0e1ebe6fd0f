"""The line of contenders: one ephemeral sequential node each, the lowest number first.

A contender's `Place` begins before its node: the node's name has a mark that was chosen first, so
that leaving finds the node even if the reply to its create was lost. The names are those of
Curator's recipes, `_c_<mark>-lock-0000000007`, so both can stand in one line; or on request those
of kazoo's, `<mark>__lock__0000000007`. Contenders of both layouts in one line do not wait for each
other: where one finds the other, it leaves, and says so. All other nodes are ignored.

There is no herd effect: each contender watches only the one that it waits for.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_data
from paddock.client.results import Created, NodeData
from paddock.client.watches.watches import Watcher
from paddock.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    LockStateError,
    MixedLayoutsError,
    NoAuthError,
    NoNodeError,
    NotReadOnlyError,
    SessionExpiredError,
    SystemFailureError,
)
from paddock.layouts import (
    IN_BOTH_LAYOUTS,
    KAZOO,
    LAYOUT_NAMES,
    NUMBER,
    in_order,
    is_foreign,
    place_name,
    read_requests,
    unique_layout,
)
from paddock.protocol.acl import ACL
from paddock.protocol.paths import child_path
from paddock.recipes.common.departure import Departure
from paddock.recipes.common.retry import (
    RetryLimit,
    check_recipe,
    delete_if_exists,
    discard,
    list_children,
    make_container,
    make_node,
    name_of,
    request_each,
    retry,
    watch_signal,
    write_once,
)
from paddock.recipes.locks.holder import Contending

# How the nodes of contenders are named: as Curator does it, or as kazoo does.
LayoutName: TypeAlias = Literal["curator", "kazoo"]

# How much of a holder's data an error shows.
_SHOWN_BYTES: Final = 80


class Entry(NamedTuple):
    """A contender's node, by its name."""

    name: str
    # What it waits for, such as `lock-`.
    kind: str
    number: int


# Returns the contender to wait for, of those before a place; None: it is our turn.
FindBlocker: TypeAlias = Callable[[Sequence[Entry]], Entry | None]


def predecessor(before: Sequence[Entry]) -> Entry | None:
    """Return the last of those before: so one at a time has its turn."""
    return before[-1] if before else None


@dataclass(frozen=True, slots=True)
class Contender:
    """A contender in a line."""

    path: str
    #: What the contender says about itself.
    data: bytes
    #: The session that it belongs to.
    session_id: int
    #: Its fencing token, from when its turn comes.
    token: int


class Line:
    """All contenders for one thing."""

    def __init__(
        self,
        client: Client,
        path: str,
        kinds: Sequence[str],
        data: bytes,
        acl: Sequence[ACL],
        *,
        within: str | None = None,
        layout: LayoutName = "curator",
    ) -> None:
        check_recipe(client, path, acl)
        _check_layout(layout, checked_data(data))
        self.client = client
        self.path = path
        # A container for this line and others like it.
        self._within = within
        self.data = data
        self.acl = acl
        self.layout: LayoutName = layout
        self._has_other_layout = any(kind in IN_BOTH_LAYOUTS for kind in kinds)
        self._pattern = re.compile(rf"(?P<kind>{'|'.join(map(re.escape, kinds))}){NUMBER}")

    def new_place(
        self, kind: str, find_blocker: FindBlocker = predecessor, *, is_revocable: bool = False
    ) -> Place:
        """Return a place for a new contender."""
        place = Place(self, kind, find_blocker)
        place.is_revocable = is_revocable
        return place

    async def make(self) -> None:
        """Create the node above the contenders, unless it exists."""
        if self.layout == "kazoo":
            # kazoo creates it once, and fails if the service deletes it.
            await make_node(self.client, self.path)
            return
        if self._within is not None:
            await self._check_within(self._within)
            await make_container(self.client, self._within)
        await make_container(self.client, self.path)

    async def _check_within(self, path: str) -> None:
        """Raise MixedLayoutsError if kazoo's Semaphore has leases at a path."""
        names = await retry(self.client, lambda: list_children(self.client, path))
        lease = next((name for name in names if unique_layout(name) == KAZOO), None)
        if lease is not None:
            raise mixed_layouts(child_path(path, lease), self.layout)

    async def entries(self, watcher: Watcher | None = None) -> list[Entry]:
        """Return all who stand in the line, in order; the watcher is called when that changes."""
        return self.in_order(await self.names(watcher))

    async def names(self, watcher: Watcher | None = None) -> list[str]:
        """Return the names of all nodes at the line, in no particular order."""
        return await retry(self.client, lambda: list_children(self.client, self.path, watcher))

    async def contenders(self, entries: Sequence[Entry] | None = None) -> list[Contender]:
        """Return those who stand in the line, or some of them, in order, with their data."""
        if entries is None:
            entries = await self.entries()
        paths = [child_path(self.path, entry.name) for entry in entries]
        found = await retry(self.client, lambda: request_each(self.client.get, paths))
        return [contender_of(path, node) for path, node in found.items()]

    def in_order(self, names: Sequence[str]) -> list[Entry]:
        """Return the names that are contenders, in order."""
        found = in_order(names, self._pattern)
        return [Entry(one.string, one["kind"], int(one["number"])) for one in found]

    def check_layout(self, names: Sequence[str]) -> None:
        """Raise MixedLayoutsError if a contender has the other layout."""
        if not self._has_other_layout:
            return
        foreign = next((name for name in names if is_foreign(self.layout, name)), None)
        if foreign is not None:
            raise mixed_layouts(child_path(self.path, foreign), self.layout)


def mixed_layouts(path: str, ours: LayoutName) -> MixedLayoutsError:
    """Return the error for a node of others that is of the other layout."""
    theirs = "curator" if ours == "kazoo" else "kazoo"
    return MixedLayoutsError(
        f"{path}: its layout is {theirs}, ours is {ours}, so neither waits for the other; "
        f'ask for layout="{theirs}", or use another path'
    )


def contender_of(path: str, node: NodeData) -> Contender:
    """Return the contender that a node stands for."""
    own = read_requests(node.data).own
    return Contender(path, own, node.stat.ephemeral_owner, node.stat.czxid)


def _check_layout(layout: object, data: bytes | None) -> None:
    if layout not in LAYOUT_NAMES:
        raise InvalidArgumentError(f'layout: expected "curator" or "kazoo", not {layout!r}')
    if layout == "kazoo" and data:
        try:
            data.decode()
        except UnicodeDecodeError:
            # It would fail in `contenders` of kazoo, for all.
            raise InvalidArgumentError("data: kazoo reads it as UTF-8, and it is not") from None


class Place(Contending):
    """One contender's node, from before its create until it is surely gone."""

    def __init__(self, line: Line, kind: str, find_blocker: FindBlocker) -> None:
        super().__init__(line.client)
        self.line = line
        self.kind = kind
        self.find_blocker = find_blocker
        self._mark = line.client.new_mark()
        # The line right after we had entered it, until it was looked at.
        self._seen: list[str] | None = None

    @property
    def name(self) -> str:
        return name_of(self.path)

    async def enter(self) -> None:
        """Stand at the end of the line. Whatever is raised, `leave` has to follow."""
        # It may be for the second time, after the node was deleted.
        self.path, self._seen = "", None
        # In the same batch: the list costs no round trip of its own.
        with self.client.together():
            asked = self._ask()
            listed = self.client.children(self.line.path)
        try:
            # The last answer first, so that we are woken once.
            try:
                seen = await listed
            except (NoNodeError, ConnectionLostError):
                # Asked before there was a line, or lost with the connection.
                seen = None
            try:
                self.path, stat = await asked
            except (NoNodeError, NotReadOnlyError, ConnectionLostError):
                self.path, stat = await self._complete(asked)
            self.token, self._seen = stat.czxid, seen
        except BaseException:
            if asked.done() and not asked.cancelled() and asked.exception() is None:
                # Then leaving need not look for it.
                self.path = asked.result().path
            discard(asked)
            discard(listed)
            raise

    async def reach(self) -> None:
        """Wait until it is our turn; raise LockStateError if our node was deleted."""
        if self._seen == [self.name]:
            # The common case: there is no other contender.
            return
        while (ahead := await self.look()) is not None:
            await self.wait_gone(ahead)

    async def look(self) -> Entry | None:
        """Return the contender to wait for; raise LockStateError if our node was deleted."""
        before = await self.before()
        if before:
            self.blocked_by = child_path(self.line.path, before[0].name)
        return self.find_blocker(before)

    async def is_reached(self) -> bool:
        """Return whether it is our turn."""
        return await self.look() is None

    async def before(self, watcher: Watcher | None = None) -> list[Entry]:
        """Return those before us; the watcher is called when a contender comes or goes.

        Raises LockStateError if our node was deleted.
        """
        seen, self._seen = self._seen, None
        before = None if seen is None or watcher else self._cut(seen)
        if before is None:
            # The list that was requested with our create may have been answered before it.
            before = self._cut(await self.line.names(watcher))
        if before is None:
            raise LockStateError(f"{self.path}: our place in the line was deleted")
        return before

    async def wait_gone(self, entry: Entry) -> None:
        """Wait until a contender has left the line, or may have: then read the line again."""
        path = child_path(self.line.path, entry.name)

        async def watch() -> bool:
            try:
                # Not `exists`, which would leave a watch behind for a node that never comes back.
                data, stat = await self.client.get(path, watch=signal)
            except NoNodeError:
                return False
            except NoAuthError:
                self.tell_blocked(path)
                return await self.client.exists(path, watch=signal) is not None
            self.tell_blocked(path, stat.ephemeral_owner)
            if path == self.blocked_by:
                own = read_requests(data).own
                said = f", {own[:_SHOWN_BYTES]!r}" if own else ""
                self.blocked_by = f"{path} of session 0x{stat.ephemeral_owner:x}{said}"
            return True

        with watch_signal(self.client) as signal:
            if await retry(self.client, watch):
                await signal.wait()
                self.tell_woken(signal.zxid)

    def is_own(self, name: str) -> bool:
        # Also before the reply to our create.
        return self._mark in name

    def begin_to_leave(self) -> Departure:
        """Send the delete at once; a task is needed only if that fails."""
        if not self.path:
            return super().begin_to_leave()
        asked = self.client.delete(self.path)
        departure = Departure(asked.get_loop())

        def on_answer(asked: asyncio.Future[None]) -> None:
            error = asked.exception()
            if error is None or isinstance(error, NoNodeError | SessionExpiredError):
                # In each case it is gone.
                departure.end()
            elif isinstance(error, ConnectionLostError | NotReadOnlyError):
                self.client.start_task(self.leave()).add_done_callback(departure.end_with)
            else:
                if isinstance(error, SystemFailureError):
                    self.leave_later()
                departure.end(error)

        asked.add_done_callback(on_answer)
        return departure

    def _ask(self) -> asyncio.Future[Created]:
        # As a rule the name of a protected create. We look for the node ourselves if the reply is
        # lost, so the client need not start a task for it.
        name = place_name(self.line.layout, self._mark, self.kind)
        return self.client.create_with_stat(
            child_path(self.line.path, name),
            self.line.data,
            acl=self.line.acl,
            ephemeral=True,
            sequential=True,
        )

    async def _complete(self, asked: asyncio.Future[Created]) -> Created:
        pending = [asked]

        async def create() -> Created:
            while True:
                try:
                    return await (pending.pop() if pending else self._ask())
                except NoNodeError:
                    await self.line.make()

        def find(_: ConnectionLostError) -> Awaitable[Created | None]:
            return retry(self.client, self._find)

        return await write_once(self.client, create, find, RetryLimit())

    async def _find(self) -> Created | None:
        for path in await self._own_paths():
            stat = await self.client.exists(path)
            if stat is not None:
                return Created(path, stat)
        return None

    async def _own_paths(self) -> list[str]:
        """Return the nodes with our mark: as a rule one or none."""
        # This server may be behind the one that took our request.
        await self.client.sync(self.line.path)
        names = await list_children(self.client, self.line.path)
        return [child_path(self.line.path, name) for name in names if self._mark in name]

    def _cut(self, names: list[str]) -> list[Entry] | None:
        """Return those before us; None if we are not there."""
        entries = self.line.in_order(names)
        if len(entries) < len(names):
            self.line.check_layout(names)
        before = [entry.name for entry in entries]
        return entries[: before.index(self.name)] if self.name in before else None

    async def _delete(self) -> None:
        for path in [self.path] if self.path else await self._own_paths():
            await delete_if_exists(self.client, path)
