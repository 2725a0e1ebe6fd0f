"""What was written to a node, in the order of the service, from a history with its log."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.testing.simulation import history as h
from paddock.testing.simulation.calls import Call, Calls
from paddock.testing.simulation.history import History

_CREATES = (opcodes.CREATE, opcodes.CREATE2, opcodes.CREATE_CONTAINER, opcodes.CREATE_TTL)


@dataclass(frozen=True, slots=True)
class Write:
    """One write that took effect: who wrote what, when it was committed, and its place in order."""

    zxid: int
    at: float
    who: str
    path: str
    # None for a delete.
    data: bytes | None
    # The paths that the same transaction has checked.
    checked: tuple[str, ...] = ()


def writes_of(history: History, path: str) -> list[Write]:
    """Return what was written to a node, by zxid; sequential nodes by their path without number."""
    return [write for write in all_writes(Calls(history)) if write.path == path]


def all_writes(calls: Calls) -> Iterator[Write]:
    """Yield all that was written, by zxid."""
    asked: dict[tuple[int, int], Call] = {}
    for call in calls.calls:
        if call.is_write:
            session = call.connection.session or call.connection.handshake.session_id
            asked[session, call.request.xid] = call
    for zxid, logged in sorted(calls.log.items()):
        asked_for = asked.get((logged.session, logged.xid))
        is_done = logged.about == h.CALL and logged.error == OK and not logged.is_refused
        if is_done and asked_for is not None:
            yield from _of_call(asked_for, zxid, logged.at)


def _of_call(call: Call, zxid: int, at: float) -> Iterator[Write]:
    body = call.request.body
    steps: list[tuple[int, Any]] = [*body] if isinstance(body, list) else [(call.operation, body)]
    checked = tuple(_text(step) for operation, step in steps if operation == opcodes.CHECK)
    who = call.connection.client
    for operation, step in steps:
        if operation in _CREATES or operation == opcodes.SET_DATA:
            yield Write(zxid, at, who, _text(step), step.data or b"", checked)
        elif operation == opcodes.DELETE:
            yield Write(zxid, at, who, _text(step), None, checked)


def _text(step: Any) -> str:
    return bytes(step.path).decode(errors="replace")
