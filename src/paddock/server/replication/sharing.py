"""What a replica asks where several servers share its log.

`paddock.server.replication.shared_records` answers. A replica with a log of its own has none.
"""

from __future__ import annotations

from paddock.server.replication.proposals import PendingBatch, Proposals


class Sharing:
    """What a replica must know if several servers share its log."""

    def open(self, batch: PendingBatch, proposals: Proposals, now: float) -> None:
        """Fill in what a record releases, and claim our own. Raises LogCorruptError."""
        raise NotImplementedError

    def applied(self, index: int) -> None:
        """Take the news that all that a record has released is applied."""
        raise NotImplementedError

    def entry_applied(self) -> None:
        """Take the news that an entry is applied, which may have changed the roster."""
        raise NotImplementedError

    def is_settled(self) -> bool:
        """Return whether nothing is held."""
        raise NotImplementedError

    def digest(self) -> int:
        """Return the digest of the whole state."""
        raise NotImplementedError

    def rules(self) -> int:
        """Return the rules under which entries are proposed now."""
        raise NotImplementedError

    def sending(self, number: int) -> None:
        """Take the news that a batch of ours is about to be sent for the first time."""
        raise NotImplementedError

    def given_up(self) -> None:
        """Take the news that the state was given up, and nothing is applied any more."""
        raise NotImplementedError
