"""Metrics of servers, asked with four-letter words: one connection for each word.

`mntr`, which knows more than `srvr`, has to be in the server's `4lw.commands.whitelist`. What is
not known is None. A server that cannot be asked has a `problem`, in words, and nothing else.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import re
import ssl
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any, Final, TypeVar

if TYPE_CHECKING:
    from paddock.client.session.hosts import Host

_T = TypeVar("_T", int, float)

_ANSWER_BYTES_MAX: Final = 1_000_000
# How many requests we make for each look ourselves: servers count them, too.
_WORDS: Final = 2
_REFUSED: Final = "is not executed because it is not in the whitelist"
_NOT_SERVING: Final = "not currently serving requests"
# Versions of Apache's have the commit behind them, and the date.
_VERSION: Final = re.compile(r"(.+?)(?:-[0-9a-f]{40})?(?:, built on .*)?")

# Numbers in the answers, by the name of the field.
_IN_SRVR: Final = {
    "received": "Received",
    "sent": "Sent",
    "clients": "Connections",
    "outstanding": "Outstanding",
    "nodes": "Node count",
}
_IN_MNTR: Final = {
    "sessions": "zk_global_sessions",
    "watches": "zk_watch_count",
    "ephemerals": "zk_ephemerals_count",
    "data_bytes": "zk_approximate_data_size",
    "open_files": "zk_open_file_descriptor_count",
}


@dataclass(slots=True)
class Figures:
    """One server at one moment."""

    server: str
    # Why there is nothing else.
    problem: str | None = None
    mode: str | None = None
    version: str | None = None
    latency_min_ms: float | None = None
    latency_avg_ms: float | None = None
    latency_max_ms: float | None = None
    received: int | None = None
    sent: int | None = None
    # Connections, without the one by which we ask.
    clients: int | None = None
    outstanding: int | None = None
    zxid: str | None = None
    nodes: int | None = None
    has_details: bool = False
    sessions: int | None = None
    watches: int | None = None
    ephemerals: int | None = None
    data_bytes: int | None = None
    uptime_s: float | None = None
    open_files: int | None = None
    # From one look to the next.
    requests_per_s: float | None = None
    # Set by `paddock bench` alone.
    build: str | None = None
    # By a clock that only goes forward.
    asked_at: float = 0.0
    # Everything that `mntr` says, by name.
    details: dict[str, str] = field(default_factory=dict)

    def fields(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        fields = asdict(self)
        del fields["asked_at"], fields["build"], fields["details"]
        return fields

    def take_details(self, found: dict[str, str]) -> None:
        """Take what `mntr` says, by name; it may say nothing."""
        self.has_details = "zk_server_state" in found
        if not self.has_details:
            return
        self.details = found
        for name, key in _IN_MNTR.items():
            setattr(self, name, _number(int, found.get(key)))
        uptime_ms = _number(float, found.get("zk_uptime"))
        self.uptime_s = None if uptime_ms is None else uptime_ms / 1000

    def compare(self, before: Figures | None) -> None:
        """Find out how many requests came in each second since we looked before."""
        if before is None or before.received is None or self.received is None:
            return
        passed = self.asked_at - before.asked_at
        came = self.received - before.received
        # The counter starts from zero again after a restart or a reset.
        if passed > 0 and came >= 0:
            self.requests_per_s = max(0, came - _WORDS) / passed


async def look(host: Host, tls: ssl.SSLContext | None, limit_s: float) -> Figures:
    """Ask a server everything; it never raises because of the server."""
    figures = Figures(str(host))
    try:
        async with asyncio.timeout(limit_s):
            said = await _ask(host, "srvr", tls)
            figures.asked_at = time.monotonic()
            _read_srvr(said, figures)
            details = await _ask(host, "mntr", tls)
    except TimeoutError:
        figures.problem = f"no answer within {limit_s:g} s"
    except OSError as error:
        figures.problem = _reason(error, tls is not None)
    except ValueError as error:
        figures.problem = str(error)
    else:
        figures.take_details(lines_of(details))
    return figures


async def word_of(host: Host, word: str, tls: ssl.SSLContext | None, limit_s: float) -> str | None:
    """Return what a server says to a word; None if it does not answer, or not this word."""
    try:
        async with asyncio.timeout(limit_s):
            said = await _ask(host, word, tls)
    except OSError:
        return None
    return None if _REFUSED in said or _NOT_SERVING in said else said


def lines_of(said: str) -> dict[str, str]:
    """Return the lines of `mntr` by name."""
    return dict(line.split("\t", 1) for line in said.splitlines() if "\t" in line)


async def mntr_of(host: Host, tls: ssl.SSLContext | None, limit_s: float) -> dict[str, str]:
    """Return what `mntr` says, by name; nothing if the server does not answer it."""
    return lines_of(await word_of(host, "mntr", tls, limit_s) or "")


async def build_of(host: Host, tls: ssl.SSLContext | None, limit_s: float) -> str | None:
    """Return the build of a Paddock server, if it answers `envi`: "compiled" or "pure Python"."""
    try:
        async with asyncio.timeout(limit_s):
            said = await _ask(host, "envi", tls)
    except OSError:
        return None
    found = dict(line.split("=", 1) for line in said.splitlines() if "=" in line)
    return found.get("paddock.build")


async def _ask(host: Host, word: str, tls: ssl.SSLContext | None) -> str:
    reader, writer = await asyncio.open_connection(host.name, host.port, ssl=tls)
    try:
        writer.write(word.encode())
        await writer.drain()
        said = b""
        while len(said) < _ANSWER_BYTES_MAX and (piece := await reader.read(65_536)):
            said += piece
    finally:
        writer.transport.abort()
        with contextlib.suppress(OSError):
            await writer.wait_closed()
    return said.decode("utf-8", "replace")


def _read_srvr(said: str, figures: Figures) -> None:
    if _REFUSED in said:
        raise ValueError("does not answer srvr; its 4lw.commands.whitelist should have it")
    if _NOT_SERVING in said:
        raise ValueError("runs, but does not serve")
    found = dict(line.split(": ", 1) for line in said.splitlines() if ": " in line)
    if "Mode" not in found:
        raise ValueError("gave no answer that a ZooKeeper server would give")
    figures.mode, figures.zxid = found["Mode"], found.get("Zxid")
    version = _VERSION.fullmatch(found.get("Zookeeper version", ""))
    figures.version = None if version is None else version[1]
    latencies = [_number(float, one) for one in found.get("Latency min/avg/max", "").split("/")]
    if len(latencies) == 3:
        figures.latency_min_ms, figures.latency_avg_ms, figures.latency_max_ms = latencies
    for name, key in _IN_SRVR.items():
        setattr(figures, name, _number(int, found.get(key)))
    if figures.clients is not None:
        figures.clients = max(0, figures.clients - 1)


def _reason(error: OSError, has_tls: bool) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        return f"its certificate is not accepted: {error.verify_message}"
    if has_tls and isinstance(error, ssl.SSLError | ConnectionResetError):
        return "it ends the TLS handshake; is TLS spoken there?"
    # asyncio has words of its own for what the system says; those of names have negative numbers.
    if error.errno is not None and error.errno > 0:
        return os.strerror(error.errno)
    return error.strerror or str(error) or "cannot be reached"


def _number(kind: type[_T], said: str | None) -> _T | None:
    try:
        number = None if said is None else kind(said)
    except ValueError:
        return None
    return number if number is None or math.isfinite(number) else None
