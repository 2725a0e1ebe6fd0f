"""The log that several servers share, in etcd.

    log = EtcdLog(store, keys)
    await log.follow(listener, after=position)
    log.begin(boot)
    log.propose(0, payload)  # comes out by listener.committed, as all records do
    await log.close()

It has two halves that meet only when one of our own batches comes out: `proposals.py` appends, and
`follower.py` reads. What does not pass (another history, trimmed, forbidden) ends both: nothing is
proposed by a server that does not see what becomes of it. The store stays open; it is its maker's.
"""

from __future__ import annotations

import asyncio
from typing import Final

from paddock.log.etcd.figures import LogFigures
from paddock.log.etcd.follower import Follower
from paddock.log.etcd.history import History
from paddock.log.etcd.keys import BOOT_BYTES, Keys
from paddock.log.etcd.proposals import Proposals
from paddock.log.etcd.store import Store
from paddock.log.interface import LogError, Position, SharedListener

# More than this gain nothing: etcd's appends a second grow slower than their latency.
IN_FLIGHT_MAX: Final = 4


class EtcdLog:
    """A `SharedLog` on etcd."""

    def __init__(self, store: Store, keys: Keys, *, in_flight_max: int = IN_FLIGHT_MAX) -> None:
        self.figures = LogFigures()
        self._store = store
        self._keys = keys
        self._in_flight_max = in_flight_max
        self._history = History(store, keys)
        self._proposals = Proposals(store, self.figures, self._fail)
        self._follower: Follower | None = None
        self._following: asyncio.Task[None] | None = None
        self._is_closed = False

    @property
    def server(self) -> bytes:
        """The name under which this process proposes now; empty before `begin`."""
        return self._proposals.server

    @property
    def in_flight_max(self) -> int:
        """How many proposals should be under way."""
        return self._in_flight_max

    @property
    def last_index(self) -> int:
        """The highest index that is known to be in the log."""
        return self.figures.last_index

    @property
    def is_full(self) -> bool:
        """Whether etcd had no space when something was appended last."""
        return self.figures.is_full

    async def follow(self, listener: SharedListener, after: Position) -> None:
        """Tell the listener every record behind a position, and go on until `close`.

        Returns when all records are told that were committed before the call. Raises
        OtherHistoryError, TrimmedError, ForbiddenError; LogError if the log cannot be reached.
        A former listener is told nothing any more.
        """
        assert not self._is_closed
        await self._stop_following()
        follower = Follower(
            self._store,
            self._keys,
            self._history,
            self._proposals,
            self.figures,
            listener,
            after,
        )
        self._follower = follower
        self._following = asyncio.get_running_loop().create_task(self._run(follower))
        try:
            await follower.caught_up
        except asyncio.CancelledError:
            await self._stop_following()
            raise

    def begin(self, server: bytes) -> None:
        """Propose under a new name from now on. Nothing of the former one is repeated any more."""
        assert len(server) == BOOT_BYTES
        self._proposals.begin(server)

    def propose(self, number: int, payload: bytes) -> None:
        """Hand a batch to the log without blocking, and repeat it until it comes out."""
        assert self._follower is not None, "nobody would see it come out"
        self._proposals.propose(number, payload)

    def withdraw(self) -> None:
        """Repeat nothing any more; what is in flight may or may not be committed."""
        self._proposals.withdraw()

    async def close(self) -> None:
        """Follow no more, repeat nothing, and let go of everything."""
        self._is_closed = True
        await self._stop_following()
        await self._proposals.close()

    async def _stop_following(self) -> None:
        self._follower = None
        task, self._following = self._following, None
        if task is not None:
            task.cancel()
            await asyncio.wait((task,))

    async def _run(self, follower: Follower) -> None:
        try:
            await follower.run()
        except LogError as error:
            self._report(follower, error)
        except Exception as error:
            failure = LogError(f"the log cannot be followed: {error!r}")
            failure.__cause__ = error
            self._report(follower, failure)

    def _fail(self, error: LogError) -> None:
        """Take the news that our proposals cannot go on."""
        follower = self._follower
        if follower is not None:
            assert self._following is not None
            self._following.cancel()
            self._report(follower, error)

    def _report(self, follower: Follower, error: LogError) -> None:
        self._proposals.withdraw()
        if self._follower is not follower:
            return
        self._follower = None
        if follower.caught_up.done():
            follower.listener.failed(error)
        else:
            follower.caught_up.set_exception(error)
