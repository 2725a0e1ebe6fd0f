"""The judge's replay: all writes in order on the reference model; reads and events beside them.

A read whose reply has the zxid z saw the state right after the write z. So the model applies writes
in the order of zxids, and answers after each of them the reads with its zxid. A connection is one
caller of the model, which so has its watches, and says which events it must be sent.

Times in stats are the log's: what is checked is that one zxid has one time, and that time does not
go back from one zxid to the next.
"""

from __future__ import annotations

from typing import Any

from paddock.errors import OK, SESSION_EXPIRED
from paddock.protocol import opcodes
from paddock.protocol.acl import Identity
from paddock.protocol.records import Stat
from paddock.testing.model import Answer, Caller, Model
from paddock.testing.simulation import history as h
from paddock.testing.simulation.calls import Call, Connection
from paddock.testing.simulation.judge_timeline import REFUSALS, Timeline, Violation

# An event without a change: what setWatches found.
_NO_ZXID = -1
# What the connection answers by itself.
_BESIDE = frozenset({opcodes.PING, opcodes.AUTH, opcodes.SASL})


def judge_replay(timeline: Timeline, *, events_have_zxids: bool = True) -> list[Violation]:
    """Return what differs from the reference model."""
    replay = _Replay(timeline, events_have_zxids)
    replay.run()
    return replay.violations


class _Replay:
    def __init__(self, timeline: Timeline, events_have_zxids: bool) -> None:
        self.timeline = timeline
        self.events_have_zxids = events_have_zxids
        self.violations: list[Violation] = []
        self.model = Model()
        self.callers = {
            connection.number: Caller(
                timeline_session(connection), identities=(Identity("ip", "127.0.0.1"),)
            )
            for connection in timeline.calls.connections.values()
        }
        # The zxid of the state in which each event of a caller was sent, beside its events.
        self.sent_at: dict[int, list[int]] = {number: [] for number in self.callers}
        self.times: dict[int, tuple[int, int]] = {}

    def run(self) -> None:
        reads: dict[int, list[Call]] = {}
        for connection in self.timeline.calls.connections.values():
            for item in connection.received:
                if isinstance(item, Call) and self._is_read(item):
                    assert item.reply is not None
                    reads.setdefault(item.reply.zxid, []).append(item)
        log = self.timeline.calls.log
        for zxid in sorted({0, *self.timeline.written, *log, *reads}):
            if zxid in self.timeline.written or zxid in log:
                self._write(zxid)
            for call in sorted(reads.get(zxid, []), key=lambda call: call.ended):
                self._read(call)
        for connection in self.timeline.calls.connections.values():
            self._compare_events(connection)
        self._compare_times()

    def _is_read(self, call: Call) -> bool:
        return call not in self.timeline.zxids and call.operation not in _BESIDE

    # Writes.

    def _write(self, zxid: int) -> None:
        self.model.zxid = zxid - 1
        call = self.timeline.written.get(zxid)
        logged = self.timeline.calls.log.get(zxid)
        if call is not None:
            self._ensure_session(self.timeline.session_of(call))
            answer = self._apply(call, zxid)
            if call.reply is not None:
                self._compare(call, answer)
        elif logged is not None and logged.about == h.OPENED:
            self.model.open_session(logged.session, b"", logged.timeout_ms)
        elif logged is not None and logged.about == h.EXPIRED:
            if logged.session in self.model.sessions:
                self.model.expire(logged.session, 1)
            else:
                self._complain(
                    "sessions", "a session ended that did not live",
                    self.timeline.calls.log_places[zxid],
                )  # fmt: skip
        elif logged is not None and logged.about == h.REAPED:
            node = self.model.nodes.get(logged.path.encode())
            if (
                node is None
                # It may wait for its first child.
                or (node.container and not node.created)
                or self.model.reap(logged.path.encode(), node.czxid, node.mzxid).zxid != zxid
            ):
                self._complain(
                    "replies", f"{logged.path} was reaped, which cannot be",
                    self.timeline.calls.log_places[zxid],
                )  # fmt: skip
        self.model.zxid = zxid
        self._note_events(zxid)

    def _ensure_session(self, session: int) -> None:
        """Open a session of which the log says nothing."""
        zxid = self.model.zxid
        if (
            not self.timeline.calls.log
            and session not in self.model.sessions
            and self.timeline.ends.get(session, zxid + 1) > zxid
        ):
            self.model.open_session(session, b"", 0)
            self.model.zxid = zxid

    def _apply(self, call: Call, zxid: int) -> Answer:
        caller = self.callers[call.connection.number]
        body: Any = call.request.body
        # The zxid stands for the time, so that times can be told apart.
        if call.operation == opcodes.MULTI:
            return self.model.multi(caller, body, zxid)
        if call.operation == opcodes.CLOSE_SESSION:
            return self.model.close(caller)
        return self.model.write(caller, call.operation, body, zxid)

    # Reads.

    def _read(self, call: Call) -> None:
        reply = call.reply
        assert reply is not None
        session = self.timeline.session_of(call)
        self._ensure_session(session)
        if call.is_write:
            if reply.error == SESSION_EXPIRED and session in self.model.sessions:
                self._complain(
                    "sessions", "a client was told that its session is over, which lives",
                    call.begun, call.ended,
                )  # fmt: skip
            elif reply.error not in REFUSALS:
                self._complain("replies", "a write has no zxid of its own", call.begun, call.ended)
            return
        caller = self.callers[call.connection.number]
        body: Any = call.request.body
        if reply.error == SESSION_EXPIRED and session not in self.model.sessions:
            return
        if call.operation == opcodes.SET_WATCHES:
            body.persistent, body.recursive = [], []
        answer = self.model.read(caller, call.operation, body)
        self._note_events(reply.zxid)
        if call.operation != opcodes.WHO_AM_I:
            self._compare(call, answer)

    # Comparing.

    def _compare(self, call: Call, answer: Answer) -> None:
        reply = call.reply
        assert reply is not None
        self._note_times(call, reply.body)
        seen = (reply.error, _plain(reply.body))
        meant = (answer.error, _plain(answer.reply) if answer.error == OK else None)
        if call.operation in (opcodes.MULTI, opcodes.MULTI_READ) and answer.error == OK:
            meant = (answer.error, [_plain_result(one) for one in _as_list(answer.reply)])
            seen = (reply.error, [_plain_result(one) for one in _as_list(reply.body)])
        if call.operation in (opcodes.REMOVE_WATCHES, opcodes.CHECK_WATCHES):
            seen, meant = (reply.error, None), (answer.error, None)
        if seen != meant:
            self._complain(
                "replies",
                f"{call.name} at 0x{reply.zxid:x} was answered with {_shown(seen)}, and the state"
                f" there says {_shown(meant)}",
                call.begun,
                call.ended,
            )

    def _note_events(self, zxid: int) -> None:
        for number, caller in self.callers.items():
            sent = self.sent_at[number]
            sent += [zxid] * (len(caller.events) - len(sent))

    def _compare_events(self, connection: Connection) -> None:
        caller, sent_at = self.callers[connection.number], self.sent_at[connection.number]
        expected = list(zip(caller.events, sent_at, strict=True))
        # What setWatches found before its reply was lost cannot be placed.
        unanswered = self._set_again_unanswered(connection)
        replied, replied_place = 0, -1
        position = 0
        for item in connection.received:
            if isinstance(item, Call):
                assert item.reply is not None
                if item.reply.zxid > replied:
                    replied, replied_place = item.reply.zxid, item.ended
                if self._is_missing(expected, position, replied):
                    (kind, path, zxid), _ = expected[position]
                    self._complain(
                        "watches",
                        f"the event {kind} of {_text(path)} (0x{zxid & (1 << 64) - 1:x}) did not"
                        f" come before a reply with 0x{replied:x}",
                        connection.begun,
                        replied_place,
                    )
                    return
                continue
            event = item.event
            if event.zxid == _NO_ZXID and _text(event.path) in unanswered:
                continue
            told = (event.kind, event.path, event.zxid)
            found = self._find(expected, position, told)
            if found is None:
                self._complain(
                    "watches",
                    f"an event {event.kind} of {_text(event.path)} that no watch of this connection"
                    " explains, or not in this order, or for the second time",
                    connection.begun,
                    item.place,
                )
                return
            position = found

    def _is_missing(
        self, expected: list[tuple[tuple[int, bytes, int], int]], position: int, replied: int
    ) -> bool:
        if position >= len(expected):
            return False
        (_, _, zxid), sent_at = expected[position]
        # What setWatches finds is sent in the state of its reply, to which others may belong, too.
        return sent_at < replied if zxid == _NO_ZXID else sent_at <= replied

    def _find(
        self,
        expected: list[tuple[tuple[int, bytes, int], int]],
        position: int,
        told: tuple[int, bytes, int],
    ) -> int | None:
        """Return the position behind an event, which is the next; a multi's may swap."""
        if position >= len(expected):
            return None
        place = position
        while place < len(expected) and expected[place][1] == expected[position][1]:
            meant = expected[place][0]
            if told == (meant if self.events_have_zxids else (*meant[:2], _NO_ZXID)):
                expected[position], expected[place] = expected[place], expected[position]
                return position + 1
            place += 1
        return None

    def _set_again_unanswered(self, connection: Connection) -> set[str]:
        paths: set[str] = set()
        for call in connection.calls:
            if call.reply is None and call.operation in (opcodes.SET_WATCHES, opcodes.SET_WATCHES2):
                body: Any = call.request.body
                for kind in (body.data, body.exists, body.child):
                    paths.update(map(_text, kind))
        return paths

    # Times.

    def _note_times(self, call: Call, body: object) -> None:
        stats = [body] if isinstance(body, Stat) else [getattr(body, "stat", None)]
        if isinstance(body, list):
            stats = [getattr(record, "stat", record) for _, _, record in body]
        for stat in stats:
            if isinstance(stat, Stat):
                for zxid, time_ms in ((stat.czxid, stat.ctime), (stat.mzxid, stat.mtime)):
                    known = self.times.setdefault(zxid, (time_ms, call.ended))
                    if known[0] != time_ms:
                        self._complain(
                            "replies",
                            f"0x{zxid:x} has the times {known[0]} and {time_ms}",
                            known[1],
                            call.ended,
                        )

    def _compare_times(self) -> None:
        last, place = 0, 0
        for zxid, (time_ms, where) in sorted(self.times.items()):
            if time_ms < last:
                self._complain(
                    "replies", f"time goes back at 0x{zxid:x}: {last} to {time_ms}", place, where
                )
            last, place = time_ms, where

    def _complain(self, rule: str, text: str, *places: int) -> None:
        self.violations.append(
            Violation(rule, text, sorted(place for place in places if place >= 0))
        )


def timeline_session(connection: Connection) -> int:
    return connection.session or connection.handshake.session_id


def _as_list(value: object) -> list[Any]:
    return value if isinstance(value, list) else []


def _plain_result(result: tuple[int, int, object]) -> tuple[object, ...]:
    operation, code, record = result
    return operation, code, _plain(record)


def _plain(record: object) -> object:
    """Return what is compared of a reply: names in any order, and no times."""
    if record is None:
        return None
    if isinstance(record, Stat):
        return record._replace(ctime=0, mtime=0)
    if isinstance(record, list):
        return [_plain_result(one) for one in record]
    names = getattr(type(record), "__dataclass_fields__", {})
    plain: dict[str, object] = {}
    for name in names:
        value = getattr(record, name)
        if name in ("values", "children"):
            value = sorted(value)
        elif isinstance(value, Stat):
            value = value._replace(ctime=0, mtime=0)
        elif isinstance(value, list):
            value = list(value)
        plain[name] = value
    return (type(record).__name__, plain)


def _shown(answer: tuple[int, object]) -> str:
    error, body = answer
    if error != OK:
        return f"error {error}"
    if isinstance(body, tuple) and len(body) == 2 and isinstance(body[1], dict):
        return ", ".join(f"{name} {value}" for name, value in body[1].items())
    return str(body)


def _text(path: bytes) -> str:
    return path.decode(errors="replace")
