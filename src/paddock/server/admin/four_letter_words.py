"""Four-letter words: the metrics of a server as text, on the client port.

The formats are upstream's to the letter, because monitoring tools parse them. A word that is not on
the whitelist is answered with a sentence that says so; so is any word while the server cannot serve
sessions.

An answer is a series of short texts, made while it is sent. Its subjects are listed at the
beginning; those that are gone when their turn comes are skipped.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from paddock.server.admin.metrics import (
    NOT_SERVING,
    VERSION,
    Metrics,
    operation_name,
    path_text,
    session_of,
)
from paddock.server.connections.admission import AdmittedConnection
from paddock.server.connections.paced_writer import in_pieces
from paddock.server.statistics import ConnectionReport

_UINT64: Final = (1 << 64) - 1
_VERSION_LINE: Final = f"Zookeeper version: {VERSION}\n"
# Words that do not depend on whether sessions are served.
_ALWAYS_ANSWERED: Final = frozenset({"envi", "gtmk", "stmk"})
_CHANGING: Final = frozenset({"crst", "srst", "stmk"})


class FourLetterWords:
    """The four-letter words of one server."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics
        self._service = metrics.service
        self._words: dict[str, Callable[[], Iterable[str]]] = {
            "conf": lambda: [*_lines(metrics.configuration(), "="), metrics.membership()],
            "cons": self._cons,
            "crst": lambda: _done(metrics.reset_connections, "Connection stats reset.\n"),
            "dirs": lambda: ["datadir_size: {}\nlogdir_size: {}\n".format(*metrics.sizes())],
            "dump": lambda: self._dump(list(self._service.connections)),
            "envi": lambda: ["Environment:\n", *_lines(metrics.environment(), "=")],
            "gtmk": lambda: [str(metrics.trace_mask)],
            "hash": lambda: ["{:x}: {}\n".format(*metrics.digest())],
            "isro": lambda: ["rw" if self._service.is_open else "ro"],
            "mntr": lambda: [f"zk_{line}" for line in _lines(metrics.monitor(), "\t")],
            "ruok": lambda: ["imok"],
            "srst": lambda: _done(metrics.reset, "Server stats reset.\n"),
            "srvr": lambda: [_VERSION_LINE, *_lines(metrics.summary(), ": ")],
            "stat": self._stat,
            "stmk": lambda: [str(metrics.trace_mask)],
            "wchc": self._wchc,
            "wchp": self._wchp,
            "wchs": self._wchs,
        }

    def answer(self, word: bytes) -> Iterator[bytes] | None:
        """Return the answer to a word and its argument; None if it is part of a frame instead."""
        try:
            name = word[:4].decode("ascii")
        except UnicodeDecodeError:
            return None
        found = self._words.get(name)
        if found is None:
            return None
        if not self._service.config.answers_word(name):
            return in_pieces([f"{name} is not executed because it is not in the whitelist.\n"])
        if not self._service.is_serving() and name not in _ALWAYS_ANSWERED:
            return in_pieces(["null" if name == "isro" else f"{NOT_SERVING}\n"])
        if name == "stmk":
            self._metrics.trace_mask = int.from_bytes(word[4:12], "big", signed=True)
        return in_pieces(found())

    def say(self, name: str) -> Iterator[bytes] | None:
        """Return the answer to a word for the owner of the server, who need not be on a whitelist.

        None if there is no such word, or it changes something.
        """
        found = None if name in _CHANGING else self._words.get(name)
        if found is None:
            return None
        is_answered = self._service.is_serving() or name in _ALWAYS_ANSWERED
        return in_pieces(found() if is_answered else [f"{NOT_SERVING}\n"])

    def _stat(self) -> Iterator[str]:
        return chain(
            [f"{_VERSION_LINE}Clients:\n"],
            (f" {_briefly(one.report())})\n" for one in list(self._service.connections)),
            ["\n", *_lines(self._metrics.summary(), ": ")],
        )

    def _cons(self) -> Iterator[str]:
        # Listed now: the connection that asks is gone when the first piece is sent.
        each = (f" {_fully(one.report())})\n" for one in list(self._service.connections))
        return chain(each, ["\n"])

    def _wchs(self) -> list[str]:
        data = self._service.watches.data
        return [
            f"{data.watcher_count()} connections watching {data.path_count()} paths\n",
            f"Total watches:{data.size}\n",
        ]

    def _wchc(self) -> Iterator[str]:
        data = self._service.watches.data
        for watcher in data.watchers():
            paths = data.paths_of(watcher)
            if paths:
                yield f"0x{session_of(watcher):x}\n"
            for path in paths:
                yield f"\t{path_text(path)}\n"
        yield "\n"

    def _wchp(self) -> Iterator[str]:
        data = self._service.watches.data
        for path in data.paths():
            watchers = data.watchers_of(path)
            if watchers:
                yield f"{path_text(path)}\n"
            for watcher in watchers:
                yield f"\t0x{session_of(watcher):x}\n"
        yield "\n"

    def _dump(self, connections: list[AdmittedConnection]) -> Iterator[str]:
        yield "SessionTracker dump:\nSession "
        tracker = self._service.tracker
        yield from self._sets(
            (tracker.deadline(one), f"0x{one.session:x}") for one in tracker.all()
        )
        ephemerals = self._service.machine.tree.ephemerals
        yield f"ephemeral nodes dump:\nSessions with Ephemerals ({len(ephemerals)}):\n"
        for session in list(ephemerals):
            yield f"0x{session:x}:\n"
            for path in list(ephemerals.get(session, {})):
                yield f"\t{path_text(path)}\n"
        yield "Connections dump:\nConnections "
        reports = (connection.report() for connection in connections)
        yield from self._sets(
            (one.silent_until, f"ip: /{one.where()} sessionId: 0x{one.session:x}")
            for one in reports
        )

    def _sets(self, deadlines: Iterable[tuple[float, str]]) -> Iterator[str]:
        """Yield those that expire in the same tick together, the earliest first."""
        tick = self._service.config.tick_time_ms / 1000
        sets: dict[int, list[str]] = {}
        total = 0
        for deadline, one in deadlines:
            sets.setdefault(int(deadline / tick) + 1, []).append(one)
            total += 1
            yield ""
        yield f"Sets ({len(sets)})/({total}):\n"
        for number in sorted(sets):
            due = _java_date(self._metrics.date_ms(number * tick))
            yield f"{len(sets[number])} expire at {due}:\n"
            for one in sets[number]:
                yield f"\t{one}\n"


def _done(reset: Callable[[], None], text: str) -> list[str]:
    reset()
    return [text]


def _lines(values: Mapping[str, object], separator: str) -> list[str]:
    return [f"{key}{separator}{value}\n" for key, value in values.items()]


def _briefly(report: ConnectionReport) -> str:
    """Return a connection in one line, with its last bracket left open."""
    return (
        f"/{report.where()}[{report.interest:x}]"
        f"(queued={report.queued},recved={report.tally.received},sent={report.sent}"
    )


def _fully(report: ConnectionReport) -> str:
    """Return a connection and its session in one line, with the last bracket left open."""
    brief = _briefly(report)
    if not report.session:
        return brief
    tally = report.tally
    latency = tally.latency_ms
    xid = f",lcxid=0x{tally.xid:x}" if tally.xid >= 0 else ""
    return (
        f"{brief},sid=0x{report.session:x},lop={operation_name(tally.operation)}"
        f",est={tally.established_ms},to={report.timeout_ms}{xid}"
        f",lzxid=0x{report.last_zxid & _UINT64:x},lresp={int(report.responded_at * 1000)}"
        f",llat={int(tally.last_latency_ms)},minlat={int(latency.min)}"
        f",avglat={int(latency.average())},maxlat={int(latency.max)}"
    )


def _java_date(time_ms: int) -> str:
    """Return a date in Java's format: `Sun Nov 15 06:30:01 UTC 2026`."""
    local = datetime.fromtimestamp(time_ms // 1000, UTC).astimezone()
    return local.strftime("%a %b %d %H:%M:%S %Z %Y")
