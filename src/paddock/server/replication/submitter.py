"""Who submits writes, and is told what became of them."""

from __future__ import annotations

from paddock.state.entry import Entry
from paddock.state.machine import Outcome
from paddock.state.watcher import Watcher


class Submitter(Watcher):
    """The origin of entries: a connection, or a part of the server that decides by itself."""

    def __init__(self) -> None:
        super().__init__()
        # Whether it is among those to be flushed when the batch has been applied.
        self.is_dirty = False

    def deliver(self, entry: Entry, outcome: Outcome) -> None:
        """Take the outcome of an entry that has just been applied."""
        raise NotImplementedError

    def refuse(self, entry: Entry, code: int) -> None:
        """Take the news that an entry was surely not written."""
        raise NotImplementedError

    def flush(self) -> None:
        """Send what has gathered."""
        raise NotImplementedError

    def abort(self) -> None:
        """Take the news that an outcome could not be told: nobody may go on waiting for it."""
