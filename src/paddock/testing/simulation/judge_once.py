"""The judge on repeated writes: a client that sends a write again must not write twice.

A client sends a write again only if it knows that it had no effect. On the wire that is another
call. But the data of each set and create of a plan are its own, and begin with the name of the
client. So two that succeed with the same data are one that took effect twice.
"""

from __future__ import annotations

from paddock.errors import OK
from paddock.protocol.requests import CreateRequest, SetDataRequest
from paddock.testing.simulation.calls import Call
from paddock.testing.simulation.judge_timeline import Timeline, Violation


def judge_once(timeline: Timeline) -> list[Violation]:
    """Return the writes that were repeated though they had taken effect."""
    found: list[Violation] = []
    had: dict[tuple[str, int, bytes | None, bytes], Call] = {}
    for zxid, call in sorted(timeline.written.items()):
        body = call.request.body
        if not isinstance(body, SetDataRequest | CreateRequest):
            continue
        client, data = call.connection.client, body.data or b""
        if not data.startswith(f"{client}-".encode()):
            continue
        error = timeline.calls.log[zxid].error if call.reply is None else call.reply.error
        if error != OK:
            continue
        key = client, call.operation, body.path, data
        former = had.setdefault(key, call)
        if former is not call:
            text = f"{call.name} of {data!r} took effect again, at 0x{zxid:x}"
            found.append(Violation("once", text, sorted({former.begun, call.begun})))
    return found
