"""The blocking twin of `paddock.recipes.locks`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock import recipes
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes import (
    Contender,
    ElectionEvent,
    ElectionListener,
    GrantListener,
    LayoutName,
    ReleaseRequest,
)
from paddock.recipes.locks.grant import BaseGrant as AsyncBaseGrant
from paddock.recipes.locks.holder import BaseHolder as AsyncBaseHolder
from paddock.recipes.locks.holder import Holder as AsyncHolder
from paddock.sync.bridge import ScopedTwin, Twin
from paddock.sync.client import Client, Transaction
from paddock.sync.scopes import Scope
from paddock.sync.streams import Stream


class Election(ScopedTwin[recipes.Election]):
    """One candidate, which leads at most as long as the client's session lives.

        election = Election(client, "/election", data=b"worker 7")
        election.start()
        leadership = election.wait_leader()
        print(election.is_leader, leadership.is_held)  # True True
        election.stop()

    `with election` starts it, and stops it at the end. Others read `data` in `candidates`.
    `layout` is for a path at which programs with kazoo's Election stand, too; then `data` is UTF-8.
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
        self._make(
            "client",
            client,
            lambda bridge: recipes.Election(client._inner, path, data=data, acl=acl, layout=layout),
        )

    @property
    def is_leader(self) -> bool:
        """Whether we surely lead, at this moment."""
        return self._inner.is_leader

    def lead(self) -> Scope[Grant]:
        """Wait to be elected, and lead; the end of the scope steps down.

            with election.lead() as leadership:
                print(leadership.is_held)  # True

        When the leadership is lost, it tells its body when that leaves and raises GrantLostError.
        Raises SessionExpiredError; and LockStateError if it stands in the line already, or if our
        node was deleted while we waited.
        """
        return Scope(
            self._bridge.portal,
            self._bridge.run(self._inner.lead),
            lambda _one: Grant._of(self._bridge, _one),
        )

    def start(self) -> None:
        """Stand in the line from now on; returns when we do.

        After a leadership is lost, or stepped down from, we stand at the end of the line again.
        Raises SessionExpiredError, NoAuthError and the like; and LockStateError if we stand there
        already, or have stopped. If it is given up, the election is stopped.
        """
        self._bridge.call(self._inner.start)

    def wait_leader(self) -> Grant:
        """Wait until we lead; return the leadership.

        It may be called before `start`. Raises the error that the election has failed with, and
        LockStateError if it was stopped.
        """
        return Grant._of(self._bridge, self._bridge.call(self._inner.wait_leader))

    def stop(self) -> None:
        """Step down, or leave the line, for good; when this returns, our node is gone.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is given up, the node is deleted all the same. Stopping again does
        nothing. Raises LockStateError while a scope of `lead` is open.
        """
        self._bridge.call(self._inner.stop)

    def step_down(self) -> None:
        """Give up the leadership; when this returns, the next candidate leads or can.

        In the background we stand at the end of the line then. The body of a scope goes on, but
        leads no more. Raises LockStateError if we do not lead, but not if the leadership was lost.
        """
        self._bridge.call(self._inner.step_down)

    def leader(self) -> Contender | None:
        """Return the leader, or None if there is none."""
        return self._bridge.call(self._inner.leader)

    def candidates(self) -> list[Contender]:
        """Return all candidates, in order: the leader first."""
        return self._bridge.call(self._inner.candidates)

    def events(self) -> Stream[ElectionEvent]:
        """Return a stream of events: the last one, then every later one, until FAILED or STOPPED.

            election.start()
            for event in election.events():
                print(event)  # ...elected
                if event is ElectionEvent.ELECTED:
                    break

        For a slow reader, the last thousand are kept.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.events))

    def add_listener(self, listener: ElectionListener) -> None:
        """Call a function with every later event.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: ElectionListener) -> None:
        """Remove a listener, if it is there."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))


class BaseGrant(Twin[AsyncBaseGrant]):
    """The state of a grant, whatever is held, and its listeners."""

    @property
    def is_held(self) -> bool:
        """Whether it is surely held, at this moment."""
        return self._inner.is_held

    @property
    def is_lost(self) -> bool:
        """Whether it has ended before it was released."""
        return self._inner.is_lost

    @property
    def is_released(self) -> bool:
        """Whether it has been released."""
        return self._inner.is_released

    @property
    def asked(self) -> tuple[ReleaseRequest, ...]:
        """The requests to release it, the oldest first; a hundred are kept."""
        return self._inner.asked

    def check(self) -> None:
        """Raise GrantLostError unless it is surely held at this moment."""
        self._bridge.run(self._inner.check)

    def guard(self) -> Transaction:
        """Begin a transaction that only succeeds while this is held.

            with grant.guard() as transaction:
                transaction.set("/report", b"done")

        It begins with a check of each node that stands for the grant, whose result is None. Raises
        GrantLostError if it is lost already; the commit raises TransactionFailedError if the
        service finds that it is.
        """
        return Transaction._of(self._bridge, self._bridge.run(self._inner.guard))

    def fence(self, transaction: Transaction) -> None:
        """Make a transaction succeed only while this is held, in addition to its own checks.

        It adds the checks that `guard` begins with. Raises GrantLostError if it is lost already.
        """
        self._bridge.run(self._inner.fence, transaction._inner)

    def release(self) -> None:
        """Release it; when this returns, the next contender holds it or can.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is given up, the node is deleted all the same, as soon as a server can
        be reached. Releasing again, or after a loss, does nothing.
        """
        self._bridge.call(self._inner.release)

    def wait_over(self) -> None:
        """Wait until it is released or lost."""
        self._bridge.call(self._inner.wait_over)

    def wait_asked(self) -> tuple[ReleaseRequest, ...]:
        """Wait until somebody asks us to release it, or it is over; return the requests.

            grant = Lock(client, "/locks/report").acquire()
            Lock(client, "/locks/report", data=b"worker 9").ask_to_release()
            asked = grant.wait_asked()
            print(asked[0].data)  # b'worker 9'
            grant.release()

        It is up to us whether we release it. The grants of `Lock` and of both sides of a
        `ReadWriteLock` can be asked for.
        """
        return self._bridge.call(self._inner.wait_asked)

    def add_listener(self, listener: GrantListener) -> None:
        """Call a function with every later event of this grant.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: GrantListener) -> None:
        """Remove a listener, if it is there."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))


class Grant(BaseGrant):
    """Proof that something is held, until it is released or lost."""

    _inner: recipes.Grant

    @property
    def path(self) -> str:
        """The node that stands for it."""
        return self._inner.path

    @property
    def token(self) -> int:
        """The fencing token: it is larger for every later grant of the same thing."""
        return self._inner.token


class BaseHolder(Twin[AsyncBaseHolder]):
    """One contender for something: its grant, its scopes, its listeners."""

    @property
    def is_held(self) -> bool:
        """Whether we surely hold it, at this moment."""
        return self._inner.is_held

    def release(self) -> None:
        """Release what `acquire` returned; raises LockStateError if it is not held.

        If it was lost, there is nothing to release, and no error.
        """
        self._bridge.call(self._inner.release)

    def add_listener(self, listener: GrantListener) -> None:
        """Call a function when it is acquired, asked for, suspended, resumed, released or lost.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: GrantListener) -> None:
        """Remove a listener, if it is there."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))


class Holder(BaseHolder):
    """One contender for something that has a node of its own in the service."""

    _inner: AsyncHolder

    @property
    def client(self) -> Client:
        """The client whose session it is held by."""
        return Client._of(self._bridge, self._inner.client)

    @property
    def path(self) -> str:
        """Where it is."""
        return self._inner.path

    def acquire(self, *, timeout: float | None = None) -> Grant:
        """Wait until it is ours; the grant is to be released.

            grant = lock.acquire(timeout=10)
            grant.release()

        As a rule `with lock` is better, since leaving it says whether the grant was lost. Raises
        TimeoutError, which names the holder, after `timeout` seconds; SessionExpiredError; and
        LockStateError if it is ours already, or if our node was deleted while we waited, which is
        noticed when it is time to look at the line again.
        """
        return Grant._of(self._bridge, self._bridge.call(self._inner.acquire, timeout=timeout))

    def try_acquire(self) -> Grant | None:
        """Acquire it if that is possible at once; return None otherwise."""
        return (
            None
            if (_found := self._bridge.call(self._inner.try_acquire)) is None
            else Grant._of(self._bridge, _found)
        )

    def __enter__(self) -> Grant:
        return Grant._of(self._bridge, self._enter_scope(self._inner))


class Lease(Holder):
    """One contender for a lease.

        lease = Lease(client, "/leases/report", seconds=30)
        grant = lease.acquire()
        grant.renew()
        grant.release()

    Contenders need not agree on the seconds: those of the holder count.
    """

    _inner: recipes.Lease

    def __init__(
        self, client: Client, path: str, *, seconds: float, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: recipes.Lease(client._inner, path, seconds=seconds, acl=acl),
        )

    @property
    def seconds(self) -> float:
        """How long it is held without being renewed."""
        return self._inner.seconds

    def acquire(self, *, timeout: float | None = None) -> LeaseGrant:
        """Wait until it is ours; the grant is to be renewed or released.

        As a rule `with lease` is better, since leaving it says whether the grant was lost. A waiter
        that does not notice its turn for too long waits again, behind the others. Raises
        TimeoutError, which names the holder, after `timeout` seconds; SessionExpiredError; and
        LockStateError if it is ours already.
        """
        return LeaseGrant._of(self._bridge, self._bridge.call(self._inner.acquire, timeout=timeout))

    def try_acquire(self) -> LeaseGrant | None:
        """Acquire it if that is possible at once; return None otherwise."""
        return (
            None
            if (_found := self._bridge.call(self._inner.try_acquire)) is None
            else LeaseGrant._of(self._bridge, _found)
        )

    def __enter__(self) -> LeaseGrant:
        return LeaseGrant._of(self._bridge, self._enter_scope(self._inner))


class LeaseGrant(Grant):
    """Proof that a lease is held, for some more seconds."""

    _inner: recipes.LeaseGrant

    @property
    def remaining(self) -> float:
        """The seconds that are left, by our own clock, until it is renewed."""
        return self._inner.remaining

    def renew(self) -> None:
        """Hold it for as long again, counted from now; raises GrantLostError if it is too late."""
        self._bridge.call(self._inner.renew)


class Lock(Holder):
    """A fair lock, held at most as long as the client's session lives.

        lock = Lock(client, "/locks/report", data=b"worker 7")
        with lock as grant:
            print(grant.is_held)  # True

    A `Lock` object is one contender, with one place in the line. Acquiring it again while it is
    held raises LockStateError, unless it is `reentrant`: then it has to be released as often as it
    was acquired. Others read `data` in `contenders`, and in a request of ours to let go. `layout`
    is for a path at which programs with kazoo's Lock contend, too; then `data` is UTF-8.
    """

    _inner: recipes.Lock

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
        reentrant: bool = False,
        layout: LayoutName = "curator",
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: recipes.Lock(
                client._inner, path, data=data, acl=acl, reentrant=reentrant, layout=layout
            ),
        )

    def contenders(self) -> list[Contender]:
        """Return all who hold it or wait for it, in order: the holder first."""
        return self._bridge.call(self._inner.contenders)

    def ask_to_release(self) -> list[Contender]:
        """Ask the holder to let go; return it in a list, which is empty if nobody else holds it.

            lock.ask_to_release()
            grant = lock.acquire(timeout=10)

        The holder learns of our `data` and of our session, by `asked` of its grant, and decides: it
        may go on. A holder of Curator's learns only that it is asked, if it listens. After a
        release the next in line holds the lock, who was not asked. Raises NoAuthError if the ACL of
        the holder's node does not permit it, and UsageError in kazoo's layout, which has no such
        thing.
        """
        return self._bridge.call(self._inner.ask_to_release)


class SimpleMutex(Holder):
    """A lock that is one ephemeral node: its creator holds it, and all others race again.

        with SimpleMutex(client, "/mutexes", "report") as grant:
            print(grant.path)  # /mutexes/report

    It is not FIFO, and it has a herd effect: a release wakes every waiter. It is for few
    contenders, and where one path must show the holder. To free it by hand, delete the node beside
    it, with a mark in its name, first: it is what a guarded write of the holder checks.
    """

    _inner: recipes.SimpleMutex

    def __init__(
        self, client: Client, path: str, name: str, *, acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client", client, lambda bridge: recipes.SimpleMutex(client._inner, path, name, acl=acl)
        )


class MultiGrant(BaseGrant):
    """Proof that several locks are held, until they are released, or one of them is lost."""

    _inner: recipes.MultiGrant

    @property
    def paths(self) -> tuple[str, ...]:
        """The nodes that stand for it, in the order in which the locks were given."""
        return self._inner.paths

    @property
    def tokens(self) -> tuple[int, ...]:
        """The fencing tokens, in the same order: of each lock its own."""
        return self._inner.tokens


class MultiLock(BaseHolder):
    """Several locks that are held together.

        lock = MultiLock([Lock(client, "/locks/a"), Semaphore(client, "/locks/b", leases=3)])
        with lock as grant:
            print(grant.is_held, len(grant.tokens))  # True 2

    The locks are its own while it waits or holds: acquiring one of them beside it raises
    LockStateError, and releasing one ends the grant.
    """

    _inner: recipes.MultiLock

    def __init__(
        self, locks: Sequence[Lock | SimpleMutex | ReadLock | WriteLock | Semaphore]
    ) -> None:
        self._make(
            "locks", locks, lambda bridge: recipes.MultiLock([_one._inner for _one in locks])
        )

    def acquire(self, *, timeout: float | None = None) -> MultiGrant:
        """Wait until all are ours; the grant is to be released.

            grant = lock.acquire(timeout=10)
            grant.release()

        As a rule `with lock` is better, since leaving it says whether the grant was lost. Raises
        TimeoutError, which names a holder, after `timeout` seconds; SessionExpiredError; and
        LockStateError if one of them is ours already, or if our node was deleted while we waited.
        """
        return MultiGrant._of(self._bridge, self._bridge.call(self._inner.acquire, timeout=timeout))

    def try_acquire(self) -> MultiGrant | None:
        """Acquire all of them if that is possible at once; return None otherwise."""
        return (
            None
            if (_found := self._bridge.call(self._inner.try_acquire)) is None
            else MultiGrant._of(self._bridge, _found)
        )

    def __enter__(self) -> MultiGrant:
        return MultiGrant._of(self._bridge, self._enter_scope(self._inner))


class ReadLock(Holder):
    """The side of a read-write lock for readers."""

    _inner: recipes.ReadLock

    def ask_to_release(self) -> list[Contender]:
        """Ask those who hold it, and so keep us out, to let go; return those who were asked.

        A reader asks a writer, a writer asks another writer or all readers. They learn of our
        `data` and of our session, by `asked` of their grants, and decide: they may go on. Holders
        of Curator's learn only that they are asked, if they listen. Raises NoAuthError if the ACL
        of a holder's node does not permit it, and UsageError in kazoo's layout, which has no such
        thing.
        """
        return self._bridge.call(self._inner.ask_to_release)


class ReadWriteLock(Twin[recipes.ReadWriteLock]):
    """A lock that many can hold to read, or one to write.

        lock = ReadWriteLock(client, "/locks/catalogue", data=b"worker 7")
        with lock.write:
            reading = lock.read.acquire()
        print(reading.is_held)  # True
        reading.release()

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
        self._make(
            "client",
            client,
            lambda bridge: recipes.ReadWriteLock(
                client._inner, path, data=data, acl=acl, layout=layout
            ),
        )

    @property
    def read(self) -> ReadLock:
        """Held by many, as long as nobody holds the other."""
        return ReadLock._of(self._bridge, self._inner.read)

    @property
    def write(self) -> WriteLock:
        """Held by one, as long as nobody else holds either."""
        return WriteLock._of(self._bridge, self._inner.write)


class WriteLock(Holder):
    """The side of a read-write lock for writers."""

    _inner: recipes.WriteLock

    def ask_to_release(self) -> list[Contender]:
        """Ask those who hold it, and so keep us out, to let go; return those who were asked.

        A reader asks a writer, a writer asks another writer or all readers. They learn of our
        `data` and of our session, by `asked` of their grants, and decide: they may go on. Holders
        of Curator's learn only that they are asked, if they listen. Raises NoAuthError if the ACL
        of a holder's node does not permit it, and UsageError in kazoo's layout, which has no such
        thing.
        """
        return self._bridge.call(self._inner.ask_to_release)


class Semaphore(Holder):
    """One contender for a number of leases; it holds one at a time.

        semaphore = Semaphore(client, "/semaphores/printers", leases=3, data=b"worker 7")
        with semaphore as grant:
            print(len(semaphore.holders()))  # 1

    `try_acquire` returns None also while another contender is first in the line. Others read `data`
    in `holders`. `layout` is for a path at which programs with kazoo's Semaphore contend, too; then
    `data` is UTF-8.
    """

    _inner: recipes.Semaphore

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        leases: int,
        data: bytes = b"",
        acl: Sequence[ACL] = OPEN_TO_ALL,
        layout: LayoutName = "curator",
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: recipes.Semaphore(
                client._inner, path, leases=leases, data=data, acl=acl, layout=layout
            ),
        )

    def holders(self) -> list[Contender]:
        """Return all who hold a lease, in the order in which they got it."""
        return self._bridge.call(self._inner.holders)
