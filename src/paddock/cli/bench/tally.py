"""The measurement of a cell: throughput, latencies, and the CPU time of the client.

Operations count that are answered between begin and end. Latencies are also noted of those that are
answered later, since the slowest are among them.
"""

import time
from dataclasses import dataclass
from typing import Any, Final

from paddock.cli.bench.latencies import Latencies
from paddock.cli.bench.plan import Cell

# From this share of a processor on, the client is what limits a cell: it has one thread.
BUSY: Final = 0.9


@dataclass(frozen=True, slots=True)
class Measurement:
    """What was measured in one cell."""

    cell: Cell
    seconds: float
    operations: int
    refusals: int
    # Of those refusals the first, in words.
    problem: str | None
    p50_ms: float | None
    p99_ms: float | None
    p999_ms: float | None
    max_ms: float | None
    client_cpu: float

    @property
    def rate(self) -> float:
        """Operations in a second."""
        return self.operations / self.seconds

    @property
    def is_client_busy(self) -> bool:
        """Whether the client, and not the server, may be the limit."""
        return self.client_cpu >= BUSY

    def fields(self) -> dict[str, Any]:
        """Return the fields for JSON."""
        return {
            "operation": self.cell.operation,
            "clients": self.cell.clients,
            "window": self.cell.window,
            "seconds": round(self.seconds, 6),
            "operations": self.operations,
            "ops_per_s": round(self.rate, 3),
            "p50_ms": self.p50_ms,
            "p99_ms": self.p99_ms,
            "p999_ms": self.p999_ms,
            "max_ms": self.max_ms,
            "client_cpu": round(self.client_cpu, 4),
            "errors": self.refusals,
            "problem": self.problem,
        }


class Tally:
    """Counts while a cell runs."""

    def __init__(self) -> None:
        self._is_warm = False
        self.is_over = False
        self._operations = 0
        self._refusals = 0
        self._problem: str | None = None
        self._took = Latencies()
        # Clock and processor's time: when it began, and how much passed until it was over.
        self._began = (0.0, 0.0)
        self._passed = (0.0, 0.0)

    def begin(self) -> None:
        """End the warm-up: count from now on."""
        self._is_warm = True
        self._began = _look()

    def end(self) -> None:
        """Stop counting."""
        self.is_over = True
        (clock, processor), (clock_then, processor_then) = _look(), self._began
        self._passed = clock - clock_then, processor - processor_then

    def note(self, seconds: float) -> None:
        """Count an operation and its duration."""
        if self._is_warm:
            self._took.add(seconds)
            if not self.is_over:
                self._operations += 1

    def refuse(self, why: str) -> None:
        """Count a refusal, also in the warm-up."""
        self._refusals += 1
        if self._problem is None:
            self._problem = why

    def result(self, cell: Cell) -> Measurement:
        """Return the measurement, after `end`."""
        took = self._took
        # A clock may stand still for as long as nothing takes.
        seconds = max(self._passed[0], 1e-9)
        return Measurement(
            cell,
            seconds,
            self._operations,
            self._refusals,
            self._problem,
            _milliseconds(took.percentile(50)),
            _milliseconds(took.percentile(99)),
            _milliseconds(took.percentile(99.9)),
            _milliseconds(took.percentile(100)),
            self._passed[1] / seconds,
        )


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None else round(seconds * 1000, 4)


def _look() -> tuple[float, float]:
    return time.perf_counter(), time.process_time()
