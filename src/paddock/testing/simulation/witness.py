"""Reads the log of a service for the judge: one line for each zxid.

It replays the batches on the real state machine, for nothing but their zxids: the judge compares
each line with what clients saw, on a model of its own.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping

from paddock.errors import OK
from paddock.log.interface import Record
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.state.entry import EXPIRE, REAP, Batch, Entry
from paddock.state.machine import Outcome, StateMachine
from paddock.state.roster import CLOCK_STATED, DEPOSED, JOINED, LEFT, REFUSED, TOO_LATE
from paddock.testing.simulation import history as h
from paddock.testing.simulation.frames import is_refused, read_results
from paddock.testing.simulation.history import History, Logged, Moment

_CHANGES = {
    JOINED: "joined",
    LEFT: "left",
    DEPOSED: "deposed",
    REFUSED: "refused",
    TOO_LATE: "joined too late",
    CLOCK_STATED: "clocks stated",
}
_ABOUT = {JOINED: h.JOINED, LEFT: h.ENDED, DEPOSED: h.DEPOSED}


def read_log(batches: Iterable[tuple[float, bytes]]) -> Iterator[Logged]:
    """Yield what the log of one server holds; a batch is the time of its commit and its bytes."""
    machine = StateMachine()
    for at, payload in batches:
        yield from _apply(machine, payload, at)


def read_shared_log(
    records: Iterable[tuple[float, Record]],
    counts: Counter[str],
    boots: Mapping[bytes, str] | None = None,
) -> Iterator[Logged]:
    """Yield what a log holds that several servers share, and count what became of its records.

    `boots` has the server of each boot; without it nothing is said of servers.
    """
    machine = StateMachine()
    machine.share(b"")
    roster = machine.roster
    assert roster is not None
    # When the last batch of each boot was committed that counts.
    heard: dict[bytes, float] = {}
    for at, record in records:
        assert record.server is not None
        held = roster.held_count
        released = roster.take(
            record.index, record.revision, record.server, record.number, record.payload
        )
        if roster.held_count > held:
            counts["log: held batches"] += 1
        elif not released:
            counts["log: void batches"] += 1
        if released or roster.held_count > held:
            heard[record.server] = at
        if released:
            machine.begin_batch(record.server)
        for _, payload, _ in released:
            if payload:
                yield from _apply(machine, payload, at)
                while (change := machine.take_roster_change()) is not None:
                    counts[f"members: {_CHANGES.get(change.kind, change.kind)}"] += 1
                    about = _ABOUT.get(change.kind)
                    if about is not None and boots is not None:
                        name = f"{boots[change.boot]} {change.boot.hex()}"
                        silence_ms = int((at - heard[change.boot]) * 1000)
                        yield Logged(
                            0,
                            about,
                            change.number,
                            path=name,
                            timeout_ms=silence_ms if change.kind == DEPOSED else 0,
                            at=round(at, 9),
                        )


def _apply(machine: StateMachine, payload: bytes, at: float) -> Iterator[Logged]:
    for entry in Batch.decode(payload).entries:
        before = machine.zxid
        outcome = machine.apply(entry)
        if machine.zxid > before:
            yield logged_of(entry, outcome, machine.zxid, at)


def logged_of(entry: Entry, outcome: Outcome, zxid: int, at: float) -> Logged:
    """Return the line of an entry that took a zxid."""
    at = round(at, 9)
    if entry.operation == opcodes.CREATE_SESSION:
        assert outcome.session is not None
        opened = outcome.session
        return Logged(zxid, h.OPENED, opened.session, timeout_ms=opened.timeout_ms, at=at)
    if entry.operation == EXPIRE:
        return Logged(zxid, h.EXPIRED, entry.session, at=at)
    if entry.operation == REAP:
        path = Reader(entry.body).string().decode(errors="replace")
        return Logged(zxid, h.REAPED, path=path, at=at)
    refused = (
        entry.operation == opcodes.MULTI
        and outcome.error == OK
        and is_refused(read_results(outcome.body))
    )
    return Logged(zxid, h.CALL, entry.session, entry.xid, outcome.error, at=at, is_refused=refused)


def add_log(history: History, lines: Iterable[Logged]) -> None:
    """Add the lines of a log to a history."""
    for logged in lines:
        history.add(Moment(max(logged.at, 0.0), h.LOG, logged=logged))
