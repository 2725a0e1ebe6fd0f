"""What a check of a data folder has found."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from paddock.state.machine import StateMachine
from paddock.storage.maintenance.reach import Moment, Reach
from paddock.storage.scan import Segment


@dataclass(frozen=True, slots=True)
class Finding:
    """One piece of damage, or a note."""

    kind: str
    is_damage: bool
    file: Path
    # None for a whole file, or a folder.
    offset: int | None
    what: str
    advice: str


@dataclass(frozen=True, slots=True)
class StateFound:
    """The numbers of a state."""

    index: int
    zxid: int
    nodes: int
    sessions: int
    # The highest session id.
    last_session: int
    digest: int
    # That of its last entry, by the wall clock of the server that proposed it.
    time_ms: int

    @classmethod
    def of(cls, machine: StateMachine, index: int) -> StateFound:
        nodes, sessions, last = len(machine.tree), machine.sessions.by_id, machine.sessions.last_id
        digest, time_ms = machine.digest(), machine.time_ms
        return cls(index, machine.zxid, nodes, len(sessions), last, digest, time_ms)

    @property
    def moment(self) -> Moment:
        return Moment(self.index, self.zxid, self.time_ms)


@dataclass(frozen=True, slots=True)
class SnapshotFound:
    """A snapshot and its state, None if it cannot be used."""

    path: Path
    index: int
    state: StateFound | None


@dataclass(slots=True)
class Report:
    """The result of a check."""

    folder: Path
    # The process that uses the folder, 0 if unknown; None if none does.
    user: int | None = None
    format: str | None = None
    snapshots: list[SnapshotFound] = field(default_factory=list)
    segments: list[Segment] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)
    # The state before the first missing record. None if the folder could not be read at all.
    state: StateFound | None = None
    # The number of digests compared on the way to it.
    digests: int = 0
    # Whole records after `state` that cannot be used, since they build on missing ones.
    unusable: int = 0
    # Whole records that were not read because of `before`.
    left_out: int = 0
    # The last index that is known to have been used.
    last_index: int = 0
    # Whether an acknowledged write is, or may be, missing from `state`.
    loses: bool = False
    # Which states can be rebuilt. None if none can.
    history: Reach | None = None

    @property
    def is_damaged(self) -> bool:
        return any(finding.is_damage for finding in self.findings)

    @property
    def newest(self) -> SnapshotFound | None:
        """The newest usable snapshot."""
        return next((one for one in reversed(self.snapshots) if one.state is not None), None)
