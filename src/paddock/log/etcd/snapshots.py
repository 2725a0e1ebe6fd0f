"""Snapshots in etcd: written in pieces, then made to count by one swap of the manifest.

* Each upload has a name of its own, so that nothing of one that failed gets into another.
* Each piece is written only if the one before it is there as it was written, the first one only if
  the manifest is unchanged; the manifest is swapped only if the last piece is there and the
  manifest is unchanged. So a snapshot that counts is whole, even if etcd was restored from a backup
  in the middle of its upload, or if pieces of it were deleted.
* An upload that another one has overtaken finds that out soon, stops, and leaves pieces behind.
* Pieces that uploads left behind are deleted when the next one begins. It claims the manifest
  first, by writing the same again: none of the uploads that began before can succeed then.
* One piece is in flight at a time. It has 64 KiB, and an upload uses a fifth of the time, unless
  the log grows too fast (`pace.py`). A reader does not care how large pieces are.

What is in a snapshot is not known here.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterable, AsyncIterator, Callable, Iterable
from dataclasses import replace
from typing import Final

from paddock.log.etcd.calls import PACED, UNPACED, Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import (
    EMPTY,
    WAY_ON,
    Cut,
    Manifest,
    ManifestReplacedError,
    decode_manifest,
)
from paddock.log.etcd.pace import PIECE_BYTES_MIN
from paddock.log.etcd.store import Guard, Range, Store, Stored
from paddock.log.etcd.trimming import Trimmer
from paddock.log.interface import LogCorruptError, LogError

PIECE_BYTES: Final = PIECE_BYTES_MIN
_NAME_BYTES: Final = 8
# How many pieces are written before the manifest is looked at, and how many are read at once: a
# message has room for these.
_CHECK_PIECES: Final = 64
_READ_PIECES: Final = 16

Chunks = Iterable[bytes] | AsyncIterable[bytes]


async def upload(
    store: Store,
    keys: Keys,
    chunks: Chunks,
    cut: Cut,
    rules: int,
    random_bytes: Callable[[int], bytes],
    *,
    calls: Calls = PACED,
    time_ms: int = 0,
) -> Manifest:
    """Write a snapshot that stands at a cut, and make it the current one.

    `time_ms` says when it was taken, to those who report its age.

    Raises ManifestReplacedError if another snapshot came first, and LogError if the current one is
    as new as this. It may be cancelled at any time; the outcome is unknown then.
    """
    stored = (await calls.repeat(store.read, keys.manifest)).found[0]
    current = EMPTY if stored is None else decode_manifest(stored)
    if current.name and current.index >= cut.index:
        raise LogError(
            f"{keys.manifest.decode()}: the snapshot in etcd stands at {current.index},"
            f" and the one to be written at {cut.index} is not newer"
        )
    mod_revision = await _claim(store, keys, stored, current, calls)
    writer = PieceWriter(store, keys, cut.index, random_bytes, calls)
    guard = Guard(keys.manifest, mod_revision)
    pace = calls.pace
    async for piece in regroup(chunks, None if pace is None else pace.piece_bytes):
        if writer.count % _CHECK_PIECES == 0:
            await _check_unchanged(store, guard, calls)
        if not await writer.write(piece, guard):
            raise _replaced(keys.manifest)
        if pace is not None:
            pace.wrote(len(piece))
    manifest = writer.manifest(cut, rules, current.cut if current.name else None)
    manifest = replace(manifest, time_ms=time_ms)
    revision = await calls.swap(store, keys.manifest, manifest.encode(), mod_revision, writer.last)
    if not revision:
        raise _replaced(keys.manifest)
    return replace(manifest, mod_revision=revision)


async def download(
    store: Store, keys: Keys, manifest: Manifest, *, calls: Calls = UNPACED
) -> AsyncIterator[bytes]:
    """Read the snapshot of a manifest, piece by piece.

    What was read counts only when it has ended without an error. Raises ManifestReplacedError if
    the snapshot was deleted meanwhile because there is a newer one, and LogCorruptError.
    """
    name, count = manifest.name, manifest.chunks
    digest = hashlib.sha256()
    size = 0
    number = 0
    while number < count:
        wanted = Range(keys.snapshot_piece(name, number), keys.snapshot_piece(name, count))
        page = await calls.repeat(store.page, wanted, limit=_READ_PIECES)
        if not page.items:
            raise await _piece_missing(store, keys, manifest, number, calls)
        for one in page.items:
            if one.key != keys.snapshot_piece(name, number):
                raise await _piece_missing(store, keys, manifest, number, calls)
            digest.update(one.value)
            size += len(one.value)
            number += 1
            yield one.value
    if size != manifest.size or digest.digest() != manifest.sha256:
        raise LogCorruptError(
            f"{_describe(keys, manifest)} is damaged: {size} of {manifest.size} bytes, with another"
            f" checksum. {WAY_ON}"
        )


class PieceWriter:
    """The pieces of one upload, which are written one after the other."""

    def __init__(
        self,
        store: Store,
        keys: Keys,
        index: int,
        random_bytes: Callable[[int], bytes],
        calls: Calls,
    ) -> None:
        self.name = f"{index:016x}-{random_bytes(_NAME_BYTES).hex()}"
        self.count = 0
        # What the last piece is when it is there as it was written; None before the first.
        self.last: Guard | None = None
        self._store = store
        self._keys = keys
        self._calls = calls
        self._size = 0
        self._digest = hashlib.sha256()

    async def write(self, piece: bytes, guard: Guard) -> bool:
        """Write the next piece: the first one if a guard holds, others behind the one before.

        Returns False if the guard does not hold, or if the piece before is gone.
        """
        key = self._keys.snapshot_piece(self.name, self.count)
        revision = await self._calls.swap(self._store, key, piece, 0, self.last or guard)
        if not revision:
            return False
        self.last = Guard(key, revision)
        self.count += 1
        self._size += len(piece)
        self._digest.update(piece)
        return True

    def manifest(self, cut: Cut, rules: int, trimmed: Cut | None) -> Manifest:
        """Return the manifest that makes the pieces count."""
        digest = self._digest.digest()
        return Manifest(cut, rules, self.name, self.count, self._size, digest, trimmed)


async def regroup(
    chunks: Chunks, piece_bytes: Callable[[], int] | None = None
) -> AsyncIterator[bytes]:
    """Regroup chunks of any size into pieces as large as wanted; only the last may be smaller."""
    gathered = bytearray()
    wanted = PIECE_BYTES if piece_bytes is None else piece_bytes()
    async for chunk in _each(chunks):
        gathered += chunk
        offset = 0
        while len(gathered) - offset >= wanted:
            yield bytes(gathered[offset : offset + wanted])
            offset += wanted
            wanted = PIECE_BYTES if piece_bytes is None else piece_bytes()
        del gathered[:offset]
    if gathered:
        yield bytes(gathered)


async def _each(chunks: Chunks) -> AsyncIterator[bytes]:
    if isinstance(chunks, AsyncIterable):
        async for chunk in chunks:
            yield chunk
    else:
        for chunk in chunks:
            yield chunk


async def _claim(
    store: Store, keys: Keys, stored: Stored | None, current: Manifest, calls: Calls
) -> int:
    """Delete what earlier uploads left behind; return the mod revision of the manifest."""
    before = Trimmer(store, keys, current.mod_revision, calls)
    if not await before.find_leftover(current.name):
        return current.mod_revision
    value = current.encode() if stored is None else stored.value
    revision = await calls.swap(store, keys.manifest, value, current.mod_revision)
    if not revision:
        raise _replaced(keys.manifest)
    await Trimmer(store, keys, revision, calls).delete_snapshots(current.name)
    return revision


async def _check_unchanged(store: Store, guard: Guard, calls: Calls) -> None:
    found = (await calls.repeat(store.read, guard.key)).found[0]
    if (0 if found is None else found.mod_revision) != guard.mod_revision:
        raise _replaced(guard.key)


async def _piece_missing(
    store: Store, keys: Keys, manifest: Manifest, number: int, calls: Calls
) -> LogError:
    stored = (await calls.repeat(store.read, keys.manifest)).found[0]
    if stored is None or decode_manifest(stored).name != manifest.name:
        return _replaced(keys.manifest)
    return LogCorruptError(
        f"{_describe(keys, manifest)} is damaged: piece {number} of {manifest.chunks} is missing."
        f" {WAY_ON}"
    )


def _describe(keys: Keys, manifest: Manifest) -> str:
    return f"{keys.snapshots.decode()}{manifest.name}: the snapshot at index {manifest.index}"


def _replaced(key: bytes) -> ManifestReplacedError:
    return ManifestReplacedError(f"{key.decode()}: a newer snapshot has replaced this: start over")
