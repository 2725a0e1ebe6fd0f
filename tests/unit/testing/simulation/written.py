"""Histories that are written by hand, for the judge."""

from __future__ import annotations

from dataclasses import dataclass

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.acl import OPEN
from paddock.protocol.operations import Record
from paddock.protocol.records import PING_XID, ConnectRequest, ConnectResponse, Stat
from paddock.protocol.replies import CreateResponse, GetDataResponse
from paddock.protocol.requests import (
    CreateRequest,
    SetDataRequest,
    VersionRequest,
    WatchedRequest,
)
from paddock.testing.simulation import history as h
from paddock.testing.simulation.frames import (
    Event,
    Reply,
    Request,
    encode_event,
    encode_record,
    encode_reply,
    encode_request,
)
from paddock.testing.simulation.history import History, Logged, Moment
from paddock.testing.simulation.judge import Verdict, judge


@dataclass
class Asked:
    """A request that was written down."""

    connection: int
    session: int
    request: Request


class Written:
    """A history as it is written. Time goes on by a second with each line, unless told."""

    def __init__(self) -> None:
        self.history = History()
        self.at = 0.0
        self.sessions: dict[int, int] = {}
        self.xid = 0

    def connect(
        self, client: str, session: int, *, opened: int = 0, seen: int = 0, server: str = "s1"
    ) -> int:
        """Have a client connect and be granted a session, which is new if `opened` is a zxid."""
        number = self.ask_session(client, 0 if opened else session, seen=seen, server=server)
        self.grant(number, session)
        if opened:
            self.log(Logged(opened, h.OPENED, session, timeout_ms=10_000))
        return number

    def ask_session(self, client: str, session: int, *, seen: int = 0, server: str = "s1") -> int:
        number = len(self.sessions) + 1
        self.sessions[number] = session
        request = ConnectRequest(0, seen, 10_000, session, b"", False)
        self._add(h.CONNECT, number, encode_record(request), f"{client} {server}")
        return number

    def grant(self, number: int, session: int) -> None:
        """Answer a handshake; 0 says that the session is over."""
        self.sessions[number] = session or self.sessions[number]
        response = ConnectResponse(0, 10_000, session, b"", False)
        self._add(h.GRANTED, number, encode_record(response))

    def ask(self, connection: int, operation: int, body: Record | None = None) -> Asked:
        self.xid += 1
        xid = PING_XID if operation == opcodes.PING else self.xid
        request = Request(xid, operation, body)
        self._add(h.REQUEST, connection, encode_request(request))
        return Asked(connection, self.sessions[connection], request)

    def create(self, connection: int, path: str, *, flags: int = 0) -> Asked:
        body = CreateRequest(path.encode(), b"", list(OPEN), flags)
        return self.ask(connection, opcodes.CREATE, body)

    def set_data(self, connection: int, path: str, data: bytes) -> Asked:
        return self.ask(connection, opcodes.SET_DATA, SetDataRequest(path.encode(), data, -1))

    def delete(self, connection: int, path: str) -> Asked:
        return self.ask(connection, opcodes.DELETE, VersionRequest(path.encode(), -1))

    def get(self, connection: int, path: str, *, watch: bool = False) -> Asked:
        return self.ask(connection, opcodes.GET_DATA, WatchedRequest(path.encode(), watch))

    def exists(self, connection: int, path: str, *, watch: bool = False) -> Asked:
        return self.ask(connection, opcodes.EXISTS, WatchedRequest(path.encode(), watch))

    def reply(
        self, asked: Asked, zxid: int, body: object = None, *, error: int = OK, log: bool = True
    ) -> None:
        """Answer a request. A write is in the log at its zxid, too, unless told otherwise."""
        request = asked.request
        if body is None and error == OK and request.operation == opcodes.CREATE:
            assert isinstance(request.body, CreateRequest)
            body = CreateResponse(request.body.path)
        reply = Reply(request.xid, zxid, error, body)
        self._add(h.REPLY, asked.connection, encode_reply(request.operation, reply))
        writes = (opcodes.CREATE, opcodes.SET_DATA, opcodes.DELETE, opcodes.CLOSE_SESSION)
        if log and request.operation in writes:
            self.logged(asked, zxid, error)

    def logged(self, asked: Asked, zxid: int, error: int = OK) -> None:
        """Put a write into the log."""
        self.log(Logged(zxid, h.CALL, asked.session, asked.request.xid, error))

    def log(self, logged: Logged) -> None:
        self.history.add(Moment(self.at, h.LOG, logged=logged))

    def event(self, connection: int, kind: int, path: str, zxid: int) -> None:
        self._add(h.EVENT, connection, encode_event(Event(zxid, kind, path.encode())))

    def lose(self, connection: int) -> None:
        self._add(h.LOST, connection, text="reset")

    def judge(self) -> Verdict:
        return judge(self.history)

    def rules(self) -> set[str]:
        """Return the rules that are broken."""
        return {violation.rule for violation in self.judge().violations}

    def _add(self, kind: str, connection: int, frame: bytes = b"", text: str = "") -> None:
        self.at += 1
        self.history.add(Moment(self.at, kind, connection, frame, text))


def stat(
    czxid: int, mzxid: int = 0, *, version: int = 0, size: int = 0, owner: int = 0, times: int = 0
) -> Stat:
    """Return the stat of a node without children."""
    created, changed = times + czxid, times + (mzxid or czxid)
    return Stat(czxid, mzxid or czxid, created, changed, version, 0, 0, owner, size, 0, czxid)


def data(content: bytes, found: Stat) -> GetDataResponse:
    return GetDataResponse(content, found)
