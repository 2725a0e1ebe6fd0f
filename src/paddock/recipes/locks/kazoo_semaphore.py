"""The layout of kazoo's Semaphore, for a path that programs with kazoo share with ours.

    /semaphores/printers                      its data are the number of leases
    /semaphores/printers/<32 digits>          a lease, ephemeral, with what its holder says
    /semaphores/printers-__lock__             the line of those who want one, in kazoo's layout

Only the first in the line adds a lease, and only while there are fewer than allowed; all children
count, whatever their names. We add ours in one transaction with a check of our place in the line:
so nobody else was the first when it was added. All have to agree on the number of leases, by the
data of the node, as with kazoo.
"""

from __future__ import annotations

from paddock.client.client import Client
from paddock.client.observer import WaitObserver
from paddock.errors import (
    LockStateError,
    NodeExistsError,
    NoNodeError,
    TransactionFailedError,
)
from paddock.layouts import KAZOO_LOCK
from paddock.protocol.paths import child_path
from paddock.recipes.common.retry import (
    Signal,
    delete_if_exists,
    list_children,
    read_node,
    request_each,
    retry,
    watch_signal,
)
from paddock.recipes.locks.holder import Contending
from paddock.recipes.locks.line import Contender, Line, contender_of, mixed_layouts


def line_path(path: str) -> str:
    """Return where kazoo has the line of a semaphore."""
    return f"{path}-{KAZOO_LOCK}"


async def lease_holders(client: Client, path: str) -> list[Contender]:
    """Return all who hold a lease of the semaphore at a path, in the order in which they got it."""
    names = await retry(client, lambda: list_children(client, path))
    paths = [child_path(path, name) for name in names]
    found = await retry(client, lambda: request_each(client.get, paths))
    holders = [contender_of(path, node) for path, node in found.items()]
    return sorted(holders, key=lambda one: one.token)


class KazooSemaphorePlace(Contending):
    """One lease, from a place in the line to a node among the leases."""

    def __init__(self, line: Line, path: str, count: int) -> None:
        # The path is that of the lease.
        super().__init__(line.client, child_path(path, line.client.new_mark()))
        self._line = line
        self._pool = path
        self._count = count
        self._turn = line.new_place(KAZOO_LOCK)
        # Which of the two may have a node.
        self._is_in_line = False
        self._has_lease = False

    async def enter(self) -> None:
        """Stand at the end of the line. Whatever is raised, `leave` has to follow."""
        await retry(self.client, self._prepare)
        self._is_in_line = True
        await self._turn.enter()

    async def reach(self) -> None:
        """Wait until a lease is ours; raise LockStateError if our place in the line was deleted."""
        await self._turn.reach()
        with watch_signal(self.client) as signal:
            while not await self._take(signal):
                await signal.wait()
                self.tell_woken(signal.zxid)
        self._pass_on()

    def observe(self, wait: WaitObserver) -> None:
        super().observe(wait)
        self._turn.observe(wait)

    async def is_reached(self) -> bool:
        """Return whether a lease is ours now."""
        if not await self._turn.is_reached() or not await self._take():
            return False
        self._pass_on()
        return True

    def abandon(self, error: BaseException) -> None:
        self.blocked_by = self.blocked_by or self._turn.blocked_by
        super().abandon(error)

    async def leave(self) -> None:
        """Delete both nodes, even if the replies to their creates were lost."""
        try:
            if self._has_lease:
                await super().leave()
        finally:
            if self._is_in_line:
                await self._turn.leave()

    async def _delete(self) -> None:
        await delete_if_exists(self.client, self.path)

    async def _prepare(self) -> None:
        """Create the node above the leases, unless it exists; check the number in its data."""
        while (found := await read_node(self.client, self._pool)) is None:
            try:
                await self.client.create(self._pool, b"%d" % self._count, make_parents=True)
            except NodeExistsError:
                continue
        # kazoo writes the number a moment after the create, and ignores what is none.
        if found.data and found.data.isdigit() and int(found.data) != self._count:
            raise LockStateError(
                f"{self._pool}: it was made for {int(found.data)} leases, and we for {self._count}"
            )

    async def _take(self, watcher: Signal | None = None) -> bool:
        """Add our lease if there are fewer than allowed; the watcher is called when some go."""
        while True:
            names = await retry(
                self.client, lambda: list_children(self.client, self._pool, watcher)
            )
            foreign = next((name for name in names if name in ("leases", "locks")), None)
            if foreign is not None:
                raise mixed_layouts(child_path(self._pool, foreign), "kazoo")
            if len(names) >= self._count:
                self.blocked_by = f"{len(names)} holders, one is {names[0]}"
                self.tell_blocked(child_path(self._pool, names[0]))
                return False
            self._has_lease = True
            try:
                self.token = await retry(self.client, self._create)
                return True
            except NoNodeError:
                # Somebody has deleted the semaphore.
                await retry(self.client, self._prepare)

    async def _create(self) -> int:
        """Create our lease, unless a request whose reply was lost has; return its token."""
        transaction = self.client.transaction()
        transaction.check(self._turn.path)
        transaction.create(self.path, self._line.data, acl=self._line.acl, ephemeral=True)
        try:
            await transaction.commit()
        except TransactionFailedError as failed:
            of_the_check, of_the_create = failed.results
            if of_the_check is not None:
                raise LockStateError(
                    f"{self._turn.path}: our place in the line was deleted"
                ) from failed
            if isinstance(of_the_create, NoNodeError):
                raise of_the_create from failed
            if not isinstance(of_the_create, NodeExistsError):
                raise
        stat = await self.client.exists(self.path)
        if stat is None:
            raise LockStateError(f"{self.path}: our lease was deleted")
        return stat.czxid

    def _pass_on(self) -> None:
        """Leave the line to the next contender: from now on we have only our lease."""
        self._is_in_line = False
        self.client.start_task(self._turn.leave())
