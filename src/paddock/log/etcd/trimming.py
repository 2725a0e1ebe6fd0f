"""Delete from etcd what a snapshot has made superfluous: old batches, old snapshots, old history.

* A batch goes if it was written up to the revision of the manifest's `trimmed`, the previous
  snapshot. What was written later stays, whatever its number: also a late duplicate below the cut,
  because readers count the batches behind a snapshot to know their index. The next trimming takes
  it. Every deletion asks etcd for that (`through`), so a duplicate that arrives meanwhile is safe.
* A snapshot goes if it is not the manifest's and its first piece is older than the manifest's
  revision: the upload that wrote it can never come to count. The previous one goes as well: a
  reader that is still on it starts over. The next one is written in small pieces, one at a time,
  and read in large pages, so that happens to it once. Keeping it would cost as much as the state.
* Every deletion is guarded by the manifest's revision. All of it is a function of the manifest
  and what is there: anybody may begin, stop, repeat it or do it at the same time, at any point.
* Then the history up to the last deletion is compacted, unless others use the same etcd.
"""

from __future__ import annotations

from typing import Final

from paddock.log.etcd.calls import PACED, Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import Cut, Manifest, ManifestReplacedError
from paddock.log.etcd.store import Guard, Page, Range, Store, Stored

# A new snapshot is due after this much log, or as much as the last snapshot had if that is more,
# or after so many batches.
LOG_BYTES_MIN: Final = 64 << 20
BATCHES_MAX: Final = 50_000

# How many keys a transaction deletes at most. etcd looks at each of them while nothing else is
# applied, and a batch has up to 64 KiB.
KEYS_MAX: Final = 200
# How many ranges a transaction may name.
_RANGES_MAX: Final = 100
# How many batches are looked at behind one that is too new, before the rest is left for next time.
_LOOK_AHEAD: Final = 64


def due(bytes_since: int, batches_since: int, last_snapshot_size: int) -> bool:
    """Return whether a new snapshot is due, after so much log behind the last one."""
    return batches_since >= BATCHES_MAX or bytes_since >= log_bytes_due(last_snapshot_size)


def log_bytes_due(snapshot_size: int) -> int:
    """Return after how much log behind a snapshot the next one is due."""
    return max(LOG_BYTES_MIN, snapshot_size)


async def trim(
    store: Store, keys: Keys, manifest: Manifest, *, compact: bool = True, calls: Calls = PACED
) -> int:
    """Delete what a manifest has made superfluous; return the revision of the last deletion, or 0.

    Raises ManifestReplacedError if it is not the current one any more: then somebody else trims.
    """
    trimmer = Trimmer(store, keys, manifest.mod_revision, calls)
    if manifest.trimmed is not None:
        await trimmer.delete_batches(manifest.trimmed)
    await trimmer.delete_snapshots(manifest.name)
    if compact and trimmer.revision:
        await calls.repeat(store.compact, trimmer.revision)
    return trimmer.revision


class Trimmer:
    """Deletions under one revision of the manifest."""

    def __init__(self, store: Store, keys: Keys, mod_revision: int, calls: Calls) -> None:
        self._store = store
        self._keys = keys
        self._guard = Guard(keys.manifest, mod_revision)
        self._calls = calls
        # That of the last deletion.
        self.revision = 0

    async def delete_batches(self, cut: Cut) -> None:
        """Delete the batches up to the revision of a cut."""
        keys = self._keys
        position = keys.batches
        while (found := await self._first(position, keys.batches_end)) is not None:
            parsed = keys.parse_batch(found.key)
            if parsed is None or keys.batch(*parsed) != found.key:
                position = found.key + b"\0"  # not one of ours
                continue
            boot = parsed[0]
            position = _after(keys.of_boot(boot))
            end = keys.batch(boot, cut.cuts[boot]) if boot in cut.cuts else position
            await self._delete_boot(boot, end, cut.revision)

    async def delete_snapshots(self, current: str) -> None:
        """Delete the snapshots that do not count and never will."""
        keys = self._keys
        position = keys.snapshots
        while (found := await self._first(position, keys.snapshots_end)) is not None:
            name, slash, _ = found.key.removeprefix(keys.snapshots).partition(b"/")
            if not slash:
                position = found.key + b"\0"
                continue
            begin = keys.snapshots + name + slash
            position = _after(begin)
            if name != current.encode() and found.mod_revision < self._guard.mod_revision:
                await self._delete_pieces(begin, position)

    async def find_leftover(self, current: str) -> bool:
        """Return whether there are pieces of any other snapshot."""
        keys = self._keys
        current_pieces = keys.snapshots + current.encode() + b"/"
        return bool(
            await self._first(keys.snapshots, current_pieces)
            or await self._first(_after(current_pieces), keys.snapshots_end)
        )

    async def _delete_boot(self, boot: bytes, end: bytes, through: int) -> None:
        """Delete the batches of a boot, below a key, that were written up to a revision."""
        keys = self._keys
        position = keys.of_boot(boot)
        while position < end:
            found = await self._first(position, end)
            if found is not None and found.mod_revision > through:
                found = await self._first_old(found.key, end, through)
            if found is None:
                return
            parsed = keys.parse_batch(found.key)
            if parsed is None:
                position = found.key + b"\0"
                continue
            position = min(end, keys.batch(boot, parsed[1] + KEYS_MAX))
            if not await self._delete([Range(found.key, position)], through):
                await self._delete_old(found.key, position, through)

    async def _first_old(self, start: bytes, end: bytes, through: int) -> Stored | None:
        """Return the first of the next keys that is old enough; None if none of them is.

        A boot whose first batch is too new has joined later, most likely, and has many.
        """
        page = await self._page(start, end, _LOOK_AHEAD)
        return next((one for one in page.items if one.mod_revision <= through), None)

    async def _delete_old(self, start: bytes, end: bytes, through: int) -> None:
        """Delete the old ones of some keys, among which there are newer ones."""
        while True:
            page = await self._page(start, end, _RANGES_MAX)
            old = [Range(one.key) for one in page.items if one.mod_revision <= through]
            # These keys cannot become newer: a batch is only written where there is none.
            if old:
                await self._delete(old, through)
            if not page.has_more or not page.items:
                return
            start = page.items[-1].key + b"\0"

    async def _delete_pieces(self, begin: bytes, end: bytes) -> None:
        while (found := await self._first(begin, end)) is not None:
            try:
                number = int(found.key.removeprefix(begin), 16)
            except ValueError:
                return  # not one of ours
            first = begin + b"%08x" % number
            if found.key != first:
                return
            await self._delete([Range(first, begin + b"%08x" % (number + KEYS_MAX))])

    async def _first(self, start: bytes, end: bytes) -> Stored | None:
        page = await self._page(start, end, 1)
        return page.items[0] if page.items else None

    async def _page(self, start: bytes, end: bytes, limit: int) -> Page:
        wanted = Range(start, end)
        return await self._calls.repeat(self._store.page, wanted, limit=limit, keys_only=True)

    async def _delete(self, ranges: list[Range], through: int = 0) -> bool:
        """Delete some ranges; return False if some of it was written after `through`."""
        revision = await self._calls.paced(self._store.delete, ranges, self._guard, through)
        if revision:
            self.revision = max(self.revision, revision)
            return True
        manifest = (await self._calls.repeat(self._store.read, self._guard.key)).found[0]
        if manifest is None or manifest.mod_revision != self._guard.mod_revision:
            raise ManifestReplacedError(
                f"{self._guard.key.decode()}: another snapshot has replaced this one, so trimming"
                " is left to those who wrote it"
            )
        return False


def _after(prefix: bytes) -> bytes:
    """Return the first key behind all that begin with a prefix, which ends with a slash."""
    return prefix[:-1] + b"0"
