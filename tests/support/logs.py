"""What tests of logs and servers share: outcomes by name, a listener that takes them down."""

from __future__ import annotations

import asyncio
import enum
from collections.abc import Callable

from paddock.log.interface import Log, Record
from paddock.server.durability.startup import restore_newest
from paddock.server.replication.replica import Replica
from paddock.server.statistics import Statistics
from paddock.state.watches import Watches
from paddock.storage.replay import Replay
from paddock.storage.snapshots import SnapshotStore


class Durability(enum.Enum):
    """What became of a proposal."""

    DURABLE = enum.auto()
    NOT_WRITTEN = enum.auto()
    UNKNOWN = enum.auto()


class Reports:
    """A listener that reports each proposal with its index, its outcome and the reason.

    Of a proposal that was not committed the index is the one that it would have had.
    """

    def __init__(self, log: Log, report: Callable[[int, Durability, str], object]) -> None:
        self._log = log
        self._report = report
        # Every record that was committed, in order.
        self.records: list[Record] = []
        # The numbers of what was refused.
        self.refusals: list[int] = []

    def committed(self, record: Record) -> None:
        self.records.append(record)
        if record.server is not None:
            self._report(record.index, Durability.DURABLE, "")

    def refused(self, number: int, reason: str) -> None:
        self.refusals.append(number)
        self._report(self._log.last_index + 1, Durability.NOT_WRITTEN, reason)

    def unknown(self, reason: str) -> None:
        self._report(self._log.last_index + 1, Durability.UNKNOWN, reason)


def recover_state(log: Log, store: SnapshotStore | None) -> Replay:
    """Bring a state to the end of a log, as a server does that starts."""

    async def start() -> Replay:
        restored = restore_newest(log, store)
        Replica(restored.replay, Watches(), Statistics()).follow(log)
        return restored.replay

    return asyncio.run(start())
