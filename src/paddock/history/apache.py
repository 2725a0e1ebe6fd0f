"""The history in a data folder of Apache ZooKeeper, of 3.4 to 3.9: snapshots and transaction logs.

What they do not hold, nobody can tell: who asked for a write beyond its session, reads, and what
was refused. The end of a session is the same transaction whether its client asked for it or a
server found it silent; but only a client numbers its requests.

* A snapshot was written while its server went on, so a state begins with it only behind all that it
  may hold.
* A snapshot does not say its time. The log does, if it has the snapshot's last transaction. Else it
  is not before the last write to a node, and not behind the next transaction.
* Where transactions are missing, zxids leave some out. From one epoch to the next they always do;
  there, and at the end of the log, a snapshot that was named after one of them shows it.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from paddock.errors import OK
from paddock.history.moment import BEGINNING, Moment, shown_time
from paddock.history.past import ENDED, OPENED, Gap, HistoryError, Nodes, Step
from paddock.state.machine import StateMachine
from paddock.upgrade.snapshot_file import read_snapshot
from paddock.upgrade.source import (
    Reading,
    find_logs,
    find_snapshots,
    finish,
    follows,
    machine_of,
    transactions,
)
from paddock.upgrade.state import ApacheState
from paddock.upgrade.stream import DamagedFileError
from paddock.upgrade.transaction import (
    Change,
    CloseSession,
    Create,
    Delete,
    Nothing,
    OpenSession,
    SetACL,
    SetData,
    Transaction,
)
from paddock.upgrade.transaction_log import TransactionLog

_NAMES: Final[dict[type[Change], str]] = {
    Create: "create",
    Delete: "delete",
    SetData: "set",
    SetACL: "set_acl",
    OpenSession: "create_session",
    CloseSession: "close_session",
    Nothing: "refused",
}

# What numbers the transactions of an epoch, in a zxid.
_COUNTER: Final = (1 << 32) - 1


class ApacheSource:
    """What a `zoo.cfg` calls dataDir and dataLogDir."""

    unknown = (
        "Apache's files do not say who a client was, from where it came, or why a session that"
        " expired was silent"
    )

    def __init__(self, data: Path, log: Path | None = None) -> None:
        self._data = data
        self._log = data if log is None else log
        self._is_log_named = log is not None

    def begin(self, moment: Moment) -> ApachePast:
        snapshots, logs = find_snapshots(self._data), find_logs(self._log)
        if snapshots and not logs and not self._is_log_named:
            # It may have been forgotten, and the newest snapshot is not the end.
            raise HistoryError(
                f"{self._data / 'version-2'}: there is no transaction log in it; name the"
                " dataLogDir of the zoo.cfg with --log-dir, or this folder itself if there really"
                " is none"
            )
        zxid = self._last_zxid(moment)
        for named, path in reversed(snapshots):
            past = self._from(named, path) if named <= zxid else None
            if past is not None and past.zxid <= zxid:
                return past
        if logs and follows(logs[0][0], 0, is_beginning=True):
            return ApachePast(self, ApacheState.fresh(), is_beginning=True)
        for named, path in snapshots:
            past = self._from(named, path)
            if past is not None and moment == BEGINNING:
                return past
            if past is not None:
                raise HistoryError(
                    f"{moment} is not in this folder, whose oldest whole snapshot is complete at"
                    f" zxid 0x{past.zxid:x}"
                )
        raise HistoryError(f"{self._data / 'version-2'}: no whole snapshot to begin with")

    def transactions(self, after: int) -> Iterator[Transaction]:
        """Yield the transactions of the log behind a zxid."""
        logs = find_logs(self._log)
        ends = [first for first, _ in logs[1:]]
        # Without a file there is no end either.
        for (_, path), end in zip(logs, [*ends, None], strict=False):
            # The file before the first that is surely needed may end with some that are.
            if end is None or end > after + 1:
                for _, transaction in transactions(TransactionLog(path)):
                    if transaction.zxid > after:
                        yield transaction

    def go_on(self, zxid: int) -> ApachePast | None:
        """Return the first state behind a zxid that a snapshot gives; None if there is none."""
        for named, path in find_snapshots(self._data):
            if named > zxid and (past := self._from(named, path)) is not None:
                return past
        return None

    def has_snapshot_between(self, zxid: int, following: int | None) -> bool:
        """Return whether a snapshot was named after a transaction between two.

        A server that begins an epoch may write one, which is named after none.
        """
        return any(
            named > zxid and (following is None or named < following) and named & _COUNTER
            for named, _ in find_snapshots(self._data)
        )

    def time_at(self, zxid: int) -> tuple[int | None, int | None]:
        """Return the time of a transaction, if the log has it, and how late it may be at most."""
        for transaction in self.transactions(zxid - 1):
            time_ms = transaction.time_ms
            return (time_ms if transaction.zxid == zxid else None), time_ms
        return None, None

    def _last_zxid(self, moment: Moment) -> int:
        """Return the last zxid at a moment."""
        if moment.zxid is not None:
            return moment.zxid
        last = -1
        for transaction in self.transactions(-1):
            if moment.time_ms is not None and transaction.time_ms > moment.time_ms:
                if last < 0:
                    raise HistoryError(
                        f"{moment} is not in this folder, whose log begins at"
                        f" {shown_time(transaction.time_ms)} (zxid 0x{transaction.zxid:x})"
                    )
                break
            last = transaction.zxid
        newest = max((named for named, _ in find_snapshots(self._data)), default=-1)
        if moment.time_ms is None:
            # The log may end before the newest snapshot.
            return max(last, newest)
        if last < 0 <= newest:
            raise HistoryError(
                f"nobody can tell what was at {moment}: this folder has snapshots and no log, and"
                f" they do not say their times. Ask for 'now', or for zxid 0x{newest:x}"
            )
        return last

    def _from(self, named: int, path: Path) -> ApachePast | None:
        """Return the state of a snapshot, behind all that it may hold.

        None if it is damaged, or if the log does not have all of that.
        """
        try:
            snapshot = read_snapshot(path, named)
        except DamagedFileError:
            return None
        past = ApachePast(self, snapshot.state)
        for _ in past.steps(Moment(zxid=snapshot.reaches_zxid)):
            pass
        return past if past.zxid >= snapshot.reaches_zxid else None


class ApachePast:
    """A state on its way along the transactions."""

    def __init__(
        self, source: ApacheSource, state: ApacheState, *, is_beginning: bool = False
    ) -> None:
        self._source = source
        self._state = state
        self._is_beginning = is_beginning
        written_ms = max((node.mtime for node in state.nodes.values()), default=0)
        known_ms, self.time_ms_max = source.time_at(state.zxid)
        self.time_ms = written_ms if known_ms is None else known_ms

    @property
    def zxid(self) -> int:
        return self._state.zxid

    @property
    def nodes(self) -> Nodes:
        return self._state.nodes

    def machine(self) -> StateMachine:
        finish(self._state, Reading())
        return machine_of(self._state)

    def steps(self, until: Moment) -> Iterator[Step | Gap]:
        while True:
            for transaction in self._source.transactions(self.zxid):
                if not self._is_next(transaction):
                    break
                if until.is_reached(self.zxid, transaction.time_ms):
                    return
                yield self._apply(transaction)
            else:
                if not self._source.has_snapshot_between(self.zxid, None):
                    return
            if until.is_at(self.zxid, self.time_ms):
                return
            reason = "these transactions are in no file"
            following = self._source.go_on(self.zxid)
            if following is None:
                yield Gap(self.zxid, self.time_ms, None, None, None, reason)
                return
            time_ms, time_ms_max = following.time_ms, following.time_ms_max
            gap = Gap(self.zxid, self.time_ms, following.zxid, time_ms, time_ms_max, reason)
            if not until.has(following.zxid, time_ms_max):
                yield gap
                return
            self._state, self._is_beginning = following._state, False
            self.time_ms, self.time_ms_max = time_ms, time_ms_max
            yield gap

    def _is_next(self, transaction: Transaction) -> bool:
        """Return whether nothing is missing before a transaction."""
        zxid = transaction.zxid
        return follows(zxid, self.zxid, self._is_beginning) and (
            zxid == self.zxid + 1 or not self._source.has_snapshot_between(self.zxid, zxid)
        )

    def _apply(self, transaction: Transaction) -> Step:
        session = transaction.session
        paths: dict[bytes, None] = {}
        session_change = None
        for change in transaction.changes:
            if isinstance(change, Create | Delete | SetData | SetACL):
                paths[change.path] = None
            elif isinstance(change, CloseSession):
                owned = self._state.ephemerals.get(session, {})
                paths.update(dict.fromkeys([*(change.paths or ()), *owned]))
                session_change = session, ENDED, self._state.sessions.get(session, 0)
            elif isinstance(change, OpenSession):
                session_change = session, OPENED, change.timeout_ms
        self._state.apply(transaction)
        self.time_ms = self.time_ms_max = transaction.time_ms
        first = transaction.changes[0] if transaction.changes else Nothing()
        name = _NAMES[type(first)] if len(transaction.changes) < 2 else "multi"
        if isinstance(first, CloseSession) and not transaction.cxid:
            # Nobody has asked for it.
            name, session = "expire", 0
        return Step(
            transaction.time_ms,
            transaction.zxid,
            session,
            (),
            name,
            OK,
            tuple(paths),
            session_change,
        )
