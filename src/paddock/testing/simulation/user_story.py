"""The story of a user's world, as a person follows it.

    0.005  alice      connects to s1
    0.009  alice      has session 1, which lives for 4.0 s without a word from it
    0.014  alice      create /plan b'one' -> /plan
    2.300  ***        alice is paused for 6.1 s
    6.411  s1         ends session 1, of alice

A call that is answered soon is one line, at the time of its answer; one that is not is two. Pings
and the numbers of the protocol are left out, and so are long marks in the names of nodes.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from typing import Any, Final

from paddock.errors import OK, error_from_code
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse
from paddock.testing.simulation import history as h
from paddock.testing.simulation.calls import Call, Calls, Connection
from paddock.testing.simulation.frames import Reply, Request, decode_event, is_event
from paddock.testing.simulation.history import History, Moment
from paddock.testing.simulation.story import _request

# An answer that takes longer has a line of its own.
_SOON_SECONDS: Final = 0.3
_EVENTS: Final = {1: "was created", 2: "was deleted", 3: "was changed", 4: "has other children"}
_SILENT: Final = (opcodes.PING, opcodes.CLOSE_SESSION)
# A mark that a client chose.
_MARK: Final = re.compile(r"[0-9a-f]{26,32}")
_MARK_LENGTH: Final = 4
_LINE_MAX: Final = 110


def tell_user(history: History) -> list[str]:
    """Return the lines of the story."""
    return [*_Teller(history).lines()]


class _Teller:
    def __init__(self, history: History) -> None:
        self._calls = Calls(history)
        self._history = history
        self._begun = {call.begun: call for call in self._calls.calls}
        self._ended = {call.ended: call for call in self._calls.calls if call.ended >= 0}
        # Sessions by the order in which they were granted, and whose they are.
        self._sessions: dict[int, tuple[int, str]] = {}

    def lines(self) -> Iterator[str]:
        moments = sorted(enumerate(self._history), key=lambda one: (one[1].at, one[0]))
        for place, moment in moments:
            for who, what in self._tell(place, moment):
                yield f"{moment.at:9.3f}  {who:10} {_shortened(what)}"

    def _tell(self, place: int, moment: Moment) -> Iterable[tuple[str, str]]:
        if moment.kind == h.FAULT:
            return [("***", moment.text)]
        if moment.kind == h.NOTE:
            who, _, text = moment.text.partition(" ")
            return [(who, text)]
        if moment.kind == h.LOG:
            return self._tell_log(moment)
        connection = self._calls.connections[moment.connection]
        said = self._said(place, moment, connection)
        return [(connection.client, said)] if said else []

    def _tell_log(self, moment: Moment) -> Iterable[tuple[str, str]]:
        logged = moment.logged
        assert logged is not None
        if logged.about != h.EXPIRED or logged.session not in self._sessions:
            return []
        number, who = self._sessions[logged.session]
        return [("service", f"ends session {number}, of {who}")]

    def _said(self, place: int, moment: Moment, connection: Connection) -> str:
        if moment.kind == h.CONNECT:
            request = ConnectRequest.read(Reader(moment.frame))
            again = self._sessions.get(request.session_id)
            return f"connects to {connection.server}" + (
                f", with session {again[0]}" if again else ""
            )
        if moment.kind == h.GRANTED:
            return self._granted(ConnectResponse.read(Reader(moment.frame)), connection)
        if moment.kind == h.REQUEST:
            return self._requested(self._begun[place])
        if moment.kind == h.LOST:
            return "" if "client" in moment.text else "loses its connection"
        if is_event(moment.frame):
            event = decode_event(moment.frame)
            return f"is told: {event.path.decode()} {_EVENTS.get(event.kind, 'has an event')}"
        return self._answered(self._ended[place])

    def _granted(self, granted: ConnectResponse, connection: Connection) -> str:
        if not granted.session_id:
            return "is told that its session is over"
        if granted.session_id in self._sessions:
            return f"has session {self._sessions[granted.session_id][0]} again"
        number = len(self._sessions) + 1
        self._sessions[granted.session_id] = number, connection.client
        return f"has session {number}, with a timeout of {granted.timeout_ms / 1000:g} s"

    def _requested(self, call: Call) -> str:
        if call.operation in _SILENT or _is_soon(call):
            return "closes its session" if call.operation == opcodes.CLOSE_SESSION else ""
        asked = _plain(call.request)
        return f"{asked} (no answer)" if call.reply is None else f"{asked} ..."

    def _answered(self, call: Call) -> str:
        if call.operation in _SILENT:
            return ""
        assert call.reply is not None
        return f"{_plain(call.request)} -> {_outcome(call.reply)}"


def _is_soon(call: Call) -> bool:
    return call.reply is not None and call.end - call.begin < _SOON_SECONDS


def _plain(request: Request) -> str:
    if request.operation in (opcodes.SET_WATCHES, opcodes.SET_WATCHES2):
        return "sets its watches again"
    if request.operation == opcodes.CREATE2:
        return _request(request).replace("create2", "create", 1)
    return _request(request).replace(" watch", " (and watches it)")


def _outcome(reply: Reply) -> str:
    if reply.error != OK:
        return type(error_from_code(reply.error)).__name__
    body: Any = reply.body
    if isinstance(body, list):
        codes = [code for _, code, _ in body if code != OK]
        return type(error_from_code(codes[0])).__name__ if codes else "done"
    names = getattr(body, "children", None) or getattr(body, "values", None)
    if names is not None:
        return "[" + " ".join(sorted(name.decode() for name in names)) + "]"
    if hasattr(body, "data"):
        return repr(body.data)
    path = getattr(body, "path", None)
    return "done" if not path else str(path.decode())


def _shortened(text: str) -> str:
    text = _MARK.sub(lambda mark: mark[0][:_MARK_LENGTH] + "~", text)
    return text if len(text) <= _LINE_MAX else text[: _LINE_MAX - 3] + "..."
