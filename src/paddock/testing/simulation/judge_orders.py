"""The judge's rules of order: outcomes, real time, each client's own order. See `judge`."""

from __future__ import annotations

import bisect

from paddock.protocol import opcodes
from paddock.protocol.records import PING_XID
from paddock.testing.simulation.calls import Call, Connection, Seen
from paddock.testing.simulation.history import LOG
from paddock.testing.simulation.judge_timeline import Timeline, Violation


def judge_orders(timeline: Timeline) -> list[Violation]:
    """Return what breaks the rules of order."""
    return [
        *_unanswered(timeline),
        *_real_time(timeline),
        *_seen_early(timeline),
        *_syncs(timeline),
        *_own_order(timeline),
        *_going_back(timeline),
    ]


def _unanswered(timeline: Timeline) -> list[Violation]:
    """A call on a connection that stands must have a reply, unless the history ends too early.

    A client waits for no longer than its timeout before it gives a connection up.
    """
    history = timeline.calls.history
    end = max((moment.at for moment in history if moment.kind != LOG), default=0.0)
    found = []
    for connection in timeline.calls.connections.values():
        if connection.lost_at is None:
            found += [
                Violation("outcomes", "a call was never answered", [call.begun])
                for call in timeline.calls.unanswered(connection)
                if call.begin + connection.timeout < end
            ]
    return found


def _real_time(timeline: Timeline) -> list[Violation]:
    # Downwards, with the earliest end of all writes above.
    found = []
    first: Call | None = None
    for zxid in sorted(timeline.written, reverse=True):
        call = timeline.written[zxid]
        if first is not None and first.end < call.begin:
            found.append(
                Violation(
                    "real time",
                    f"a write with 0x{timeline.zxids[first]:x} ended before one with the lower"
                    f" 0x{zxid:x} began",
                    sorted([first.begun, first.ended, call.begun, max(call.ended, call.begun)]),
                )
            )
        if call.reply is not None and (first is None or call.end < first.end):
            first = call
    return found


def _seen_early(timeline: Timeline) -> list[Violation]:
    """Nothing may show a zxid before the write began that has it, or one before it."""
    zxids = sorted(timeline.written)
    # The write up to each zxid that began last.
    latest: list[Call] = []
    for zxid in zxids:
        call = timeline.written[zxid]
        latest.append(call if not latest or call.begin >= latest[-1].begin else latest[-1])
    found = []
    for connection in timeline.calls.connections.values():
        for item in connection.received:
            zxid, at, place = _sight(item)
            count = bisect.bisect_right(zxids, zxid)
            if count and latest[count - 1].begin > at:
                call = latest[count - 1]
                found.append(
                    Violation(
                        "real time",
                        f"0x{zxid:x} was seen before the write 0x{timeline.zxids[call]:x} began",
                        [place, call.begun],
                    )
                )
    return found


def _syncs(timeline: Timeline) -> list[Violation]:
    ends: list[tuple[float, int, Call]] = sorted(
        (call.end, zxid, call)
        for zxid, call in timeline.written.items()
        if call.reply is not None
    )  # fmt: skip
    # The highest zxid up to each end.
    highest: list[Call] = []
    for _, zxid, call in ends:
        higher = not highest or zxid > timeline.zxids[highest[-1]]
        highest.append(call if higher else highest[-1])
    times = [end for end, _, _ in ends]
    found = []
    for sync in timeline.calls.calls:
        if sync.operation != opcodes.SYNC or sync.reply is None or sync.reply.error:
            continue
        count = bisect.bisect_left(times, sync.begin)
        if count and timeline.zxids[highest[count - 1]] > sync.reply.zxid:
            call = highest[count - 1]
            found.append(
                Violation(
                    "real time",
                    f"a sync is at 0x{sync.reply.zxid:x}, though 0x{timeline.zxids[call]:x} had"
                    " ended before it began",
                    sorted([call.begun, call.ended, sync.begun, sync.ended]),
                )
            )
    return found


def _own_order(timeline: Timeline) -> list[Violation]:
    found = []
    # The last call of each session that has a zxid, and the highest so far.
    floors: dict[int, tuple[int, Call]] = {}
    for call in timeline.calls.calls:
        session = timeline.session_of(call)
        if not session or call.request.xid == PING_XID:
            continue
        zxid = timeline.zxids.get(call)
        is_own = zxid is not None
        if zxid is None:
            if call.reply is None or call.reply.zxid <= 0:
                continue
            zxid = call.reply.zxid
        floor, before = floors.get(session, (0, call))
        if zxid < floor or (is_own and zxid == floor):
            found.append(
                Violation(
                    "own order",
                    f"{call.name} was issued after {before.name}, which has 0x{floor:x}, and has"
                    f" 0x{zxid:x}",
                    sorted({before.begun, max(before.begun, before.ended), call.begun,
                            max(call.begun, call.ended)}),
                )
            )  # fmt: skip
        if zxid >= floor:
            floors[session] = (zxid, call)
    return found


def _going_back(timeline: Timeline) -> list[Violation]:
    found: list[Violation] = []
    for connections in timeline.calls.sessions().values():
        last, place = 0, -1
        for connection in connections:
            asked = connection.handshake.last_zxid_seen
            if asked > last:
                last, place = asked, connection.begun
            last, place = _look_through(connection, last, place, found)
    return found


def _look_through(
    connection: Connection, last: int, last_place: int, found: list[Violation]
) -> tuple[int, int]:
    for item in connection.received:
        zxid, _, place = _sight(item)
        if zxid <= 0:
            continue
        if zxid < last:
            found.append(
                Violation(
                    "own order",
                    f"a client that had seen 0x{last:x} was sent 0x{zxid:x}",
                    [last_place, place],
                )
            )
        else:
            last, last_place = zxid, place
    return last, last_place


def _sight(item: Call | Seen) -> tuple[int, float, int]:
    """Return a zxid that a client saw, when, and where that stands."""
    if isinstance(item, Seen):
        return item.event.zxid, item.at, item.place
    assert item.reply is not None
    return item.reply.zxid, item.end, item.ended
