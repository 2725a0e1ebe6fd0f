"""The history in a data folder of Paddock: its snapshots, and its log from the oldest of them on.

* A state begins with a snapshot, or with nothing where the log is there from its beginning. Records
  behind it are applied as a server that starts would apply them, with their digests compared.
* Snapshots that are damaged are passed over.
* A record that is missing or damaged is a gap. It goes on with the next snapshot behind it.
* So is one whose digest shows that its server had another state, as after a vote about a state
  (`paddock.server.cluster.disputes`). Which of the two was right, the record does not say.
* A server may use the folder meanwhile, and purge what is being read; that is said.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final, Protocol

from paddock.history.moment import BEGINNING, Moment, shown_time
from paddock.history.past import (
    ATTACHED,
    ENDED,
    OPENED,
    Gap,
    HistoryError,
    MissingPastError,
    Nodes,
    PurgedError,
    Step,
)
from paddock.log.interface import Record
from paddock.state import sessions
from paddock.state.access import user_name
from paddock.state.entry import EXPIRE, Entry
from paddock.state.machine import Outcome, StateMachine, entry_name
from paddock.state.operations import Change
from paddock.state.snapshot import SnapshotError, read_stamp
from paddock.storage.load import read_state
from paddock.storage.replay import OtherStateError, Replay
from paddock.storage.scan import Gap as LogGap
from paddock.storage.scan import Item, scan
from paddock.storage.snapshots import SnapshotDamagedError, read_snapshot, snapshot_files

_KINDS: Final = {
    sessions.OPENED: OPENED,
    sessions.ATTACHED: ATTACHED,
    sessions.ENDED: ENDED,
}


class Replaying(Protocol):
    """Takes records apart, in their order; `paddock.storage.replay` for a server of its own."""

    @property
    def machine(self) -> StateMachine: ...

    @property
    def index(self) -> int:
        """The last record whose entries were all applied."""

    def each(self, record: Record) -> Iterator[Entry]:
        """Yield the entries of the next record; each has to be applied before the next is asked."""


@dataclass(frozen=True, slots=True)
class Kept:
    """A snapshot, and the state that it has."""

    index: int
    path: Path
    zxid: int
    time_ms: int


class OwnSource:
    """The log and the snapshots of one server."""

    # Its events are beside it.
    unknown = ""

    def __init__(
        self,
        log: Path,
        snapshots: Path,
        replaying: Callable[[StateMachine, int], Replaying] = Replay,
        read: Callable[[Path, int], Iterator[Item]] = scan,
        *,
        begins_empty: bool = True,
    ) -> None:
        self._log = log
        self._snapshots = snapshots
        self._replaying = replaying
        self._read = read
        # Whether a log that is there from its beginning needs no snapshot.
        self._begins_empty = begins_empty

    def begin(self, moment: Moment) -> OwnPast:
        kept = self.snapshots()
        for one in reversed(kept):
            if moment.has(one.zxid, one.time_ms):
                try:
                    return self._past(read_state(one.path, one.index), one.index)
                except (SnapshotDamagedError, SnapshotError, FileNotFoundError):
                    # An older one does as well, as long as the log reaches back to it.
                    continue
        if self._begins_empty and self._has_beginning():
            return self._past(StateMachine(), 0)
        if not kept:
            raise HistoryError(f"{self._log.parent}: there is no history in it")
        first = kept[0]
        if moment == BEGINNING:
            return self._past(read_state(first.path, first.index), first.index)
        raise MissingPastError(
            f"{moment} is not in the history any more, which begins at"
            f" {shown_time(first.time_ms)} (zxid 0x{first.zxid:x})",
            first.zxid,
        )

    def snapshots(self) -> list[Kept]:
        """Return the snapshots that can be begun with, the oldest first."""
        found = []
        for index, path in snapshot_files(self._snapshots) if self._snapshots.exists() else []:
            try:
                zxid, time_ms = read_stamp(read_snapshot(path, index))
            except (SnapshotDamagedError, SnapshotError, FileNotFoundError):
                continue
            found.append(Kept(index, path, zxid, time_ms))
        return found

    def _past(self, machine: StateMachine, index: int) -> OwnPast:
        return OwnPast(self, self._replaying(machine, index))

    def items(self, after: int) -> Iterator[Item]:
        """Yield the records behind one, and what is missing of them."""
        return self._read(self._log, after)

    def go_on(self, index: int) -> Replaying | None:
        """Return the state of the first snapshot that has a record; None if there is none."""
        for one in self.snapshots():
            if one.index >= index:
                try:
                    return self._replaying(read_state(one.path, one.index), one.index)
                except (SnapshotDamagedError, SnapshotError):
                    continue
        return None

    def _has_beginning(self) -> bool:
        return (self._log / f"{1:020d}.log").exists()


class OwnPast:
    """A state on its way along the log."""

    def __init__(self, source: OwnSource, replay: Replaying) -> None:
        self._source = source
        self._replay = replay
        # What is left of a record in whose middle the state is, and the next entry of it.
        self._entries: Iterator[Entry] = iter(())
        self._next: Entry | None = None
        # The index of that record; and why it cannot be applied, if it cannot.
        self._at = replay.index
        self._broken = ""
        # What the last step has changed; the nodes are live.
        self.changed: list[Change] = []

    @property
    def index(self) -> int:
        """The last record in it."""
        return self._replay.index

    @property
    def zxid(self) -> int:
        return self._replay.machine.zxid

    @property
    def time_ms(self) -> int:
        return self._replay.machine.time_ms

    @property
    def time_ms_max(self) -> int:
        return self.time_ms

    @property
    def nodes(self) -> Nodes:
        return self._replay.machine.tree.nodes

    def machine(self) -> StateMachine:
        return self._replay.machine

    def steps(self, until: Moment) -> Iterator[Step | Gap]:
        while True:
            try:
                reason = yield from self._follow(until)
            except FileNotFoundError:
                raise PurgedError("the history was purged while it was read; try again") from None
            except OtherStateError as error:
                reason = self._broken = str(error)
                self._entries, self._next = iter(()), None
            if not reason or until.is_at(self.zxid, self.time_ms):
                return
            following = self._source.go_on(self._at)
            if following is None:
                yield Gap(self.zxid, self.time_ms, None, None, None, reason)
                return
            zxid, time_ms = following.machine.zxid, following.machine.time_ms
            gap = Gap(self.zxid, self.time_ms, zxid, time_ms, time_ms, reason)
            if not until.has(zxid, time_ms):
                yield gap
                return
            self._replay, self._at, self._broken = following, following.index, ""
            yield gap

    def _follow(self, until: Moment) -> Generator[Step, None, str]:
        """Apply records; return why the next one cannot be before the moment is reached, if so."""
        if self._broken or (yield from self._apply_some(until)):
            return self._broken
        for record in self._records():
            self._at = self._replay.index + 1
            if isinstance(record, str):
                return record
            self._entries = self._replay.each(record)
            if (yield from self._apply_some(until)):
                break
        return ""

    def _apply_some(self, until: Moment) -> Generator[Step, None, bool]:
        """Apply what is left of a record; return whether the moment is reached before its end."""
        while True:
            entry = self._next or next(self._entries, None)
            if entry is None:
                return False
            self._next = entry
            if until.is_reached(self.zxid, entry.time_ms):
                return True
            self._next = None
            outcome = self._replay.machine.apply(entry)
            self.changed = outcome.changes
            yield _step(entry, outcome, self._owner(outcome))

    def _owner(self, outcome: Outcome) -> int:
        """Return the number of the server that has the session now that an entry was about."""
        change = outcome.session
        session = (
            None if change is None else self._replay.machine.sessions.by_id.get(change.session)
        )
        return 0 if session is None else session.owner

    def _records(self) -> Iterator[Record | str]:
        """Yield the records behind the state; or why the next one is not there."""
        for item in self._source.items(self._replay.index):
            index = self._replay.index
            if isinstance(item, LogGap) and not item.is_within(index):
                yield f"record {item.first} of the log is damaged or missing"
                return
            if isinstance(item, Record) and item.index > index:
                if item.index != index + 1:
                    yield f"the records {index + 1} to {item.index - 1} were not written down"
                    return
                yield item


def _step(entry: Entry, outcome: Outcome, server: int) -> Step:
    change = outcome.session
    who = () if entry.identities is None else entry.identities.entries
    is_ours = entry.operation <= EXPIRE
    return Step(
        entry.time_ms,
        outcome.zxid,
        # What the server decided on was asked for by nobody.
        0 if is_ours else entry.session,
        tuple(f"{one.scheme}:{user_name(one)}" for one in who),
        entry_name(entry.operation),
        outcome.error,
        tuple(dict.fromkeys([one.path for one in outcome.changes])),
        None if change is None else (change.session, _KINDS[change.kind], change.timeout_ms),
        server,
    )
