"""What a server counts about itself, for those who ask with four-letter words.

Latency is that of writes, from the proposal of their batch to their answer. Queries are answered in
the same pass of the loop in which they come, so there is nothing to measure.
"""

from __future__ import annotations


class Statistics:
    """Counters since the start, or since somebody reset them."""

    def __init__(self) -> None:
        self.packets_received = 0
        self.packets_sent = 0
        self.requests = 0
        self.latency_ms_total = 0.0
        self.latency_ms_min = 0.0
        self.latency_ms_max = 0.0

    def latency(self, requests: int, seconds: float) -> None:
        """Count requests that were answered after so long a time."""
        milliseconds = seconds * 1000
        if self.requests == 0 or milliseconds < self.latency_ms_min:
            self.latency_ms_min = milliseconds
        self.latency_ms_max = max(self.latency_ms_max, milliseconds)
        self.latency_ms_total += milliseconds * requests
        self.requests += requests

    def latency_ms_average(self) -> float:
        return self.latency_ms_total / self.requests if self.requests else 0.0
