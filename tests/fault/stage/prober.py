"""How long others wait: a read, a write and a ping, each again every few milliseconds.

A process of its own has a connection for each of the three, so that none waits for another, and
sends the next request of a kind as soon as the one before it is answered and the interval is over.
The longest wait is that of the server's loop, give or take the interval.

    with Prober(server.address) as prober:
        …                   # the attack
        waits = prober.mark()

`mark` waits until each kind was answered once more, so a wait that has begun is part of it.
"""

from __future__ import annotations

import os
import selectors
import socket
import struct
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import requests as rq
from tests.support import wire
from tests.support.records import INT, REPLY_HEADER, Code, Request

INTERVAL_S = 0.005
TIMEOUT_MS = 60_000
#: How long a probe may take before the server counts as dead.
DEADLINE_S = 120.0

PATH = "/prober"


@dataclass(frozen=True, slots=True)
class Waits:
    """The longest wait for each kind of request, in seconds, and how many were answered."""

    read: float
    write: float
    ping: float
    rounds: int

    @property
    def longest(self) -> float:
        return max(self.read, self.write, self.ping)

    def __str__(self) -> str:
        return (
            f"read {self.read * 1000:.0f} ms, write {self.write * 1000:.0f} ms,"
            f" ping {self.ping * 1000:.0f} ms ({self.rounds} rounds)"
        )


class Prober:
    """The process, as a test sees it."""

    def __init__(self, address: wire.Address) -> None:
        self._address = address
        self._process: subprocess.Popen[str] | None = None

    def __enter__(self) -> Self:
        host, port = self._address
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fault.stage.prober", host, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        try:
            self.mark()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._end()

    def mark(self) -> Waits:
        """Return the longest waits since the last mark, and begin anew."""
        assert self._process is not None
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write("\n")
        self._process.stdin.flush()
        word, _, rest = self._process.stdout.readline().strip().partition(" ")
        assert word == "waits", f"the prober was harmed: {rest or 'it is gone'}"
        read, write, ping, rounds = rest.split()
        return Waits(float(read), float(write), float(ping), int(rounds))

    def _end(self) -> None:
        assert self._process is not None
        self._process.kill()
        self._process.wait()
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()


class _Probe:
    """One kind of request on a connection of its own."""

    def __init__(self, address: wire.Address, request: Request) -> None:
        self.socket = socket.create_connection(address, timeout=DEADLINE_S)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        body = wire.connect_body(timeout_ms=TIMEOUT_MS)
        self.socket.sendall(INT.pack(len(body)) + body)
        (length,) = INT.unpack(self.socket.recv(4, socket.MSG_WAITALL))
        reply = wire.decode_connect(self.socket.recv(length, socket.MSG_WAITALL))
        assert reply.session_id, "no session"
        self.socket.setblocking(False)
        xid = 1 if request.xid is None else request.xid
        payload = struct.pack(">ii", xid, request.op) + request.body
        self._frame = INT.pack(len(payload)) + payload
        self._received = b""
        # When it was sent, if it is under way; and when the next one is due.
        self.sent_at = 0.0
        self.due = 0.0
        # Since the last mark was answered.
        self.longest = 0.0
        self.rounds = 0
        # How many must have been answered before the next mark is.
        self.wanted = 0

    def send(self, now: float) -> None:
        assert self.socket.send(self._frame) == len(self._frame)
        self.sent_at = now
        self.due = now + INTERVAL_S

    def receive(self) -> None:
        more = self.socket.recv(4096)
        assert more, "disconnected"
        self._received += more
        if len(self._received) < 4 + REPLY_HEADER.size:
            return
        (length,) = INT.unpack_from(self._received)
        if len(self._received) < 4 + length:
            return
        _, _, error = REPLY_HEADER.unpack_from(self._received, 4)
        assert error == Code.OK, f"error {error}"
        self._received = self._received[4 + length :]
        self.longest = max(self.longest, time.monotonic() - self.sent_at)
        self.sent_at = 0.0
        self.rounds += 1


def main(host: str, port: int) -> None:
    """Probe until the input ends; at each of its lines say what the longest waits were."""
    address = (host, port)
    with wire.connect(address) as maker:
        assert maker.call(rq.create(PATH, b"")).err in (Code.OK, Code.NODE_EXISTS)
        maker.close()
    probes = [
        _Probe(address, rq.get_data(PATH)),
        _Probe(address, rq.set_data(PATH, b"")),
        _Probe(address, rq.ping()),
    ]
    selector = selectors.DefaultSelector()
    for probe in probes:
        selector.register(probe.socket, selectors.EVENT_READ, probe)
    selector.register(0, selectors.EVENT_READ)
    is_marked = False
    while True:
        now = time.monotonic()
        for probe in probes:
            if not probe.sent_at and probe.due <= now:
                probe.send(now)
        idle = [probe.due for probe in probes if not probe.sent_at]
        timeout = max(0.0, min(idle) - time.monotonic()) if idle else DEADLINE_S
        ready = selector.select(timeout)
        assert ready or idle, "no answer"
        for key, _ in ready:
            if key.data is None:
                if not os.read(0, 4096):
                    return
                is_marked = True
                for probe in probes:
                    # What is under way, and one more that was sent after the mark.
                    probe.wanted = probe.rounds + 2
            else:
                key.data.receive()
        if is_marked and all(probe.rounds >= probe.wanted for probe in probes):
            longest = " ".join(str(probe.longest) for probe in probes)
            print(f"waits {longest} {min(probe.rounds for probe in probes)}", flush=True)
            is_marked = False
            for probe in probes:
                probe.longest = 0.0
                probe.rounds = 0


if __name__ == "__main__":
    try:
        main(sys.argv[1], int(sys.argv[2]))
    except Exception as problem:
        print(f"failed {problem!r}".replace("\n", " "), flush=True)
