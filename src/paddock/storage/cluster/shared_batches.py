"""The batches of a shared log: decoded, and compared by the states that their proposers had.

* A batch names the digest of the state after some index, as its proposer had it. The digests of the
  last states are remembered here. If the two differ, one of the states is wrong.
* What is remembered does not grow with the log.
"""

from __future__ import annotations

from typing import Final

from paddock.protocol.jute import DecodeError
from paddock.state.access import Identities
from paddock.state.entry import Batch
from paddock.storage.replay import UnreadableBatchError

# How many digests are remembered, and how many sets of identities once they are decoded.
DIGESTS_MAX: Final = 4_096
_KNOWN_MAX: Final = 1_000


class SharedBatches:
    """Decodes batches, beside a state that follows the log."""

    def __init__(self, index: int, digest: int) -> None:
        self._digests = {index: digest}
        self._known: dict[bytes, Identities] = {}

    def decode(self, index: int, payload: bytes) -> Batch:
        """Return a batch. Raises UnreadableBatchError."""
        try:
            batch = Batch.decode(payload, self._known)
        except DecodeError as error:
            raise UnreadableBatchError(
                f"batch {index} of the log cannot be read: {error}; it was written by another"
                " version of Paddock. Start that version; or, if no version can read it, have it"
                f" passed over: paddock cluster skip {index}"
            ) from error
        if len(self._known) > _KNOWN_MAX:
            self._known.clear()
        return batch

    def differs(self, batch: Batch) -> bool:
        """Return whether its proposer had another state; False if that is not known any more."""
        return self._digests.get(batch.digest_index, batch.digest) != batch.digest

    def applied(self, index: int, digest: int) -> None:
        """Remember the digest of the state after a record."""
        self._digests[index] = digest
        if len(self._digests) > DIGESTS_MAX:
            del self._digests[next(iter(self._digests))]

    def digest_at(self, index: int) -> int | None:
        """Return the digest of the state after a record; None if it is not known any more."""
        return self._digests.get(index)
