"""A history, understood: connections, and calls with their outcomes.

A reply answers the oldest request that has its xid: pings share one. Requests whose connection was
lost before their reply have an unknown outcome. What cannot be understood, such as a reply to
nothing, is a problem that the judge reports.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field

from paddock.protocol import operations
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import PING_XID, ConnectRequest, ConnectResponse
from paddock.testing.simulation import history as h
from paddock.testing.simulation.frames import (
    Event,
    Reply,
    Request,
    decode_event,
    decode_reply,
    decode_request,
    is_event,
    reply_xid,
)
from paddock.testing.simulation.history import History, Logged


@dataclass(eq=False)
class Call:
    """A request, and its reply if one came."""

    connection: Connection
    request: Request
    begin: float
    # The place of its moments in the history; -1 for a reply that never came.
    begun: int
    end: float = -1.0
    ended: int = -1
    reply: Reply | None = None

    @property
    def operation(self) -> int:
        return self.request.operation

    @property
    def name(self) -> str:
        return operations.name_of(self.operation)

    @property
    def is_write(self) -> bool:
        return self.operation in operations.WRITES


@dataclass(eq=False)
class Seen:
    """An event that a client was told of."""

    event: Event
    at: float
    place: int


@dataclass(eq=False)
class Connection:
    """One connection of a client, from its handshake to its end."""

    number: int
    client: str
    server: str
    handshake: ConnectRequest
    begin: float
    begun: int
    granted: ConnectResponse | None = None
    granted_at: float = -1.0
    granted_place: int = -1
    calls: list[Call] = field(default_factory=list)
    # Replies and events in the order in which they came.
    received: list[Call | Seen] = field(default_factory=list)
    lost_at: float | None = None

    @property
    def session(self) -> int:
        """The session that was granted; 0 if none was."""
        return 0 if self.granted is None else self.granted.session_id

    @property
    def is_refused(self) -> bool:
        """Whether the service said that the session asked for is over."""
        return self.granted is not None and self.granted.session_id == 0

    @property
    def timeout(self) -> float:
        return 0.0 if self.granted is None else self.granted.timeout_ms / 1000


@dataclass
class Boot:
    """One membership of a server, as the log has it."""

    server: str
    name: str
    number: int
    joined_at: float
    joined_place: int
    ended_at: float = float("inf")
    ended_place: int = -1
    is_deposed: bool = False
    # For how long nothing of it was committed when it was deposed.
    silence: float = 0.0
    # The last zxid in the log before it joined, and before it ended; for times that are not known.
    joined_after: int = 0
    ended_after: int = 0


@dataclass
class Problem:
    """Something in a history that cannot be understood, and where it is."""

    text: str
    places: list[int]


class Calls:
    """Everything that clients did and saw."""

    def __init__(self, history: History) -> None:
        self.history = history
        self.connections: dict[int, Connection] = {}
        self.calls: list[Call] = []
        self.log: dict[int, Logged] = {}
        self.log_places: dict[int, int] = {}
        # The boots of servers, in the order in which they joined.
        self.boots: list[Boot] = []
        self.problems: list[Problem] = []
        self._waiting: dict[int, deque[Call]] = {}
        for place, moment in enumerate(history):
            try:
                self._take(place, moment)
            except DecodeError as error:
                self._complain(f"a {moment.kind} cannot be decoded: {error}", place)

    def sessions(self) -> dict[int, list[Connection]]:
        """Return the connections of each session in order."""
        sessions: dict[int, list[Connection]] = {}
        for connection in self.connections.values():
            if connection.session:
                sessions.setdefault(connection.session, []).append(connection)
        return sessions

    def unanswered(self, connection: Connection) -> list[Call]:
        return [call for call in connection.calls if call.reply is None]

    def _take(self, place: int, moment: h.Moment) -> None:
        if moment.kind == h.LOG:
            assert moment.logged is not None
            self._take_log(place, moment.logged)
        elif moment.kind == h.CONNECT:
            client, _, server = moment.text.partition(" ")
            handshake = ConnectRequest.read(Reader(moment.frame))
            self.connections[moment.connection] = Connection(
                moment.connection, client, server, handshake, moment.at, place
            )
            self._waiting[moment.connection] = deque()
        elif moment.kind not in (h.FAULT, h.NOTE):
            connection = self.connections.get(moment.connection)
            if connection is None:
                self._complain(f"a {moment.kind} on a connection that was not opened", place)
            elif connection.lost_at is not None:
                self._complain(f"a {moment.kind} on a connection that is over", place)
            else:
                self._take_message(place, moment, connection)

    def _take_message(self, place: int, moment: h.Moment, connection: Connection) -> None:
        if moment.kind == h.GRANTED:
            connection.granted = ConnectResponse.read(Reader(moment.frame))
            connection.granted_at, connection.granted_place = moment.at, place
        elif moment.kind == h.REQUEST:
            call = Call(connection, decode_request(moment.frame), moment.at, place)
            connection.calls.append(call)
            self.calls.append(call)
            self._waiting[connection.number].append(call)
        elif moment.kind == h.REPLY and not is_event(moment.frame):
            self._take_reply(place, moment, connection)
        elif moment.kind in (h.EVENT, h.REPLY):
            connection.received.append(Seen(decode_event(moment.frame), moment.at, place))
        else:
            connection.lost_at = moment.at

    def _take_reply(self, place: int, moment: h.Moment, connection: Connection) -> None:
        waiting = self._waiting[connection.number]
        xid = reply_xid(moment.frame)
        call = next((one for one in waiting if one.request.xid == xid), None)
        if call is None:
            self._complain(f"a reply to request {xid}, which has one or was never sent", place)
            return
        # Pings overtake what waits for the log.
        others = [one for one in waiting if one.request.xid != PING_XID]
        if xid != PING_XID and others[0] is not call:
            self._complain(
                f"a reply to request {xid} before that to request {others[0].request.xid}",
                others[0].begun,
                call.begun,
                place,
            )
        waiting.remove(call)
        call.end, call.ended = moment.at, place
        call.reply = decode_reply(call.operation, moment.frame)
        connection.received.append(call)

    def _take_log(self, place: int, logged: Logged) -> None:
        if logged.about == h.JOINED:
            server, _, name = logged.path.rpartition(" ")
            boot = Boot(server, name, logged.session, logged.at, place)
            boot.joined_after = max(self.log, default=0)
            self.boots.append(boot)
            return
        if logged.about in (h.ENDED, h.DEPOSED):
            for boot in self.boots:
                if boot.number == logged.session:
                    boot.ended_at, boot.ended_place = logged.at, place
                    boot.is_deposed = logged.about == h.DEPOSED
                    boot.silence = logged.timeout_ms / 1000
                    boot.ended_after = max(self.log, default=0)
            return
        if logged.zxid in self.log:
            self._complain(
                f"the log has zxid 0x{logged.zxid:x} twice", self.log_places[logged.zxid], place
            )
        self.log[logged.zxid] = logged
        self.log_places[logged.zxid] = place

    def _complain(self, text: str, *places: int) -> None:
        self.problems.append(Problem(text, list(places)))
