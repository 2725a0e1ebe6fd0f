"""Whether etcd still holds the log that was followed.

A restored etcd, or another one behind the same name, shows other batches under the same indices.
Its watch tells nothing: one that begins at a revision that is not there yet waits without a word.
So a linearizable read decides, each time a watch is opened:

* The last record taken is there, with its revision: the log goes on behind it.
* It is not, but a manifest beyond it is: it was trimmed, and a snapshot has it.
* Anything else is another history. That does not pass: the servers need `paddock cluster epoch`.

The service's id must stay the same, too, and neither the revision nor the index may go back.
"""

from __future__ import annotations

from dataclasses import dataclass

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import decode_manifest
from paddock.log.etcd.store import Store, Stored
from paddock.log.interface import OtherHistoryError, Position, TrimmedError


@dataclass(frozen=True, slots=True)
class LogState:
    """The log at one revision."""

    revision: int
    # The index of its last record; 0 if it is empty.
    last_index: int
    # It is decoded only where it matters: a damaged one is replaced by the next.
    manifest: Stored | None

    def snapshot(self) -> Position:
        """Return where the newest snapshot in etcd stands. Raises LogCorruptError."""
        return Position() if self.manifest is None else decode_manifest(self.manifest).position

    def is_trimmed_up_to(self, position: Position) -> bool:
        """Return whether this is where trimming has ended: all behind it is there."""
        if self.manifest is None:
            return False
        trimmed = decode_manifest(self.manifest).trimmed
        return trimmed is not None and trimmed.position == position


class History:
    """The log that this process follows."""

    def __init__(self, store: Store, keys: Keys) -> None:
        self._store = store
        self._keys = keys
        # What the service's id was when it was read first; None before.
        self._service: bytes | None = None

    async def verify(self, after: Position) -> LogState:
        """Return the state of the log now, if it holds the last record that was taken.

        Raises TrimmedError, OtherHistoryError, StoreError.
        """
        keys = self._keys
        wanted = [keys.id, keys.head, keys.manifest]
        if after.index:
            wanted.append(keys.batch(after.server, after.number))
        read = await self._store.read(*wanted)
        identity, head, manifest = read.found[:3]
        service = b"" if identity is None else identity.value
        if self._service is None:
            self._service = service
        if service != self._service:
            raise other_history("the service's id has changed")
        last_index = 0 if head is None else head.version
        state = LogState(read.revision, last_index, manifest)
        if not after.index:
            return state
        if read.revision < after.revision:
            raise other_history(f"its revision is {read.revision}, and was {after.revision}")
        if last_index < after.index:
            raise other_history(f"its last record is {last_index}, and was {after.index}")
        last = read.found[3]
        if last is not None and last.mod_revision == after.revision:
            return state
        if head is not None and (head.version, head.mod_revision) == (after.index, after.revision):
            # The batch was trimmed, and nothing came behind it.
            return state
        if state.is_trimmed_up_to(after):
            return state
        snapshot = state.snapshot()
        if snapshot.index >= after.index and snapshot.revision >= after.revision:
            raise TrimmedError(
                f"record {after.index} is not in etcd any more: the snapshot at"
                f" {snapshot.index} has it"
            )
        raise other_history(f"it does not have record {after.index} of revision {after.revision}")


def other_history(reason: str) -> OtherHistoryError:
    return OtherHistoryError(
        f"etcd holds another log than the one that was followed: {reason}. If etcd was restored"
        " from a backup, stop all servers, run paddock cluster epoch, and start them again."
    )
