"""Reads the log of a service for the judge: one line for each zxid.

It replays the batches on the real state machine, for nothing but their zxids: the judge compares
each line with what clients saw, on a model of its own.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.state.entry import EXPIRE, REAP, Batch, Entry
from paddock.state.machine import Outcome, StateMachine
from paddock.testing.simulation import history as h
from paddock.testing.simulation.history import History, Logged, Moment


def read_log(batches: Iterable[tuple[float, bytes]]) -> Iterator[Logged]:
    """Yield what the log holds; a batch is the time of its commit and its bytes."""
    machine = StateMachine()
    for at, payload in batches:
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
    return Logged(zxid, h.CALL, entry.session, entry.xid, outcome.error, at=at)


def add_log(history: History, batches: Iterable[tuple[float, bytes]]) -> None:
    """Add the lines of a log to a history."""
    for logged in read_log(batches):
        history.add(Moment(max(logged.at, 0.0), h.LOG, logged=logged))
