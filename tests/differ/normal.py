"""Answers made comparable: session ids, times and unspecified orders are taken out, zxids stay.

zxids are counted from the start of the segment, those of events as well. A time is not compared
between the servers, but each server must show one time for one zxid, always.
"""

from __future__ import annotations

from typing import Any

from tests.differ import rules
from tests.differ.rules import Rules
from tests.support.records import Event, Op, Reply, Result, Stat

_STATS = (Op.EXISTS, Op.SET_DATA, Op.SET_ACL)
_CREATES_WITH_STAT = (Op.CREATE2, Op.CREATE_CONTAINER, Op.CREATE_TTL)


class Normaliser:
    """One server's view of ids, zxids and times."""

    def __init__(self, only: Rules) -> None:
        self._compares_event_zxids = only.allow(rules.EVENT_ZXIDS)
        self.start_zxid = 0
        self._sessions: dict[int, str] = {}
        self._times: dict[int, int] = {}

    def begin(self, start_zxid: int) -> None:
        self.start_zxid = start_zxid
        self._sessions.clear()
        self._times.clear()

    def add_session(self, session_id: int, name: str) -> None:
        self._sessions[session_id] = name

    def zxid(self, zxid: int) -> Any:
        if zxid <= 0:
            return zxid
        # What happened before the segment has another number on each server.
        return zxid - self.start_zxid if zxid > self.start_zxid else "before"

    def message(self, message: Reply | Event) -> Any:
        if isinstance(message, Event):
            zxid = self.zxid(message.zxid) if self._compares_event_zxids else -1
            return ("event", message.type, message.path, message.state, zxid)
        zxid = message.zxid if message.op in (Op.AUTH, Op.SASL) else self.zxid(message.zxid)
        body = message.body if message.err else self._body(message)
        return ("reply", message.op, message.xid, zxid, message.err, body)

    def _body(self, reply: Reply) -> Any:
        op = reply.op
        if not reply.body:
            return b""
        if op in _STATS:
            assert len(reply.body) == 68, "more than a Stat"
            return self._stat(reply.stat)
        if op in _CREATES_WITH_STAT:
            return (reply.path, self._stat(reply.stat))
        if op == Op.GET_DATA:
            return (reply.data, self._stat(reply.stat))
        if op in (Op.GET_CHILDREN, Op.GET_EPHEMERALS):
            return sorted(reply.strings)
        if op == Op.GET_CHILDREN2:
            return (sorted(reply.strings), self._stat(reply.stat))
        if op == Op.GET_ACL:
            return (sorted(map(str, reply.acl)), self._stat(reply.stat))
        if op == Op.WHO_AM_I:
            return sorted(reply.pairs)
        if op in (Op.MULTI, Op.MULTI_READ):
            return [self._result(result) for result in reply.results]
        return reply.body

    def _result(self, result: Result) -> Any:
        stat = None if result.stat is None else self._stat(result.stat)
        return (result.type, result.err, result.path, stat, result.data, result.children)

    def _stat(self, stat: Stat) -> Any:
        return (
            self.zxid(stat.czxid),
            self.zxid(stat.mzxid),
            self._time(stat.czxid, stat.ctime),
            self._time(stat.mzxid, stat.mtime),
            stat.version,
            stat.cversion,
            stat.aversion,
            self._sessions.get(stat.ephemeral_owner, stat.ephemeral_owner),
            stat.data_length,
            stat.num_children,
            self.zxid(stat.pzxid),
        )

    def _time(self, zxid: int, time_ms: int) -> str:
        if zxid <= self.start_zxid:
            return "before"
        known = self._times.setdefault(zxid, time_ms)
        return "its time" if known == time_ms else f"{time_ms} and {known}"
