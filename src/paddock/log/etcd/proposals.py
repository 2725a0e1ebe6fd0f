"""Our own batches on their way into the shared log.

* An append is repeated until its batch comes out of the log: any error leaves its outcome unknown,
  and even an answer is no proof of what the log holds for others. One that was answered is in the
  log, and is not sent again.
* What cannot pass (too large, not permitted) fails the log at once: a missing number would hold up
  everything behind it.
* What comes out under our name must be what we proposed; anything else is by a clone of us.
* Nothing of a name is sent after `withdraw`.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from paddock.log.etcd.figures import LogFigures
from paddock.log.etcd.store import Store, StoreError, StoreFullError
from paddock.log.interface import ForbiddenError, LogError, Record

# Between two attempts, besides the time that etcd takes to fail. A lease waits for this when an
# election is over, so it is short; the store itself goes easy on members that cannot be reached.
PAUSE_S_MIN: Final = 0.02
PAUSE_S_MAX: Final = 0.1
# The same while etcd is full.
FULL_PAUSE_S: Final = 1.0

_logger = logging.getLogger(__name__)


@dataclass(slots=True, eq=False)
class _Proposal:
    number: int
    payload: bytes
    sent_at: float
    # When etcd said that it is in the log; None before.
    answered_at: float | None = None


class Proposals:
    """The batches of one server that have not come out of the log yet."""

    def __init__(
        self, store: Store, figures: LogFigures, failed: Callable[[LogError], None]
    ) -> None:
        # The name that we propose under; empty if we do not.
        self.server = b""
        self._store = store
        self._figures = figures
        self._failed = failed
        self._highest = -1
        # By number. A proposal leaves when it comes out of the log, or is withdrawn.
        self._pending: dict[int, _Proposal] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    def begin(self, server: bytes) -> None:
        """Propose under a new name."""
        self.withdraw()
        self.server = server

    def propose(self, number: int, payload: bytes) -> None:
        assert self.server, "there is no name to propose under"
        assert number not in self._pending
        loop = asyncio.get_running_loop()
        proposal = _Proposal(number, payload, loop.time())
        self._pending[number] = proposal
        self._highest = max(self._highest, number)
        task = loop.create_task(self._repeat(self.server, proposal))
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def arrived(self, record: Record) -> None:
        """Take note of a record. Raises ForbiddenError for one under our name that is not ours."""
        if record.server != self.server or not self.server:
            return
        proposal = self._pending.pop(record.number, None)
        if proposal is None:
            # One that was repeated, and carried out again after the first was trimmed, is ours.
            is_ours = record.number <= self._highest
        else:
            is_ours = proposal.payload == record.payload
            self._figures.commit_s = asyncio.get_running_loop().time() - proposal.sent_at
        if not is_ours:
            raise ForbiddenError(
                f"batch {record.number} of this server ({self.server.hex()}) is in the log with"
                " other contents: a clone of this process, or of its machine, runs elsewhere."
                " Stop it, and start this server again."
            )

    def answered_at(self) -> float | None:
        """Return since when a batch should have come out of the log; None if none should."""
        answered = [
            one.answered_at for one in self._pending.values() if one.answered_at is not None
        ]
        return min(answered, default=None)

    def withdraw(self) -> None:
        """Send nothing of the present name any more."""
        self.server = b""
        self._highest = -1
        self._pending.clear()
        for task in self._tasks:
            task.cancel()

    async def close(self) -> None:
        self.withdraw()
        while self._tasks:
            await asyncio.wait(self._tasks)

    async def _repeat(self, server: bytes, proposal: _Proposal) -> None:
        pause_s = PAUSE_S_MIN
        figures = self._figures
        while self._pending.get(proposal.number) is proposal:
            try:
                await self._store.append(server, proposal.number, proposal.payload)
            except ForbiddenError as error:
                figures.errors += 1
                if self._pending.get(proposal.number) is proposal:
                    self._failed(error)
                return
            except StoreFullError as error:
                if not figures.is_full:
                    _logger.warning("etcd is full: nothing can be written: %s", error)
                figures.is_full = True
                figures.errors += 1
                await asyncio.sleep(FULL_PAUSE_S)
            except StoreError as error:
                figures.errors += 1
                _logger.debug("batch %d is sent again: %s", proposal.number, error)
                await asyncio.sleep(pause_s)
                pause_s = min(2 * pause_s, PAUSE_S_MAX)
            else:
                if figures.is_full:
                    _logger.info("etcd has space again")
                figures.is_full = False
                proposal.answered_at = asyncio.get_running_loop().time()
                return

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            failure = LogError(f"a batch cannot be proposed: {error!r}")
            failure.__cause__ = error
            self._failed(failure)
