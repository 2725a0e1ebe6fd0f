"""Changes to a history that no correct service could have: each makes the judge fail it.

for rule, tamper in TAMPERINGS.values():
    assert rule in {one.rule for one in judge(tamper(history)).violations}
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from typing import Any, Final

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.testing.simulation import history as h
from paddock.testing.simulation.calls import Call, Calls, Connection, Seen
from paddock.testing.simulation.frames import Reply, encode_reply
from paddock.testing.simulation.history import History

Tamper = Callable[[History], History]


def change_version(history: History) -> History:
    """Acknowledge a write with another version of the node than it made."""
    call, reply = next(_answered(Calls(history), opcodes.SET_DATA))
    changed = reply.body._replace(version=reply.body.version + 1)
    return _with_reply(history, call, dataclasses.replace(reply, body=changed))


def remove_event(history: History) -> History:
    """Never deliver an event, though a later reply shows that it was due."""
    seen = next(_events_before_a_reply(Calls(history)))
    return History(moment for place, moment in enumerate(history) if place != seen.place)


def double_event(history: History) -> History:
    """Deliver an event twice."""
    seen = next(_events_before_a_reply(Calls(history)))
    moments = list(history)
    moments.insert(seen.place, moments[seen.place])
    return History(moments)


def read_the_past(history: History) -> History:
    """Answer a read again as it was answered before, though the node has changed since."""
    earlier, (later, _) = _two_reads(Calls(history))
    return _with_reply(history, later, dataclasses.replace(earlier, xid=later.request.xid))


def hide_the_past(history: History) -> History:
    """Answer a read with what was there before, as if that were the state of its zxid."""
    earlier, (later, reply) = _two_reads(Calls(history))
    return _with_reply(history, later, dataclasses.replace(reply, body=earlier.body))


def swap_zxids(history: History) -> History:
    """Say of two writes of a client that the later one came first."""
    for connection in Calls(history).connections.values():
        writes = [one for one in connection.calls if one.is_write and one.reply is not None]
        if len(writes) > 1:
            first, second = writes[:2]
            assert first.reply is not None
            assert second.reply is not None
            zxids = first.reply.zxid, second.reply.zxid
            swapped = _with_reply(history, first, dataclasses.replace(first.reply, zxid=zxids[1]))
            return _with_reply(swapped, second, dataclasses.replace(second.reply, zxid=zxids[0]))
    raise LookupError("no connection with two writes")


def forget_a_write(history: History) -> History:
    """Have an acknowledged write in no log."""
    _, reply = next(_answered(Calls(history), opcodes.SET_DATA))
    return History(
        moment for moment in history if moment.logged is None or moment.logged.zxid != reply.zxid
    )


#: The rule that each of them breaks, whatever else it does.
TAMPERINGS: Final[dict[str, tuple[str, Tamper]]] = {
    "a write has another version": ("replies", change_version),
    "an event is missing": ("watches", remove_event),
    "an event comes twice": ("watches", double_event),
    "a read is from the past": ("own order", read_the_past),
    "a read hides that it is from the past": ("replies", hide_the_past),
    "two writes have each other's zxids": ("own order", swap_zxids),
    "an acknowledged write is not in the log": ("outcomes", forget_a_write),
}


def _with_reply(history: History, call: Call, reply: Reply) -> History:
    moments = list(history)
    frame = encode_reply(call.operation, reply)
    moments[call.ended] = dataclasses.replace(moments[call.ended], frame=frame)
    return History(moments)


def _answered(calls: Calls, operation: int) -> Iterator[tuple[Call, Any]]:
    for call in calls.calls:
        if call.operation == operation and call.reply is not None and call.reply.error == OK:
            yield call, call.reply


def _events_before_a_reply(calls: Calls) -> Iterator[Seen]:
    """Yield events that came because of a change, and are followed by the reply to a call."""
    for connection in calls.connections.values():
        for place, item in enumerate(connection.received):
            if isinstance(item, Seen) and not _is_of_set_watches(connection, item):
                later = connection.received[place + 1 :]
                if any(isinstance(one, Call) and one.operation != opcodes.PING for one in later):
                    yield item


def _is_of_set_watches(connection: Connection, seen: Seen) -> bool:
    """Whether an event may be what setWatches found: that is not told from others by its zxid."""
    again = (opcodes.SET_WATCHES, opcodes.SET_WATCHES2)
    return any(call.operation in again for call in connection.calls)


def _two_reads(calls: Calls) -> tuple[Reply, tuple[Call, Reply]]:
    """Return an answer, and a later one to the same client that differs since the node changed."""
    before: dict[tuple[int, bytes], Reply] = {}
    for call, reply in _answered(calls, opcodes.GET_DATA):
        body: Any = call.request.body
        key = call.connection.session, body.path
        earlier: Any = before.setdefault(key, reply)
        if earlier.body.stat.mzxid < reply.body.stat.mzxid:
            return earlier, (call, reply)
    raise LookupError("nobody has read a node before and after a change")


def without_log(history: History) -> History:
    """Return what clients saw, and nothing else."""
    return History(moment for moment in history if moment.kind != h.LOG)
