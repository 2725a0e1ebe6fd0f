"""A healthy client beside an attack, in a process of its own: it must notice nothing.

Every 100 ms it sets its node and gets it, on one session and one connection. Each round checks that
the watch on the node fired, that the data is what was just written, and that its ephemeral is
there. The first reply that is missing or wrong, and the loss of the connection, end it: it never
connects again, so that nothing can be hidden.

    with Bystander(server.address) as bystander:
        …                           # the attack
        bystander.wait_rounds(5)    # and five more rounds while it lasts
    bystander.report.longest_wait_s
"""

from __future__ import annotations

import select
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from tests.support import requests as rq
from tests.support import wire
from tests.support.host import STOLEN_MAX, ProcessorTime
from tests.support.records import EventType, Mode, Reply, Request

INTERVAL_S = 0.1
#: Shorter than most sessions, and longer than a noisy machine keeps a process from running.
TIMEOUT_MS = 8_000
#: How long a number of rounds may take before it counts as not being served.
ROUNDS_DEADLINE_S = 60.0

PATH = "/bystander"
EPHEMERAL = "/bystander/alive"


@dataclass(frozen=True, slots=True)
class Report:
    """How a bystander fared."""

    seconds: float
    waits_s: tuple[float, ...]
    #: The part of the time in which the host of this machine had the processors.
    stolen: float = 0.0

    @property
    def longest_wait_s(self) -> float:
        return max(self.waits_s)

    @property
    def share_of_rounds(self) -> float:
        """How many rounds there were, of those for which there was time."""
        return len(self.waits_s) / max(1.0, self.seconds / INTERVAL_S)

    def __str__(self) -> str:
        waits = sorted(self.waits_s)
        middle, late = waits[len(waits) // 2], waits[len(waits) * 99 // 100]
        return (
            f"{len(waits)} rounds in {self.seconds:.1f} s, waits {middle * 1000:.1f} ms (median) "
            f"{late * 1000:.1f} ms (p99) {waits[-1] * 1000:.1f} ms (longest), and the host had "
            f"the processors for {self.stolen:.0%} of it"
        )


class Bystander:
    """The process, as a test sees it. Leaving the block stops it and checks how it fared."""

    def __init__(self, address: wire.Address) -> None:
        self._address = address
        self._process: subprocess.Popen[str] | None = None
        self._listener = threading.Thread(target=self._listen)
        self._condition = threading.Condition()
        self._is_ready = False
        self._is_over = False
        self._failure: str | None = None
        self._waits_s: list[float] = []
        self._begun = 0.0
        self._before = ProcessorTime.now()
        self.session_id = 0
        self.report = Report(0.0, ())

    def __enter__(self) -> Self:
        host, port = self._address
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.fault.stage.bystander", host, str(port)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            cwd=Path(__file__).parents[3],
        )
        self._listener.start()
        try:
            self._wait(lambda: self._is_ready, "the bystander's first round")
        except BaseException:
            self._end()
            raise
        self._begun = time.monotonic()
        self._before = ProcessorTime.now()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        try:
            if error is None:
                self.wait_rounds(1)
        finally:
            seconds = time.monotonic() - self._begun
            self._end()
        if error is None:
            assert self._failure is None, f"the bystander was harmed: {self._failure}"
            self.report = Report(seconds, tuple(self._waits_s), self._before.stolen_since())
            self._check(self.report)

    def wait_rounds(self, count: int) -> None:
        """Wait until so many more rounds are done."""
        wanted = len(self._waits_s) + count
        self._wait(lambda: len(self._waits_s) >= wanted, f"{count} rounds of the bystander")

    @staticmethod
    def _check(report: Report) -> None:
        if report.stolen > STOLEN_MAX:
            # All its replies were right, and how long they took says nothing about the server.
            return
        # No figures of speed: these only say that it was served all the time.
        assert report.longest_wait_s < TIMEOUT_MS / 1000, str(report)
        assert report.share_of_rounds > 0.25, str(report)

    def _wait(self, condition: Callable[[], bool], what: str) -> None:
        with self._condition:
            arrived = self._condition.wait_for(
                lambda: self._is_over or condition(), ROUNDS_DEADLINE_S
            )
        assert self._failure is None, f"the bystander was harmed: {self._failure}"
        assert arrived, f"not in {ROUNDS_DEADLINE_S} seconds: {what}"
        assert not self._is_over, f"the bystander ended before {what}"

    def _listen(self) -> None:
        """Take what the process says, line by line."""
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            word, _, rest = line.strip().partition(" ")
            with self._condition:
                if word == "ready":
                    self.session_id = int(rest, 16)
                    self._is_ready = True
                elif word == "round":
                    self._waits_s.append(float(rest))
                else:
                    self._failure = rest
                self._condition.notify_all()
        with self._condition:
            self._is_over = True
            self._condition.notify_all()

    def _end(self) -> None:
        assert self._process is not None
        assert self._process.stdin is not None
        self._process.stdin.close()
        try:
            self._process.wait(wire.DEADLINE_S + ROUNDS_DEADLINE_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._listener.join()
        assert self._process.stdout is not None
        self._process.stdout.close()


def round_requests(number: int) -> tuple[Request, ...]:
    return (
        rq.set_data(PATH, b"%d" % number),
        rq.get_data(PATH, watch=True),
        rq.exists(EPHEMERAL),
    )


def check_round(number: int, client: wire.Client) -> None:
    """Do one round, and insist on every byte that matters of it."""
    arrived = client.messages(*round_requests(number))
    event, *replies = arrived
    assert event == wire.events((EventType.DATA_CHANGED, PATH))[0], arrived
    first, second, third = replies
    assert isinstance(first, Reply)
    assert isinstance(second, Reply)
    assert isinstance(third, Reply)
    assert first.stat.version == number, arrived
    assert second.data == b"%d" % number, arrived
    assert third.stat.ephemeral_owner == client.session_id, arrived


def main(host: str, port: int) -> None:
    """Be the bystander until the input ends."""
    client = wire.connect((host, port), timeout_ms=TIMEOUT_MS, deadline_s=ROUNDS_DEADLINE_S)
    first = client.calls(
        rq.create(PATH), rq.create(EPHEMERAL, flags=Mode.EPHEMERAL), rq.get_data(PATH, watch=True)
    )
    assert wire.errors(first) == [0, 0, 0]
    print(f"ready {client.session_id:x}", flush=True)
    number = 0
    due = time.monotonic()
    try:
        while not select.select([sys.stdin], [], [], max(0.0, due - time.monotonic()))[0]:
            number += 1
            begun = time.monotonic()
            check_round(number, client)
            now = time.monotonic()
            print(f"round {now - begun}", flush=True)
            due = max(due + INTERVAL_S, now)
        # Nothing is left behind, so that the next one finds the server as this one did.
        assert wire.errors(client.calls(rq.delete(EPHEMERAL), rq.delete(PATH))) == [0, 0]
        client.close()
    except Exception as problem:
        print(f"failed in round {number}: {problem!r}".replace("\n", " "), flush=True)


if __name__ == "__main__":
    main(sys.argv[1], int(sys.argv[2]))
