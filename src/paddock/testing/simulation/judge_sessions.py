"""The judge's rules of sessions. See `judge`.

A reply tells a client that its session lives: for the session's timeout, counted from when the
client sent the request. When a session ended is known from its zxid: no later than anybody saw it,
and exactly if the log says so.
"""

from __future__ import annotations

from paddock.testing.simulation import history as h
from paddock.testing.simulation.calls import Call, Connection
from paddock.testing.simulation.judge_timeline import Timeline, Violation


def judge_sessions(timeline: Timeline, clock_rate_max: float) -> list[Violation]:
    """Return what breaks the rules of sessions."""
    found: list[Violation] = []
    sessions = timeline.calls.sessions()
    for session, connections in sessions.items():
        zxid = timeline.ends.get(session)
        logged = None if zxid is None else timeline.calls.log.get(zxid)
        if zxid is not None and logged is not None and logged.about == h.EXPIRED:
            found += _expired_early(timeline, zxid, connections, clock_rate_max)
    for connection in timeline.calls.connections.values():
        if connection.is_refused:
            found += _refused(timeline, connection)
    return found


def _expired_early(
    timeline: Timeline, zxid: int, connections: list[Connection], clock_rate_max: float
) -> list[Violation]:
    over_at, over_place = timeline.known_at(zxid)
    found = []
    for connection in connections:
        timeout = connection.timeout / clock_rate_max
        promises = [(connection.begin, connection.granted_at, connection.granted_place)]
        promises += [
            (call.begin, call.end, call.ended)
            for call in connection.calls
            if call.reply is not None
        ]
        told = [one for one in promises if one[1] <= over_at and one[0] + timeout > over_at]
        if told:
            begin, _, place = max(told)
            found.append(
                Violation(
                    "sessions",
                    f"session 0x{connection.session:x} expired (0x{zxid:x}) by {over_at:.4f},"
                    f" though its client was told that it lives when it asked at {begin:.4f},"
                    f" {over_at - begin:.3f} s before, and its timeout is {connection.timeout} s",
                    sorted({place, over_place}),
                )
            )
    return found


def _refused(timeline: Timeline, connection: Connection) -> list[Violation]:
    """A session that a client is told is over must be over by then."""
    session = connection.handshake.session_id
    zxid = timeline.ends.get(session)
    if zxid is None:
        if not timeline.calls.log:
            return []
        return [
            Violation(
                "sessions",
                f"a client was told that session 0x{session:x} is over, which never ended",
                [connection.begun, connection.granted_place],
            )
        ]
    logged = timeline.calls.log.get(zxid)
    if logged is not None and logged.at > connection.granted_at:
        return [
            Violation(
                "sessions",
                f"a client was told that session 0x{session:x} is over before that was decided",
                [connection.granted_place, timeline.calls.log_places[zxid]],
            )
        ]
    early: list[Call] = [
        call
        for other, call in timeline.written.items()
        if other < zxid and call.begin > connection.granted_at
    ]
    return [
        Violation(
            "sessions",
            f"a client was told that session 0x{session:x} is over before it ended (0x{zxid:x})",
            [connection.granted_place, call.begun],
        )
        for call in early[:1]
    ]
