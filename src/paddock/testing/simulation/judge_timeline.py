"""The timeline: which write has which zxid, from replies, and from the log where no reply came."""

from __future__ import annotations

from dataclasses import dataclass

from paddock.errors import NOT_READ_ONLY, OK, SESSION_EXPIRED, SESSION_MOVED, SYSTEM_ERROR
from paddock.testing.simulation import history as h
from paddock.testing.simulation.calls import Call, Calls, Seen
from paddock.testing.simulation.history import Logged

# Codes with which a write is refused before the log: then its reply has somebody else's zxid.
REFUSALS = frozenset({SYSTEM_ERROR, SESSION_EXPIRED, NOT_READ_ONLY})


@dataclass
class Violation:
    """A rule that was broken, how, and the places in the history that show it."""

    rule: str
    text: str
    places: list[int]

    def __str__(self) -> str:
        return f"{self.rule}: {self.text}"


class Timeline:
    """The writes by zxid. `violations` are those that show already when they are put in order."""

    def __init__(self, calls: Calls) -> None:
        self.calls = calls
        self.violations: list[Violation] = []
        # The write at each zxid that is one, and the other way round.
        self.written: dict[int, Call] = {}
        self.zxids: dict[Call, int] = {}
        # Writes of unknown outcome that the log has.
        self.resolved: dict[Call, int] = {}
        # The zxid at which a session ended, and how.
        self.ends: dict[int, int] = {}
        # Writes of unknown outcome that were refused because their session was over.
        self._late: list[Logged] = []
        self._has_log = bool(calls.log)
        for call in calls.calls:
            if call.is_write and call.reply is not None and self._owns_zxid(call):
                self._place(call, call.reply.zxid)
        if self._has_log:
            self._read_log()
        self._find_ends()

    def session_of(self, call: Call) -> int:
        return call.connection.session or call.connection.handshake.session_id

    def last_zxid(self) -> int:
        return max([0, *self.written, *self.calls.log])

    def known_at(self, zxid: int) -> tuple[float, int]:
        """Return when a zxid was committed, or somebody saw it or a later one, and where."""
        logged = self.calls.log.get(zxid)
        first, place = float("inf"), self.calls.log_places.get(zxid, 0)
        if logged is not None and logged.at >= 0:
            return logged.at, place
        for connection in self.calls.connections.values():
            for item in connection.received:
                if isinstance(item, Seen):
                    seen, at, where = item.event.zxid, item.at, item.place
                else:
                    assert item.reply is not None
                    seen, at, where = item.reply.zxid, item.end, item.ended
                if seen >= zxid and at < first:
                    first, place = at, where
        return first, place

    def _owns_zxid(self, call: Call) -> bool:
        """Return whether the zxid of a write's reply is its own, and not the last one before."""
        reply = call.reply
        assert reply is not None
        if reply.error == SESSION_MOVED:
            return False
        if reply.error not in REFUSALS:
            return True
        logged = self.calls.log.get(reply.zxid)
        return (
            reply.error == SESSION_EXPIRED
            and logged is not None
            and logged.about == h.CALL
            and (logged.session, logged.xid) == (self.session_of(call), call.request.xid)
        )

    def _place(self, call: Call, zxid: int) -> None:
        other = self.written.get(zxid)
        if other is not None:
            self._complain(
                f"two writes have the zxid 0x{zxid:x}", other.begun, other.ended, call.begun,
                call.ended,
            )  # fmt: skip
            return
        self.written[zxid] = call
        self.zxids[call] = zxid

    def _read_log(self) -> None:
        named: dict[tuple[int, int], Call] = {}
        for call in self.calls.calls:
            if call.is_write:
                named[self.session_of(call), call.request.xid] = call
        had: dict[Call, int] = {}
        for zxid, logged in sorted(self.calls.log.items()):
            place = self.calls.log_places[zxid]
            answered = self.written.get(zxid)
            if logged.about != h.CALL:
                if answered is not None:
                    self._complain(
                        f"0x{zxid:x} is no write in the log", place, answered.begun, answered.ended
                    )
                continue
            found = named.get((logged.session, logged.xid))
            if found is None:
                self._complain(f"0x{zxid:x} is a write that no client asked for", place)
                continue
            if answered is not None and answered is not found:
                self._complain(
                    f"0x{zxid:x} is another write in the log", place, answered.begun, answered.ended
                )
                continue
            if logged.error == SESSION_MOVED:
                if found.reply is not None:
                    self._complain(
                        "a write that came too late was answered", place, found.begun, found.ended
                    )
                continue
            if logged.error == SESSION_EXPIRED and found.reply is None:
                # As late, after the end of its session.
                self._late.append(logged)
                continue
            if found in had:
                self._complain(
                    f"a write took effect twice, at 0x{had[found]:x} and 0x{zxid:x}",
                    found.begun,
                    self.calls.log_places[had[found]],
                    place,
                )
                continue
            had[found] = zxid
            self._match(found, logged, place)
        self._find_missing()

    def _match(self, call: Call, logged: Logged, place: int) -> None:
        reply, zxid = call.reply, logged.zxid
        if reply is None:
            self.written[zxid] = call
            self.zxids[call] = self.resolved[call] = zxid
        elif self.zxids.get(call) != zxid:
            said = "refused" if reply.error in REFUSALS else f"answered with 0x{reply.zxid:x}"
            self._complain(
                f"a write was {said}, and has 0x{zxid:x} in the log", call.begun, call.ended, place
            )
        elif reply.error != logged.error:
            self._complain(
                f"a write was answered with {reply.error}, and has {logged.error} in the log",
                call.begun,
                call.ended,
                place,
            )

    def _find_missing(self) -> None:
        log = self.calls.log
        last = 0
        for zxid in sorted({*log, *self.written}):
            if zxid not in log:
                call = self.written[zxid]
                self._complain(
                    f"0x{zxid:x} was acknowledged, and is not in the log", call.begun, call.ended
                )
            elif zxid != last + 1 and log[zxid].about != h.EPOCH:
                self._complain(
                    f"nothing has the zxids from 0x{last + 1:x} to 0x{zxid - 1:x}",
                    self.calls.log_places[zxid],
                )
            last = zxid

    def _find_ends(self) -> None:
        for zxid, logged in self.calls.log.items():
            if logged.about == h.EXPIRED:
                self.ends[logged.session] = zxid
        for zxid, call in sorted(self.written.items()):
            if call.name == "close_session" and (call.reply is None or call.reply.error == OK):
                logged_ = self.calls.log.get(zxid)
                if logged_ is None or logged_.error == OK:
                    self.ends[self.session_of(call)] = zxid
        for late in self._late:
            if self.ends.get(late.session, late.zxid) >= late.zxid:
                self._complain(
                    f"0x{late.zxid:x} was refused since its session was over, which lived",
                    self.calls.log_places[late.zxid],
                )

    def _complain(self, text: str, *places: int) -> None:
        self.violations.append(
            Violation("outcomes", text, sorted(place for place in places if place >= 0))
        )
