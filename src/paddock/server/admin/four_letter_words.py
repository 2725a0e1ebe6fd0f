"""Four-letter words: what a server says about itself to anybody with a socket.

The formats are upstream's to the letter, because monitoring tools parse them. A word that is not
on the whitelist is answered with a sentence that says so. While the server cannot serve sessions,
the words say that instead of pretending.

An answer is a series of short texts, made while it is sent. Whatever it is about is listed at the
beginning; what is gone when its turn comes is passed over.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime
from itertools import chain
from typing import Final

from paddock.server.admin.metrics import NOT_SERVING, VERSION, Figures, operation_name, path_text
from paddock.server.admin.paced_writer import in_pieces
from paddock.server.sessions.tracker import Client
from paddock.server.statistics import ConnectionReport
from paddock.state.watcher import Watcher

_UINT64: Final = (1 << 64) - 1
# These say the same whether sessions are served or not.
_ALWAYS_ANSWERED: Final = frozenset({"envi", "gtmk", "stmk"})


class FourLetterWords:
    """Answers the words of one server."""

    def __init__(self, figures: Figures) -> None:
        self._figures = figures
        self._service = figures.service
        self._words: dict[str, Callable[[], Iterable[str]]] = {
            "conf": self._conf,
            "cons": self._cons,
            "crst": self._crst,
            "dirs": self._dirs,
            "dump": self._dump,
            "envi": self._envi,
            "gtmk": lambda: [str(figures.trace_mask)],
            "hash": self._hash,
            "isro": lambda: ["rw" if self._service.is_open else "ro"],
            "mntr": self._mntr,
            "ruok": lambda: ["imok"],
            "srst": self._srst,
            "srvr": self._srvr,
            "stat": self._stat,
            "stmk": lambda: [str(figures.trace_mask)],
            "wchc": self._wchc,
            "wchp": self._wchp,
            "wchs": self._wchs,
        }

    def answer(self, word: bytes) -> Iterator[bytes] | None:
        """Answer a word, with what stands behind it; None if it is none, but part of a frame."""
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
            self._figures.trace_mask = int.from_bytes(word[4:12], "big", signed=True)
        return in_pieces(found())

    def _srvr(self) -> list[str]:
        return [f"Zookeeper version: {VERSION}\n", *_lines(self._figures.summary(), ": ")]

    def _stat(self) -> Iterator[str]:
        return chain(
            [f"Zookeeper version: {VERSION}\nClients:\n"],
            (f" {_briefly(one.report())})\n" for one in list(self._service.connections)),
            ["\n", *_lines(self._figures.summary(), ": ")],
        )

    def _cons(self) -> Iterator[str]:
        each = (f" {_fully(one.report())})\n" for one in list(self._service.connections))
        return chain(each, ["\n"])

    def _crst(self) -> list[str]:
        self._figures.reset_connections()
        return ["Connection stats reset.\n"]

    def _srst(self) -> list[str]:
        self._figures.reset()
        return ["Server stats reset.\n"]

    def _mntr(self) -> list[str]:
        return [f"zk_{key}\t{value}\n" for key, value in self._figures.monitor().items()]

    def _conf(self) -> list[str]:
        return _lines(self._figures.configuration(), "=")

    def _dirs(self) -> list[str]:
        snapshots, log = self._figures.sizes()
        return [f"datadir_size: {snapshots}\n", f"logdir_size: {log}\n"]

    def _envi(self) -> list[str]:
        return ["Environment:\n", *_lines(self._figures.environment(), "=")]

    def _hash(self) -> list[str]:
        zxid, digest = self._figures.digest()
        return [f"{zxid:x}: {digest}\n"]

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
                yield f"0x{_session(watcher):x}\n"
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
                yield f"\t0x{_session(watcher):x}\n"
        yield "\n"

    def _dump(self) -> Iterator[str]:
        return self._dump_of(list(self._service.connections))

    def _dump_of(self, connections: list[Client]) -> Iterator[str]:
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
        """Give what comes to its end in the same tick together, the earliest first."""
        tick = self._service.config.tick_time_ms / 1000
        sets: dict[int, list[str]] = {}
        total = 0
        for deadline, one in deadlines:
            sets.setdefault(int(deadline / tick) + 1, []).append(one)
            total += 1
            yield ""
        yield f"Sets ({len(sets)})/({total}):\n"
        for number in sorted(sets):
            due_ms = self._figures.date_ms(number * tick)
            yield f"{len(sets[number])} expire at {_java_date(due_ms)}:\n"
            for one in sets[number]:
                yield f"\t{one}\n"


def _lines(values: Mapping[str, object], separator: str) -> list[str]:
    return [f"{key}{separator}{value}\n" for key, value in values.items()]


def _briefly(report: ConnectionReport) -> str:
    """Give a connection in one line, of which the last bracket is left open."""
    counts = f"queued={report.queued},recved={report.tally.received},sent={report.sent}"
    return f"/{report.where()}[{report.interest:x}]({counts}"


def _fully(report: ConnectionReport) -> str:
    """Give a connection and what its session did last, with the last bracket left open."""
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
    """Write a time of day as Java does: `Sun Nov 15 06:30:01 UTC 2026`."""
    local = datetime.fromtimestamp(time_ms // 1000, UTC).astimezone()
    return local.strftime("%a %b %d %H:%M:%S %Z %Y")


def _session(watcher: Watcher) -> int:
    assert isinstance(watcher, Client)
    return watcher.session
