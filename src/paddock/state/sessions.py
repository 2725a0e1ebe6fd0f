"""The sessions, as the log knows them.

A session has a generation, which goes up each time a connection is attached to it. A request
carries the generation under which it was received, and is refused when the session has moved on:
so nothing from a connection that was given up can land after its client has come back and looked.
When a session is over is decided outside; here it only ends.
"""

from __future__ import annotations


class Session:
    """One client's session."""

    __slots__ = ("generation", "id", "password", "timeout_ms")

    def __init__(self, id: int, password: bytes, timeout_ms: int, generation: int) -> None:
        self.id = id
        self.password = password
        self.timeout_ms = timeout_ms
        # How often a connection was attached. Invariant: at least 1.
        self.generation = generation


class Sessions:
    """All sessions that are not over."""

    __slots__ = ("by_id", "last_id")

    def __init__(self) -> None:
        self.by_id: dict[int, Session] = {}
        # The highest id that was ever given, so that none is given twice.
        self.last_id = 0

    def open(self, id: int, password: bytes, timeout_ms: int) -> Session:
        session = Session(id, password, timeout_ms, 1)
        self.by_id[id] = session
        self.last_id = max(self.last_id, id)
        return session

    def close(self, id: int) -> None:
        del self.by_id[id]
