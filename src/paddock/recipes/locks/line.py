"""The line that contenders stand in: one ephemeral sequential node each, the lowest number first.

A contender's `Place` begins before its node does: the node's name has a mark that was chosen first,
so that whoever leaves finds the node even if the reply to its create never came. The names are
those that Curator's recipes use, `_c_<mark>-lock-0000000007`, so both can stand in one line;
whatever else is below the line's node is somebody else's business.

Nobody looks at more than one other contender at a time: each watches the one that it waits for, and
looks again when that one has gone.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, TypeAlias

from paddock.client.client import Client
from paddock.client.operations.compound import PROTECTION_PREFIX
from paddock.client.requests.arguments import checked_acl, checked_data, checked_path
from paddock.client.results import Created
from paddock.client.watches.watches import Watcher
from paddock.errors import (
    ConnectionLostError,
    LockStateError,
    NoAuthError,
    NoNodeError,
    NotReadOnlyError,
    SessionExpiredError,
)
from paddock.protocol.acl import ACL
from paddock.recipes.common.retry import (
    Departure,
    Leaver,
    Losses,
    Signal,
    child,
    discard,
    make_container,
    until_answered,
    wait_writable,
)
from paddock.recipes.common.sequence import NUMBER, Order


class Entry(NamedTuple):
    """A contender's node, by its name."""

    name: str
    # What it waits for, such as `lock-`.
    kind: str
    number: int


# Gives the one to wait for, of those that stand before a contender; None: it is our turn.
Obstacle: TypeAlias = Callable[[Sequence[Entry]], Entry | None]


def the_one_before(before: Sequence[Entry]) -> Entry | None:
    """Give the last of those that stand before: then one at a time has its turn."""
    return before[-1] if before else None


@dataclass(frozen=True, slots=True)
class Contender:
    """Somebody who stands in a line, as everybody can see it."""

    path: str
    #: What the contender says about itself.
    data: bytes
    #: The session that it belongs to.
    session_id: int
    #: The fencing token that it has, or will have when its turn comes.
    token: int


class Line:
    """All who want the same thing."""

    def __init__(
        self,
        client: Client,
        path: str,
        kinds: Sequence[str],
        data: bytes,
        acl: Sequence[ACL],
        *,
        within: str | None = None,
    ) -> None:
        checked_path(path)
        checked_data(data)
        checked_acl(acl)
        self.client = client
        self.path = path
        # A node that is there only for this line and its like, and goes with the last of them.
        self._within = within
        self.data = data
        self.acl = acl
        self._pattern = re.compile(
            rf"(?P<kind>{'|'.join(map(re.escape, kinds))})(?P<number>{NUMBER})"
        )

    def new_place(self, kind: str, obstacle: Obstacle = the_one_before) -> Place:
        """Give a place that nobody has taken yet, for somebody whom others are in the way of."""
        return Place(self, kind, obstacle)

    async def make(self) -> None:
        """Make the node that contenders stand under; that it is there is fine."""
        if self._within is not None:
            await make_container(self.client, self._within)
        await make_container(self.client, self.path)

    async def entries(self, watcher: Watcher | None = None) -> list[Entry]:
        """Give all who stand in the line, in their order; the watcher hears when that changes."""
        return self.in_order(await until_answered(self.client, lambda: self._names(watcher)))

    async def contenders(self, entries: Sequence[Entry] | None = None) -> list[Contender]:
        """Give those who stand in the line, or some, in order, with what they say of themselves."""
        if entries is None:
            entries = await self.entries()
        paths = [child(self.path, entry.name) for entry in entries]

        async def read() -> list[Contender]:
            answers = await asyncio.gather(
                *(self.client.get(path) for path in paths), return_exceptions=True
            )
            found = []
            for path, answer in zip(paths, answers, strict=True):
                if isinstance(answer, NoNodeError):
                    continue
                if isinstance(answer, BaseException):
                    raise answer
                data, stat = answer
                found.append(Contender(path, data, stat.ephemeral_owner, stat.czxid))
            return found

        return await until_answered(self.client, read)

    def in_order(self, names: Sequence[str]) -> list[Entry]:
        """Give those of some names that stand in the line, in their order."""
        entries = []
        for name in names:
            found = self._pattern.search(name)
            if found is not None and found.end() == len(name):
                entries.append(Entry(name, found["kind"], int(found["number"])))
        if len(entries) < 2:
            return entries
        order = Order([entry.number for entry in entries])
        return sorted(entries, key=lambda entry: order.rank(entry.number))

    async def _names(self, watcher: Watcher | None) -> list[str]:
        try:
            return await self.client.children(self.path, watch=watcher)
        except NoNodeError:
            return []


class Place(Leaver):
    """One contender's node, from before its create until it is surely gone."""

    def __init__(self, line: Line, kind: str, obstacle: Obstacle) -> None:
        self.client = line.client
        self.line = line
        self.kind = kind
        self.obstacle = obstacle
        # Its path and the zxid of its creation, once we have seen it.
        self.path = ""
        self.token = 0
        self._mark = line.client.new_mark()
        # Who stood in the line right after we had entered it, until somebody has looked at it.
        self._seen: list[str] | None = None

    @property
    def guarded(self) -> Sequence[str]:
        """What a guarded write checks."""
        return (self.path,)

    @property
    def name(self) -> str:
        return self.path[self.path.rfind("/") + 1 :]

    async def enter(self) -> None:
        """Stand at the end of the line. Whatever is raised, `leave` has to follow."""
        # It may be for the second time, with a node that is gone.
        self.path, self._seen = "", None
        # In the same write: what we see behind our own node costs no round trip of its own.
        with self.client.together():
            asked = self._ask()
            listed = self.client.children(self.line.path)
        try:
            # First for what is answered last, so that we are woken once.
            try:
                seen = await listed
            except (NoNodeError, ConnectionLostError):
                # Asked before there was a line, or lost with the connection.
                seen = None
            try:
                self.path, stat = await asked
            except (NoNodeError, NotReadOnlyError, ConnectionLostError):
                self.path, stat = await self._see_through(asked)
            self.token, self._seen = stat.czxid, seen
        except BaseException:
            if asked.done() and not asked.cancelled() and asked.exception() is None:
                # Whoever leaves need not look for it.
                self.path = asked.result().path
            discard(asked)
            discard(listed)
            raise

    async def reach(self) -> None:
        """Wait until nobody is in our way; raises LockStateError if our node was deleted."""
        if self._seen == [self.name]:
            # As it is as a rule: nobody else is there.
            return
        while (ahead := await self.look()) is not None:
            await self.wait_gone(ahead)

    async def look(self) -> Entry | None:
        """Give the one that is in our way now; raises LockStateError if our node was deleted."""
        return self.obstacle(await self.before())

    async def is_reached(self) -> bool:
        """Tell whether nobody is in our way now."""
        return await self.look() is None

    async def before(self, watcher: Watcher | None = None) -> list[Entry]:
        """Give those who stand before us; the watcher hears when anybody comes or goes.

        Raises LockStateError if our node was deleted.
        """
        seen, self._seen = self._seen, None
        before = None
        if seen is not None and watcher is None:
            before = self._cut(self.line.in_order(seen))
        if before is None:
            # What was asked together with our create may have been answered before it.
            before = self._cut(await self.line.entries(watcher))
        if before is None:
            raise LockStateError(f"{self.path}: our place in the line was deleted by somebody")
        return before

    async def wait_gone(self, entry: Entry) -> None:
        """Wait until somebody has left the line, or may have: then it is time to look again."""
        path = child(self.line.path, entry.name)
        signal = Signal()

        async def watch() -> bool:
            try:
                # Not `exists`, which would leave a watch behind for a node that never comes back.
                await self.client.get(path, watch=signal)
            except NoNodeError:
                return False
            except NoAuthError:
                return await self.client.exists(path, watch=signal) is not None
            return True

        try:
            if await until_answered(self.client, watch):
                await signal.wait()
        finally:
            self.client.forget_watcher(signal)

    async def leave(self) -> None:
        """Delete our node, wherever our create has got to; ends when it is gone, or the session is.

        It is to be run by a task of the client's, since it has to go on if its caller is cancelled.
        """
        try:
            await until_answered(self.client, self._delete)
        except SessionExpiredError:
            # And with it the node.
            pass

    def begin_to_leave(self) -> Departure:
        """Ask at once that our node be deleted; a task is needed only if that does not come off."""
        if not self.path:
            return super().begin_to_leave()
        asked = self.client.delete(self.path)
        departure = Departure(asked.get_loop())

        def on_answer(asked: asyncio.Future[None]) -> None:
            error = asked.exception()
            if error is None or isinstance(error, NoNodeError | SessionExpiredError):
                # Whichever it was, it is gone.
                departure.end()
            elif isinstance(error, ConnectionLostError | NotReadOnlyError):
                self.client.start_task(self.leave()).add_done_callback(departure.end_with)
            else:
                departure.end(error)

        asked.add_done_callback(on_answer)
        return departure

    def _ask(self) -> asyncio.Future[Created]:
        # The name of a protected create. It is we who look for the node if the reply is lost, so
        # there is no need for a task of the client's that does.
        name = f"{PROTECTION_PREFIX}{self._mark}-{self.kind}"
        return self.client.create_with_stat(
            child(self.line.path, name),
            self.line.data,
            acl=self.line.acl,
            ephemeral=True,
            sequential=True,
        )

    async def _see_through(self, asked: asyncio.Future[Created]) -> Created:
        losses = Losses()
        while True:
            try:
                return await asked
            except NoNodeError:
                await self.line.make()
            except NotReadOnlyError:
                await wait_writable(self.client)
            except ConnectionLostError as error:
                # Nobody looks for the node any more, so we do, whenever a server can be reached.
                found = await until_answered(self.client, self._find)
                if found is not None:
                    return found
                losses.add(error)
            asked = self._ask()

    async def _find(self) -> Created | None:
        for path in await self._own_paths():
            stat = await self.client.exists(path)
            if stat is not None:
                return Created(path, stat)
        return None

    async def _own_paths(self) -> list[str]:
        """Give the nodes with our mark: as a rule one or none."""
        # The server we are attached to now may be behind the one that took our request.
        await self.client.sync(self.line.path)
        try:
            names = await self.client.children(self.line.path)
        except NoNodeError:
            return []
        return [child(self.line.path, name) for name in names if self._mark in name]

    def _cut(self, entries: list[Entry]) -> list[Entry] | None:
        for position, entry in enumerate(entries):
            if entry.name == self.name:
                return entries[:position]
        return None

    async def _delete(self) -> None:
        for path in [self.path] if self.path else await self._own_paths():
            try:
                await self.client.delete(path)
            except NoNodeError:
                pass
