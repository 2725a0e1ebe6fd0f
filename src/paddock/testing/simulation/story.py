"""The text of a history: one line for each moment, as a person follows it.

12.034  c2 #4     set /a b'c2-7'                          xid 9
12.041  c2 #4       reply set /a: 0x1f version 3          xid 9
12.050         ***  server 1 killed
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

from paddock.errors import OK, error_from_code
from paddock.protocol import opcodes, operations
from paddock.protocol.jute import DecodeError, Reader
from paddock.protocol.records import ConnectRequest, ConnectResponse, Stat
from paddock.testing.simulation import history as h
from paddock.testing.simulation.frames import (
    Reply,
    Request,
    decode_event,
    decode_reply,
    decode_request,
    is_event,
    reply_xid,
)
from paddock.testing.simulation.history import History, Logged, Moment

_EVENTS = {1: "created", 2: "deleted", 3: "changed", 4: "children of"}


def tell(
    history: History, places: Iterable[int] | None = None, *, pings: bool = False
) -> list[str]:
    """Return a line for each moment; with `places` for those alone."""
    wanted = None if places is None else set(places)
    told = []
    for place, (moment, line) in enumerate(_tell_all(history)):
        if wanted is None:
            if line and (pings or " ping" not in line) and moment.kind != h.LOG:
                told.append(line)
        elif place in wanted:
            told.append(line)
    return told


def _tell_all(history: History) -> Iterator[tuple[Moment, str]]:
    clients: dict[int, str] = {}
    # The operation of a reply is that of the oldest request with its xid.
    waiting: dict[int, deque[Request]] = {}
    for moment in history:
        if moment.kind == h.CONNECT:
            clients[moment.connection] = moment.text.partition(" ")[0]
            waiting[moment.connection] = deque()
        who = clients.get(moment.connection, "")
        if moment.connection:
            who = f"{who} #{moment.connection}"
        elif moment.kind == h.NOTE:
            who = moment.text.partition(" ")[0]
        try:
            what = _text(moment, waiting.get(moment.connection, deque()))
        except DecodeError as error:
            what = f"{moment.kind} that cannot be decoded: {error}"
        yield moment, f"{moment.at:10.4f}  {who:9} {what}"


def _text(moment: Moment, waiting: deque[Request]) -> str:
    if moment.kind == h.CONNECT:
        request = ConnectRequest.read(Reader(moment.frame))
        asked = f"session 0x{request.session_id:x}" if request.session_id else "a new session"
        server = moment.text.partition(" ")[2]
        return f"connects to {server}: asks for {asked}, has seen 0x{request.last_zxid_seen:x}"
    if moment.kind == h.GRANTED:
        granted = ConnectResponse.read(Reader(moment.frame))
        if not granted.session_id:
            return "  is told that its session is over"
        said = " (read-only)" if granted.read_only else ""
        return f"  session 0x{granted.session_id:x} is its, timeout {granted.timeout_ms} ms{said}"
    if moment.kind == h.REQUEST:
        request_ = decode_request(moment.frame)
        waiting.append(request_)
        return f"{_request(request_)}   xid {request_.xid}"
    if moment.kind in (h.REPLY, h.EVENT):
        if is_event(moment.frame):
            event = decode_event(moment.frame)
            kind = _EVENTS.get(event.kind, str(event.kind))
            return f"  event {kind} {_path(event.path)}: 0x{event.zxid & (1 << 64) - 1:x}"
        xid = reply_xid(moment.frame)
        asked_ = next((one for one in waiting if one.xid == xid), None)
        if asked_ is None:
            return f"  reply to nothing   xid {xid}"
        waiting.remove(asked_)
        reply = decode_reply(asked_.operation, moment.frame)
        return f"  reply {_request(asked_)}: {_reply(reply)}   xid {xid}"
    if moment.kind == h.LOST:
        return f"  connection lost: {moment.text}"
    if moment.kind == h.LOG:
        assert moment.logged is not None
        return "log  " + _logged(moment.logged)
    if moment.kind == h.NOTE:
        return f"  says: {moment.text.partition(' ')[2]}"
    return f"***  {moment.text}"


def _request(request: Request) -> str:
    name = operations.name_of(request.operation)
    body: Any = request.body
    if isinstance(body, list):
        steps = [_request(Request(0, operation, one)) for operation, one in body]
        return f"{name} [{', '.join(steps)}]"
    words = [name]
    path = getattr(body, "path", None)
    if path is not None:
        words.append(_path(path))
    if hasattr(body, "data") and request.operation not in (
        opcodes.SET_WATCHES,
        opcodes.SET_WATCHES2,
    ):
        words.append(repr(body.data))
    if getattr(body, "flags", 0) in (1, 3):
        words.append("ephemeral")
    if getattr(body, "flags", 0) in (2, 3):
        words.append("sequential")
    if getattr(body, "version", -1) != -1:
        words.append(f"version {body.version}")
    if getattr(body, "watch", False):
        words.append("watch")
    if getattr(body, "mode", None) is not None:
        words.append(("persistent", "recursive")[body.mode])
    if request.operation in (opcodes.SET_WATCHES, opcodes.SET_WATCHES2):
        words.append(f"since 0x{body.relative_zxid:x}")
        for kind in ("data", "exists", "child", "persistent", "recursive"):
            paths = getattr(body, kind)
            if paths:
                words.append(f"{kind} " + " ".join(map(_path, paths)))
    return " ".join(words)


def _reply(reply: Reply) -> str:
    words = [f"0x{reply.zxid & (1 << 64) - 1:x}"]
    if reply.error != OK:
        words.append(type(error_from_code(reply.error)).__name__)
    body: Any = reply.body
    if isinstance(body, list):
        words.append(str([code for _, code, _ in body]))
    if isinstance(body, Stat):
        words.append(f"version {body.version}")
    elif hasattr(body, "data"):
        words.append(f"{body.data!r} version {body.stat.version}")
    elif hasattr(body, "path"):
        words.append(_path(body.path or b""))
    names = getattr(body, "children", None) or getattr(body, "values", None)
    if names is not None:
        words.append("[" + " ".join(map(_path, sorted(names))) + "]")
    return " ".join(words)


def _logged(logged: Logged) -> str:
    what = f"0x{logged.zxid:x} {logged.about}" if logged.zxid else logged.about
    if logged.session:
        what += f" session 0x{logged.session:x}"
    if logged.about == h.CALL:
        what += f" xid {logged.xid}"
        if logged.error:
            what += f" {type(error_from_code(logged.error)).__name__}"
    if logged.path:
        what += f" {logged.path}"
    return what


def _path(path: bytes) -> str:
    return path.decode(errors="replace")
