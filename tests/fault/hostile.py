"""What one attack costs a server: the harness that runs every case of the hostile family.

A case is data: its name, the operation, what its attacker makes large, how the server is prepared,
what is sent, and what the server may take of memory for it. The harness prepares, attacks while a
prober waits for reads, writes and pings of its own, and measures:

    sent       bytes that the attack sent, and those of its preparation
    kept       resident memory at the end of the attack, above that at its beginning
    peak       the same at the worst moment
    waits      the longest that the prober waited for a read, a write and a ping
    restart    for some: the memory and the seconds of the next start, after `kill -9`

An attacker is anonymous, has at most 60 connections, and stays within the documented limits. It may
be refused or disconnected: what counts is what becomes of the others.

Sizes are those of `Stage.scale` 1 times the scale. They are chosen so that a server that does the
work of a case in one step, or keeps what it should not, is far beyond the bounds at scale 1.
"""

from __future__ import annotations

import contextlib
import selectors
import socket
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.fault import siege
from tests.fault.prober import Prober, Waits
from tests.fault.process import FaultServer, eventually
from tests.fault.siege import SLACK_MB, Crowd, Memory, besieged_server, encoded, send_some
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import INT, Request

#: How long the whole of an attack may take.
ATTACK_DEADLINE_S = 240.0
#: How many nodes one transaction of a preparation creates.
CREATES_AT_ONCE = 4_000


@dataclass(frozen=True, slots=True)
class Case:
    """One way to hurt a server."""

    #: What is done, in a few words; also the name of its test.
    name: str
    #: The operation that carries it, or what else does.
    operation: str
    #: What the attacker makes large.
    grows: str
    attack: Callable[[Stage], None]
    prepare: Callable[[Stage], None] | None = None
    #: What it may take of memory at the peak, beyond SLACK_MB: at any scale, and for each of them.
    memory_mb: float = 0.0
    memory_mb_each: float = 0.0
    #: Whether the server is killed afterwards and has to come back within the same memory.
    is_restarted: bool = False
    #: Whether it needs a server that no other case has used.
    is_alone: bool = False
    #: The node below which it has its nodes, if it shares them with other cases.
    root: str | None = None

    def memory_mb_max(self, scale: int) -> float:
        return SLACK_MB + self.memory_mb + self.memory_mb_each * scale


@dataclass(frozen=True, slots=True)
class Cost:
    """What a case took."""

    case: Case
    prepared_bytes: int
    sent_bytes: int
    #: The resident memory before the attack; the next two are what came on top.
    begun_mb: float
    kept_mb: float
    peak_mb: float
    waits: Waits
    restart_mb: float | None = None
    restart_s: float | None = None

    def __str__(self) -> str:
        again = "" if self.restart_s is None else f", next start {self.restart_s:.1f} s"
        return (
            f"{self.sent_bytes / 1000:.0f} kB sent, {self.kept_mb:+.0f} MB kept,"
            f" {self.peak_mb:+.0f} MB peak, {self.waits}{again}"
        )


class Stage:
    """A server and everything that attacks it. Leaving the block disconnects all of them."""

    def __init__(self, server: FaultServer, scale: int, root: str) -> None:
        self.server = server
        self.scale = scale
        #: The node below which a case has its own, since others may use the same server.
        self.root = root
        self.sent_bytes = 0
        #: Who was prepared for the attack.
        self.prepared: list[socket.socket] = []
        #: Whether somebody who asked was disconnected.
        self.is_broken = False
        self._crowd = Crowd(server.address, per_address=60)
        #: Who reads whatever comes, without having been asked.
        self._listeners: list[socket.socket] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._crowd.__exit__(kind, error, trace)

    def path(self, name: object) -> str:
        return f"{self.root}/{name}"

    def join(
        self,
        count: int = 1,
        *,
        receive_bytes: int | None = None,
        timeout_ms: int = wire.SESSION_TIMEOUT_MS,
    ) -> list[socket.socket]:
        """Connect some more, each with a session."""
        return [self._crowd.join_session(receive_bytes, timeout_ms) for _ in range(count)]

    def identified(self, count: int) -> socket.socket:
        """Connect one with so many identities, or with as many as it may have."""
        while True:
            (one,) = self.join()
            packets = [rq.auth("digest", b"u%d:p" % number) for number in range(count)]
            answered = self.ask([one], packets)
            if answered >= count:
                return one
            # The last answer was that it is one too many, and the connection is closed.
            count = answered - 1
            one.close()

    def listen(self, *sockets: socket.socket) -> None:
        """Have these read all that comes while others ask."""
        self._listeners.extend(sockets)

    def send(self, one: socket.socket, data: bytes) -> bool:
        """Send as much as goes at once to a server that may not read, for one who does not."""
        self.sent_bytes += len(data)
        return send_some(one, data)

    def ask(self, sockets: Iterable[socket.socket], requests: Sequence[Request]) -> int:
        """Have each ask all of it, pipelined, and read every reply; events are read as well.

        Returns how many replies the first of them got: fewer than it asked for, if it was
        disconnected.
        """
        data = encoded(requests)
        talks = [_Talk(one, data, len(requests)) for one in sockets]
        self.sent_bytes += len(data) * len(talks)
        self._converse([*talks, *(_Talk(one, b"", 0) for one in self._listeners)], talks)
        self.is_broken = self.is_broken or any(one.replies < len(requests) for one in talks)
        return talks[0].replies

    def create(self, paths: Iterable[str], data: bytes = b"") -> None:
        """Create nodes, many with one request."""
        (one,) = self.join()
        waiting: list[Request] = []
        size = 0
        for path in paths:
            waiting.append(rq.create(path, data))
            size += len(waiting[-1].body)
            if len(waiting) == CREATES_AT_ONCE or size > 800_000:
                self.ask([one], [rq.multi(*waiting)])
                waiting.clear()
                size = 0
        if waiting:
            self.ask([one], [rq.multi(*waiting)])

    def wait_for_sessions(self, at_most: int) -> None:
        """Wait until no more sessions than these are left."""
        (one,) = self.join()

        def count() -> int:
            # Something to do for those who wait, too: a look that costs nothing.
            self.ask([one], [rq.ping()])
            said = wire.four_letter_word(self.server.address, "mntr")
            figures = dict(line.split("\t", 1) for line in said.splitlines())
            return int(figures["zk_global_sessions"])

        eventually(lambda: count() <= at_most, "the end of the sessions")

    @staticmethod
    def _converse(everybody: list[_Talk], awaited: list[_Talk]) -> None:
        limit = time.monotonic() + ATTACK_DEADLINE_S
        with selectors.DefaultSelector() as selector:
            for talk in everybody:
                if talk.register(selector):
                    continue
                talk.is_over = True
            while not all(talk.is_over for talk in awaited):
                left = limit - time.monotonic()
                assert left > 0, f"not in {ATTACK_DEADLINE_S} seconds: the replies to an attack"
                for key, mask in selector.select(left):
                    key.data.go_on(selector, mask)


class _Talk:
    """What one connection still has to send, and what it still has to hear."""

    def __init__(self, one: socket.socket, data: bytes, replies_wanted: int) -> None:
        self.replies = 0
        self.is_over = False
        self._socket = one
        self._data = memoryview(data)
        self._wanted = replies_wanted
        # The beginning of a frame, as far as its length and xid are concerned; and how many bytes
        # of it are still to come, which nobody looks at.
        self._head = b""
        self._rest = 0

    def register(self, selector: selectors.BaseSelector) -> bool:
        """Begin; tells whether there is somebody to talk to."""
        self._socket.setblocking(False)
        events = selectors.EVENT_READ | (selectors.EVENT_WRITE if self._data else 0)
        try:
            selector.register(self._socket, events, self)
        except (ValueError, KeyError):
            return False
        return True

    def go_on(self, selector: selectors.BaseSelector, mask: int) -> None:
        try:
            if mask & selectors.EVENT_WRITE:
                self._data = self._data[self._socket.send(self._data) :]
                if not self._data:
                    selector.modify(self._socket, selectors.EVENT_READ, self)
            if mask & selectors.EVENT_READ:
                data = self._socket.recv(1 << 20)
                if not data:
                    raise ConnectionResetError
                self._take(data)
                self.is_over = self.is_over or self._wanted <= self.replies
        except BlockingIOError:
            pass
        except ConnectionError:
            self.is_over = True
            selector.unregister(self._socket)

    def _take(self, data: bytes) -> None:
        at = 0
        while at < len(data):
            if self._rest:
                step = min(self._rest, len(data) - at)
                self._rest -= step
                at += step
                continue
            step = min(8 - len(self._head), len(data) - at)
            self._head += data[at : at + step]
            at += step
            if len(self._head) == 8:
                (length,) = INT.unpack(self._head[:4])
                (xid,) = INT.unpack(self._head[4:])
                # An event is the answer to nothing.
                self.replies += xid != wire.NOTIFICATION_XID
                self._rest = length - 4
                self._head = b""


class Range:
    """Where cases are run one after the other: most of them on one server.

    A case that needs a server of its own gets one; one that has ended or hurt the server that all
    share leaves a new one to those after it. Without `shares` only those cases share a server that
    share their nodes: memory that one case leaves free is not taken by the next.
    """

    def __init__(self, folder: Path, scale: int, *, shares: bool = True) -> None:
        self._folder = folder
        self._scale = scale
        self._shares = shares
        # How many cases and how many servers there were.
        self._cases = 0
        self._servers = 0
        self._shared = contextlib.ExitStack()
        self._server: FaultServer | None = None
        self._prober: Prober | None = None
        # What several cases use together, as the first of them has prepared it.
        self._stage: Stage | None = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._shared.close()

    def run(self, case: Case) -> Cost:
        """Run a case and measure it. Its bounds are for the caller to check."""
        self._cases += 1
        if case.is_alone or not (self._shares or case.root):
            with contextlib.ExitStack() as stack:
                server, prober = self._start(stack)
                with Stage(server, self._scale, f"/case{self._cases}") as stage:
                    cost = self._measure(case, stage, prober)
                return self._restart(cost, server) if case.is_restarted else cost
        if self._server is None or self._prober is None:
            self._server, self._prober = self._start(self._shared)
        try:
            if case.root is not None:
                return self._measure_together(case, case.root, self._server, self._prober)
            with Stage(self._server, self._scale, f"/case{self._cases}") as stage:
                return self._measure(case, stage, self._prober)
        except BaseException:
            self._server = None
            self._stage = None
            self._shared.close()
            raise

    def _measure_together(self, case: Case, root: str, server: FaultServer, prober: Prober) -> Cost:
        if self._stage is None or self._stage.root != root or self._stage.is_broken:
            self._stage = self._shared.enter_context(Stage(server, self._scale, root))
        else:
            # It is prepared already.
            case = replace(case, prepare=None)
        return self._measure(case, self._stage, prober)

    def _start(self, stack: contextlib.ExitStack) -> tuple[FaultServer, Prober]:
        self._servers += 1
        folder = self._folder / str(self._servers)
        folder.mkdir()
        server = stack.enter_context(besieged_server(folder))
        return server, stack.enter_context(Prober(server.address))

    @staticmethod
    def _measure(case: Case, stage: Stage, prober: Prober) -> Cost:
        server = stage.server
        stage.sent_bytes = 0
        stage.create([stage.root])
        if case.prepare is not None:
            case.prepare(stage)
        prepared, stage.sent_bytes = stage.sent_bytes, 0
        memory = Memory(server.pid)
        prober.mark()
        case.attack(stage)
        waits = prober.mark()
        assert server.alive, server.log_tail()
        siege.assert_no_complaint(server)
        return Cost(
            case,
            prepared,
            stage.sent_bytes,
            memory.begun_mb,
            memory.kept_mb(),
            memory.growth_mb(),
            waits,
        )

    @staticmethod
    def _restart(cost: Cost, server: FaultServer) -> Cost:
        server.kill()
        begun = time.monotonic()
        server.start()
        seconds = time.monotonic() - begun
        more_mb = siege.peak_mb(server.pid) - cost.begun_mb
        return replace(cost, restart_mb=more_mb, restart_s=seconds)


def check(cost: Cost, scale: int, wait_s_max: float) -> list[str]:
    """Return what is wrong with a cost: a sentence for each bound that does not hold."""
    case, wrong = cost.case, []
    most = case.memory_mb_max(scale)
    if cost.peak_mb > most:
        wrong.append(f"{cost.peak_mb:.0f} MB more at the peak, at most {most:.0f} expected")
    if cost.restart_mb is not None and cost.restart_mb > most:
        wrong.append(
            f"{cost.restart_mb:.0f} MB more at the next start, at most {most:.0f} expected"
        )
    if cost.waits.longest > wait_s_max:
        wrong.append(f"others waited: {cost.waits}; at most {wait_s_max * 1000:.0f} ms expected")
    return wrong
