"""Snapshots, trimming and backups on a real etcd."""

from __future__ import annotations

import asyncio
import itertools
import os
import random
from collections.abc import Awaitable, Callable, Iterable, Iterator

import pytest

from paddock.log.etcd.backup import ServiceHead, SnapshotPiece, read_service, write_service
from paddock.log.etcd.calls import UNPACED
from paddock.log.etcd.etcd_store import EtcdStore
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import Cut, Manifest, ManifestReplacedError, read_manifest
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.service import find_or_create_service, find_service
from paddock.log.etcd.snapshots import PIECE_BYTES, download, upload
from paddock.log.etcd.store import Range
from paddock.log.etcd.trimming import KEYS_MAX, trim
from paddock.log.interface import LogError, Record
from tests.support.etcd import Etcd, EtcdCluster

pytestmark = [pytest.mark.judge, pytest.mark.foreign]

BOOT = bytes(range(8))
OTHER = b"\xff" * 8
SNAPSHOT = random.Random(1).randbytes(20 * PIECE_BYTES + 7)

_names = itertools.count()


@pytest.fixture
def keys() -> Keys:
    """The keys of a service that no other test has."""
    return Keys(f"snapshots-{next(_names)}")


def run(
    endpoints: tuple[str, ...], keys: Keys, use: Callable[[EtcdStore], Awaitable[None]]
) -> None:
    async def main() -> None:
        store = EtcdStore(EtcdOptions(endpoints), keys)
        try:
            await use(store)
        finally:
            await store.close()

    asyncio.run(main())


async def append(store: EtcdStore, boot: bytes, numbers: Iterable[int], size: int = 100) -> None:
    """Append batches in their order.

    Whether each is new is not asked: one that was answered late has been sent again.
    """
    for number in numbers:
        await store.append(boot, number, b"%08d" % number * (size // 8))


async def cut_now(store: EtcdStore, keys: Keys, cuts: dict[bytes, int]) -> Cut:
    """Return the cut behind all that is in the log."""
    head = (await store.read(keys.head)).found[0]
    assert head is not None
    boot, _, number = head.value.partition(b"/")
    last = bytes.fromhex(boot.decode()), int(number, 16)
    return Cut(head.version, head.mod_revision, *last, cuts)


async def put(
    store: EtcdStore, keys: Keys, cuts: dict[bytes, int], content: bytes = SNAPSHOT
) -> Manifest:
    cut = await cut_now(store, keys, cuts)
    return await upload(store, keys, [content], cut, 1, os.urandom, calls=UNPACED)


async def get(store: EtcdStore, keys: Keys, manifest: Manifest) -> bytes:
    return b"".join([piece async for piece in download(store, keys, manifest)])


async def numbers(store: EtcdStore, keys: Keys, boot: bytes) -> list[int]:
    """Return the numbers of a boot that are there."""
    begin = keys.of_boot(boot)
    page = await store.page(Range(begin, begin + b"~"), keys_only=True)
    assert not page.has_more
    return [int(one.key.removeprefix(begin), 16) for one in page.items]


def test_a_service_is_created_once(shared_etcd: Etcd, keys: Keys) -> None:
    async def use(store: EtcdStore) -> None:
        assert await find_service(store, keys) is None
        found = await asyncio.gather(
            *(find_or_create_service(store, keys, os.urandom) for _ in range(8))
        )
        assert {one.id for one in found} == {found[0].id}
        assert await find_service(store, keys) == found[0]

    run((shared_etcd.endpoint,), keys, use)


def test_a_snapshot_replaces_the_one_before_and_the_log_behind_that(
    shared_etcd: Etcd, keys: Keys
) -> None:
    async def use(store: EtcdStore) -> None:
        count = KEYS_MAX + 30
        await append(store, OTHER, range(3))
        await append(store, BOOT, range(count))
        first = await put(store, keys, {BOOT: count})
        await trim(store, keys, first, calls=UNPACED)
        assert await numbers(store, keys, BOOT) == list(range(count))
        await append(store, BOOT, range(count, count + 2))
        second = await put(store, keys, {BOOT: count + 2}, b"second")
        assert await read_manifest(store, keys) == second
        await append(store, OTHER, [3])
        await append(store, BOOT, [count + 2])
        await trim(store, keys, second, calls=UNPACED)
        assert await numbers(store, keys, BOOT) == [count, count + 1, count + 2]
        assert await numbers(store, keys, OTHER) == [3]
        assert await get(store, keys, second) == b"second"
        with pytest.raises(ManifestReplacedError):
            await get(store, keys, first)

    run((shared_etcd.endpoint,), keys, use)


def test_a_late_duplicate_stays_until_readers_need_it_no_more(
    shared_etcd: Etcd, keys: Keys
) -> None:
    """Etcd itself compares the revisions of the range that is deleted."""

    async def use(store: EtcdStore) -> None:
        await append(store, BOOT, range(10))
        await put(store, keys, {BOOT: 10})
        await append(store, BOOT, [10])
        second = await put(store, keys, {BOOT: 11})
        await trim(store, keys, second, calls=UNPACED)
        assert await numbers(store, keys, BOOT) == [10]
        # Late repetitions, one on each side of what is trimmed next.
        await append(store, BOOT, [4, 11, 12, 5])
        third = await put(store, keys, {BOOT: 13})
        await trim(store, keys, third, calls=UNPACED)
        assert await numbers(store, keys, BOOT) == [4, 5, 11, 12]
        await append(store, BOOT, [10])
        fourth = await put(store, keys, {BOOT: 13})
        await trim(store, keys, fourth, calls=UNPACED)
        assert await numbers(store, keys, BOOT) == [10]

    run((shared_etcd.endpoint,), keys, use)


def test_a_duplicate_among_old_batches_stays_alone(shared_etcd: Etcd, keys: Keys) -> None:
    async def use(store: EtcdStore) -> None:
        await append(store, BOOT, [0, 1, 3, 4, 6])
        await put(store, keys, {BOOT: 7})
        await append(store, BOOT, [2, 5, 7])
        second = await put(store, keys, {BOOT: 8})
        await trim(store, keys, second, calls=UNPACED)
        assert await numbers(store, keys, BOOT) == [2, 5, 7]

    run((shared_etcd.endpoint,), keys, use)


def test_the_database_stays_bounded(etcd: Etcd) -> None:
    keys = Keys("bounded")
    files: list[int] = []

    async def use(store: EtcdStore) -> None:
        for cycle in range(8):
            first = 100 * cycle
            await append(store, BOOT, range(first, first + 100), 20_000)
            manifest = await put(store, keys, {BOOT: first + 100})
            await trim(store, keys, manifest, calls=UNPACED)
            files.append((await store.status()).database_bytes)

    run((etcd.endpoint,), keys, use)
    # 16 MB of log and 10 MB of snapshots were written. Two cycles are kept, and compaction frees
    # the rest in the background: the file has 9 MB from the third cycle on.
    assert max(files) < 16_000_000, files


def test_a_whole_service_is_read_while_others_write_and_trim(shared_etcd: Etcd, keys: Keys) -> None:
    async def use(store: EtcdStore) -> None:
        service = await find_or_create_service(store, keys, os.urandom)
        await append(store, BOOT, range(40))
        await put(store, keys, {BOOT: 40})
        await asyncio.gather(append(store, BOOT, range(40, 80)), append(store, OTHER, range(100)))
        head: ServiceHead | None = None
        content = b""
        records: list[Record] = []
        async for piece in read_service(store, keys):
            if isinstance(piece, ServiceHead):
                head = piece
                # This neither belongs to the reading nor disturbs it.
                await append(store, BOOT, [80])
                manifest = await put(store, keys, {BOOT: 81, OTHER: 100}, b"next")
            elif isinstance(piece, SnapshotPiece):
                content += piece.content
                if len(content) == len(SNAPSHOT):
                    await trim(store, keys, manifest, calls=UNPACED)
            else:
                records.append(piece)
        assert head is not None
        assert (head.service, head.index) == (service, 180)
        assert content == SNAPSHOT
        assert [record.index for record in records] == list(range(41, 181))
        assert [record.revision for record in records] == sorted(
            record.revision for record in records
        )
        mine = [record for record in records if record.server == OTHER]
        assert [record.number for record in mine] == list(range(100))
        assert all(record.payload == b"%08d" % record.number * 12 for record in records)

    run((shared_etcd.endpoint,), keys, use)


def test_a_service_is_written_into_an_empty_name_and_into_no_other(
    shared_etcd: Etcd, keys: Keys
) -> None:
    async def use(store: EtcdStore) -> None:
        manifest = await write_service(store, keys, bytes(16), [SNAPSHOT], 1, os.urandom)
        assert await read_manifest(store, keys) == manifest
        assert await get(store, keys, manifest) == SNAPSHOT
        service = await find_or_create_service(store, keys, os.urandom)
        assert service.id == bytes(16)
        with pytest.raises(LogError, match="this name is in use"):
            await write_service(store, keys, bytes(16), [b"other"], 1, os.urandom)

    run((shared_etcd.endpoint,), keys, use)


def test_an_upload_and_a_trimming_outlive_the_leader(etcd_cluster: EtcdCluster) -> None:
    keys = Keys("elected")
    cluster = etcd_cluster

    def kill_in_the_middle() -> Iterator[bytes]:
        yield SNAPSHOT
        cluster.leader().kill()
        yield SNAPSHOT

    async def use(store: EtcdStore) -> None:
        await append(store, BOOT, range(20))
        await put(store, keys, {BOOT: 20})
        await append(store, BOOT, [20])
        cut = await cut_now(store, keys, {BOOT: 21})
        chunks = kill_in_the_middle()
        manifest = await upload(store, keys, chunks, cut, 1, os.urandom, calls=UNPACED)
        await trim(store, keys, manifest, calls=UNPACED)
        assert await numbers(store, keys, BOOT) == [20]
        assert await get(store, keys, manifest) == SNAPSHOT * 2

    run(cluster.endpoints, keys, use)
