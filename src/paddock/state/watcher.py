"""A receiver of events, and the modes in which it watches a path."""

from __future__ import annotations

from typing import Final

from mypy_extensions import mypyc_attr

from paddock.state.access import NOBODY, Identities

# The modes, as bits: what a watcher has at a path is a sum of them.
ONE_SHOT: Final = 1
PERSISTENT: Final = 2
RECURSIVE: Final = 4
ALL_MODES: Final = ONE_SHOT | PERSISTENT | RECURSIVE


@mypyc_attr(allow_interpreted_subclasses=True)
class Watcher:
    """A receiver of events; on a server, a connection."""

    def __init__(self) -> None:
        self.identities: Identities = NOBODY
        # The client's session; 0 if there is none, or none yet.
        self.session = 0
        # What it watches, by modes and tables.
        self.watch_count = 0
        self.watch_bytes = 0
        # Its watches are being removed: it gets no event any more.
        self.is_leaving = False

    def notify(self, event: bytes) -> None:
        """Take the frame of an event."""
        raise NotImplementedError

    def notify_all(self, frames: bytes, count: int) -> None:
        """Take the frames of `count` events in one piece."""
        self.notify(frames)
