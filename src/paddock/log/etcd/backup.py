"""Read a whole service out of etcd while it runs, and write one into an empty name.

* A reading stands at one revision: the newest snapshot, and all batches behind it up to there, in
  the order of the log. It reads the keys as they are now, because the history may be compacted
  under it; batches do not change, and those behind the snapshot stay until the snapshot after the
  next one. If they are gone, ManifestReplacedError: start over.
* A service that is written begins a log of its own: its snapshot stands at index 0, before the
  first batch, with no member. It exists from the moment that its `/id` does, which comes last.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, replace
from typing import Final

from paddock.log.etcd.calls import UNPACED, Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import (
    WAY_ON,
    Cut,
    Manifest,
    ManifestReplacedError,
    decode_manifest,
)
from paddock.log.etcd.pages import plan_pages, read_skips
from paddock.log.etcd.service import Service, decode_service, service_path
from paddock.log.etcd.snapshots import Chunks, PieceWriter, download, regroup
from paddock.log.etcd.store import Guard, Store
from paddock.log.interface import LogCorruptError, LogError, Position, Record

# How many batches are read at once.
_READ_KEYS: Final = 32


@dataclass(frozen=True, slots=True)
class ServiceHead:
    """What a reading begins with."""

    service: Service
    # The snapshot that follows; None if there is none yet.
    manifest: Manifest | None
    # Where the reading ends: that of the last batch, and the revision that all stands at.
    index: int
    revision: int
    # The batches that are not to be applied.
    skipped: frozenset[int]

    @property
    def after(self) -> Position:
        """Where the batches begin."""
        return Position() if self.manifest is None else self.manifest.position


@dataclass(frozen=True, slots=True)
class SnapshotPiece:
    """Some bytes of the snapshot."""

    content: bytes


ServicePiece = ServiceHead | SnapshotPiece | Record


async def read_service(
    store: Store, keys: Keys, *, calls: Calls = UNPACED
) -> AsyncIterator[ServicePiece]:
    """Read a service: its head, its snapshot, and the batches behind it.

    It counts only when it has ended without an error. Raises ManifestReplacedError if it took
    longer than the servers keep what is read; LogCorruptError; LogError if there is no service.
    """
    head = await _read_head(store, keys, calls)
    yield head
    if head.manifest is not None:
        async for piece in download(store, keys, head.manifest, calls=calls):
            yield SnapshotPiece(piece)
    plan = await calls.repeat(plan_pages, store, keys, head.after.revision, head.revision)
    index = head.after.index
    if len(plan) != head.index - index:
        raise await _batches_missing(store, keys, head, calls)
    for start in range(0, len(plan), _READ_KEYS):
        wanted = plan[start : start + _READ_KEYS]
        names = [keys.batch(one.boot, one.number) for one in wanted]
        read = await calls.repeat(store.read, *names)
        for one, stored in zip(wanted, read.found, strict=True):
            if stored is None or stored.mod_revision != one.revision:
                raise await _batches_missing(store, keys, head, calls)
            index += 1
            yield Record(index, stored.value, one.boot, one.number, one.revision)


async def write_service(
    store: Store,
    keys: Keys,
    service_id: bytes,
    chunks: Chunks,
    rules: int,
    random_bytes: Callable[[int], bytes],
    *,
    calls: Calls = UNPACED,
) -> Manifest:
    """Write a service with a snapshot into a name that has none.

    The snapshot must be one of index 0, without members: the log begins behind it. Raises LogError
    if the name exists, or comes into existence meanwhile. If it was interrupted, run it again.
    """
    read = await calls.repeat(store.read, keys.id, keys.head, keys.manifest)
    if read.found[0] is not None or read.found[1] is not None:
        raise _exists(keys)
    # One of a writing that was interrupted.
    mod_revision = 0 if read.found[2] is None else read.found[2].mod_revision
    no_service = Guard(keys.id, 0)
    writer = PieceWriter(store, keys, 0, random_bytes, calls)
    async for piece in regroup(chunks):
        if not await writer.write(piece, no_service):
            raise _exists(keys)
    manifest = writer.manifest(Cut(), rules, None)
    revision = await calls.swap(store, keys.manifest, manifest.encode(), mod_revision, no_service)
    if not revision:
        raise _exists(keys)
    service = Service(service_id)
    if not await calls.swap(store, keys.id, service.encode(), 0, Guard(keys.manifest, revision)):
        raise _exists(keys)
    return replace(manifest, mod_revision=revision)


async def _read_head(store: Store, keys: Keys, calls: Calls) -> ServiceHead:
    read = await calls.repeat(store.read, keys.id, keys.manifest, keys.head)
    identity, stored, head = read.found
    if identity is None:
        raise LogError(f"{service_path(keys)}: there is no service with this name")
    manifest = None if stored is None else decode_manifest(stored)
    return ServiceHead(
        decode_service(identity),
        manifest if manifest is not None and manifest.name else None,
        0 if head is None else head.version,
        read.revision,
        await calls.repeat(read_skips, store, keys),
    )


async def _batches_missing(store: Store, keys: Keys, head: ServiceHead, calls: Calls) -> LogError:
    stored = (await calls.repeat(store.read, keys.manifest)).found[0]
    trimmed = None if stored is None else decode_manifest(stored).trimmed
    if trimmed is not None and trimmed.revision > head.after.revision:
        return ManifestReplacedError(
            f"{service_path(keys)}: what was to be read is trimmed: start over"
        )
    return LogCorruptError(
        f"{service_path(keys)}: batches between {head.after.index} and {head.index} are missing."
        f" {WAY_ON}"
    )


def _exists(keys: Keys) -> LogError:
    return LogError(
        f"{service_path(keys)}: this name is in use: choose another one, or remove what is there"
    )
