"""Read-write lock: many readers or one writer, in the order in which they came.

    lock = ReadWriteLock(client, "/locks/catalogue")
    async with lock.read as grant:
        print(grant.is_held)  # True
    async with lock.write as grant:
        token = grant.token  # larger than that of every holder before

It is FIFO: readers behind a waiting writer wait for it, so neither writers nor readers starve. It
has no herd effect: a writer watches the contender before it, a reader the last writer before it.
Guaranteed is the service's order: a writer's grant begins after the nodes of all before it have
gone, a reader's after those of all writers before it, and its token is larger than theirs. A write
under `grant.guard()` fails from the moment a conflicting grant begins.

* Downgrade: the holder of the write lock may acquire the read lock of the same `ReadWriteLock`, at
  once, before it releases the write lock; nobody writes in between. Its token stays the writer's.
* Upgrade: a reader would wait for itself as a writer, so that raises LockStateError.
* Suspension (the connection is lost): the holder is told and goes on, a waiter keeps its place.
* Expiry, or nothing heard for a session timeout: the holder's scope cancels its body and raises
  GrantLostError; a waiter gets SessionExpiredError.
* Cancellation: a cancelled waiter or holder leaves the line. Its node is deleted in the background
  for as long as that takes, so it never blocks the others.
* Never promised: that a writer is alone by the clock (`paddock.recipes.locks.lock` says why).

The nodes are named as those of Curator's InterProcessReadWriteLock, so both can stand in one line.
With `layout="kazoo"` they are named as those of kazoo's ReadLock and WriteLock.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from paddock.client.client import Client
from paddock.errors import LockStateError, NodeExistsError, TransactionFailedError
from paddock.layouts import KAZOO_LOCK, KAZOO_READ, READ, WRITE, place_name
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.common.retry import delete_if_exists, retry
from paddock.recipes.locks.grant import Grant
from paddock.recipes.locks.holder import Contending, Holder
from paddock.recipes.locks.line import Contender, Entry, LayoutName, Line, Place
from paddock.recipes.locks.revocation import ask, check_own_data


class _Kinds(NamedTuple):
    """The parts of contenders' names before the number."""

    read: str
    write: str


# As in Curator's lock and in kazoo's.
_KINDS: Final[dict[LayoutName, _Kinds]] = {
    "curator": _Kinds(READ, WRITE),
    "kazoo": _Kinds(KAZOO_READ, KAZOO_LOCK),
}
_WRITERS: Final = frozenset(kinds.write for kinds in _KINDS.values())


class ReadWriteLock:
    """A lock that many can hold to read, or one to write.

        lock = ReadWriteLock(client, "/locks/catalogue", data=b"worker 7")
        async with lock.write:
            reading = await lock.read.acquire()
        print(reading.is_held)  # True
        await reading.release()

    It is one contender, with one place for each side. Others find `data` there. `layout` is for a
    path at which programs with kazoo's ReadLock or WriteLock contend, too; then `data` is UTF-8.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
        layout: LayoutName = "curator",
    ) -> None:
        line = Line(client, path, _KINDS.get(layout, ()), data, acl, layout=layout)
        check_own_data(data)
        # Held by many, as long as nobody holds the other.
        self.read: ReadLock = ReadLock(self, line)
        # Held by one, as long as nobody else holds either.
        self.write: WriteLock = WriteLock(self, line)

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {self.read} {self.write}>"


class _Side(Holder):
    """One side of a read-write lock."""

    def __init__(self, whole: ReadWriteLock, line: Line) -> None:
        super().__init__(line.client, line.path)
        self._whole = whole
        self._line = line
        self._kinds = _KINDS[line.layout]

    async def ask_to_release(self) -> list[Contender]:
        """Ask those who hold it, and so keep us out, to let go; return those who were asked.

        A reader asks a writer, a writer asks another writer or all readers. They learn of our
        `data` and of our session, by `asked` of their grants, and decide: they may go on. Holders
        of Curator's learn only that they are asked, if they listen. Raises NoAuthError if the ACL
        of a holder's node does not permit it, and UsageError in kazoo's layout, which has no such
        thing.
        """
        places = [side._place for side in (self._whole.read, self._whole.write) if side._place]
        holders = self._keeping_out(await self._line.entries())
        return await ask(
            self._line,
            [one for one in holders if not any(place.is_own(one.name) for place in places)],
        )

    def _keeping_out(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        """Return the holders that exclude this side."""
        raise NotImplementedError


class ReadLock(_Side):
    """The side of a read-write lock for readers."""

    def _new_place(self) -> Place | _DowngradedPlace:
        writing = self._whole.write
        if writing._grant is not None and writing.is_held:
            return _DowngradedPlace(self._line, self._kinds, writing._grant)
        return self._line.new_place(self._kinds.read, _last_writer, is_revocable=True)

    def _keeping_out(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        holders = _holders(entries)
        return holders if any(entry.kind in _WRITERS for entry in holders) else ()

    def _grant_of(self, place: Contending) -> Grant:
        if isinstance(place, _DowngradedPlace):
            # The next writer's node may be older than this one, and must have a larger token.
            return Grant(place, token=place.writing.token)
        return super()._grant_of(place)


class WriteLock(_Side):
    """The side of a read-write lock for writers."""

    def _new_place(self) -> Place:
        if self._whole.read.is_held:
            raise LockStateError(
                f"{self.path}: it is held to read, and would wait for itself to write; release it"
            )
        return self._line.new_place(self._kinds.write, is_revocable=True)

    def _keeping_out(self, entries: Sequence[Entry]) -> Sequence[Entry]:
        return _holders(entries)


def _last_writer(before: Sequence[Entry]) -> Entry | None:
    """Return the contender that a reader waits for."""
    return next((entry for entry in reversed(before) if entry.kind in _WRITERS), None)


def _holders(entries: Sequence[Entry]) -> Sequence[Entry]:
    """Return those who hold it: all readers before the first writer, or else that writer."""
    writer = next((entry for entry in entries if entry.kind in _WRITERS), None)
    if writer is None:
        return entries
    # A writer that reads as well has two nodes with one number.
    readers = entries[: entries.index(writer)]
    if any(reader.number != writer.number for reader in readers):
        return readers
    return [entry for entry in entries if entry.number == writer.number]


class _DowngradedPlace(Contending):
    """The place of a writer that goes on as a reader: its own, not at the end of the line.

    The writer behind it has to wait for the reader, too, so the reader's node has the number of the
    writer's. It is created in a transaction that checks the latter: if that is gone, another writer
    may have begun.
    """

    def __init__(self, line: Line, kinds: _Kinds, writing: Grant) -> None:
        number = writing.path.rpartition(kinds.write)[2]
        name = place_name(line.layout, line.client.new_mark(), kinds.read) + number
        super().__init__(line.client, child_path(line.path, name))
        self.is_revocable = True
        self.line = line
        self.writing = writing

    async def enter(self) -> None:
        """Create the node. Whatever is raised, `leave` has to follow."""
        self.token = await retry(self.client, self._create)

    async def reach(self) -> None:
        """Go on: nobody is before a writer."""

    async def is_reached(self) -> bool:
        """Return that it is held."""
        return True

    async def _create(self) -> int:
        """Create the node, unless a request whose reply was lost has; return its token."""
        transaction = self.writing.guard()
        transaction.create(self.path, self.line.data, acl=self.line.acl, ephemeral=True)
        try:
            await transaction.commit()
        except TransactionFailedError as failed:
            of_the_check, of_the_create = failed.results
            if of_the_check is not None:
                raise self.writing.lost() from failed
            if not isinstance(of_the_create, NodeExistsError):
                raise
        stat = await self.client.exists(self.path)
        if stat is None:
            raise LockStateError(f"{self.path}: our place in the line was deleted")
        return stat.czxid

    async def _delete(self) -> None:
        await delete_if_exists(self.client, self.path)
