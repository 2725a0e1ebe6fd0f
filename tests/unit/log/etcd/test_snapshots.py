"""Uploads and downloads of snapshots: lost answers, other uploads, a restored etcd, damage."""

import asyncio
import random
from collections.abc import AsyncIterator, Iterable

import pytest

from paddock.log.etcd.calls import Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import EMPTY, Cut, Manifest, ManifestReplacedError, read_manifest
from paddock.log.etcd.snapshots import PIECE_BYTES, Chunks, download, regroup, upload
from paddock.log.etcd.store import Range
from paddock.log.interface import LogCorruptError, LogError
from tests.support.memory_store import Fault, MemoryEtcd, MemoryStore

KEYS = Keys("shop")
BOOT = bytes(range(8))
SNAPSHOT = random.Random(1).randbytes(3 * PIECE_BYTES + 100)
ALL_PIECES = Range(KEYS.snapshots, KEYS.snapshots_end)


async def no_sleep(seconds: float) -> None:
    pass


CALLS = Calls(sleep=no_sleep)


def cut(index: int) -> Cut:
    return Cut(index, 10 * index, BOOT, index, {BOOT: index + 1})


class Names:
    """Random bytes that are different each time, and known."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, size: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(size, "big")


def put(
    store: MemoryStore, index: int, chunks: Chunks = (SNAPSHOT,), names: Names | None = None
) -> Manifest:
    return asyncio.run(upload(store, KEYS, chunks, cut(index), 1, names or Names(), calls=CALLS))


async def collect(store: MemoryStore, manifest: Manifest) -> bytes:
    return b"".join([piece async for piece in download(store, KEYS, manifest, calls=CALLS)])


def get(store: MemoryStore, manifest: Manifest) -> bytes:
    return asyncio.run(collect(store, manifest))


def current(store: MemoryStore) -> Manifest | None:
    return asyncio.run(read_manifest(store, KEYS, CALLS))


@pytest.fixture
def etcd() -> MemoryEtcd:
    return MemoryEtcd(KEYS)


@pytest.fixture
def store(etcd: MemoryEtcd) -> MemoryStore:
    return MemoryStore(etcd)


async def slowly(chunks: Iterable[bytes]) -> AsyncIterator[bytes]:
    for chunk in chunks:
        await asyncio.sleep(0)
        yield chunk


@pytest.mark.parametrize("size", [0, 1, PIECE_BYTES - 1, PIECE_BYTES, PIECE_BYTES + 1, 200_000])
@pytest.mark.parametrize("chunk_size", [100, PIECE_BYTES, 150_000])
def test_chunks_of_any_size_become_pieces(size: int, chunk_size: int) -> None:
    content = random.Random(size).randbytes(size)
    chunks = [content[at : at + chunk_size] for at in range(0, size, chunk_size)]

    async def gather(given: Chunks) -> list[bytes]:
        return [piece async for piece in regroup(given)]

    pieces = asyncio.run(gather(chunks))
    assert b"".join(pieces) == content
    assert all(len(piece) == PIECE_BYTES for piece in pieces[:-1])
    assert all(0 < len(piece) <= PIECE_BYTES for piece in pieces)
    assert asyncio.run(gather(slowly(chunks))) == pieces


def test_a_snapshot_is_read_as_it_was_written(store: MemoryStore) -> None:
    manifest = put(store, 7)
    assert current(store) == manifest
    assert (manifest.cut, manifest.chunks, manifest.size) == (cut(7), 4, len(SNAPSHOT))
    assert get(store, manifest) == SNAPSHOT


def test_an_empty_snapshot_is_one_too(store: MemoryStore) -> None:
    manifest = put(store, 7, ())
    assert manifest.chunks == 0
    assert get(store, manifest) == b""


def test_the_cut_of_the_previous_snapshot_is_what_may_be_trimmed(store: MemoryStore) -> None:
    names = Names()
    assert put(store, 7, names=names).trimmed is None
    assert put(store, 9, names=names).trimmed == cut(7)
    assert put(store, 12, names=names).trimmed == cut(9)


def test_a_snapshot_that_is_not_newer_is_refused(store: MemoryStore) -> None:
    put(store, 7)
    for index in (6, 7):
        with pytest.raises(LogError, match=f"stands at 7, and the one to be written at {index}"):
            put(store, index)


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER, Fault.LATE])
def test_every_call_of_an_upload_may_be_lost_once(fault: Fault) -> None:
    calls = 0
    while True:
        etcd = MemoryEtcd(KEYS)
        store = MemoryStore(etcd)
        old = put(store, 3)
        store.calls.clear()
        store.faults = iter([Fault.NONE] * calls + [fault])
        manifest = put(store, 7)
        etcd.run_late()
        assert current(MemoryStore(etcd)) == manifest
        assert manifest.trimmed == old.cut
        assert get(store, manifest) == SNAPSHOT
        if calls > len(store.calls):
            return
        calls += 1


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER])
def test_every_call_of_a_download_may_be_lost_once(store: MemoryStore, fault: Fault) -> None:
    manifest = put(store, 7)
    for calls in range(4):
        store.faults = iter([Fault.NONE] * calls + [fault])
        assert get(store, manifest) == SNAPSHOT


def test_an_upload_stops_when_another_one_was_first(etcd: MemoryEtcd) -> None:
    names = Names()

    async def overtaken() -> AsyncIterator[bytes]:
        yield SNAPSHOT
        other = MemoryStore(etcd)
        await upload(other, KEYS, [b"other"], cut(5), 1, names, calls=CALLS)
        yield SNAPSHOT

    store = MemoryStore(etcd)
    with pytest.raises(ManifestReplacedError):
        put(store, 9, overtaken(), names)
    found = current(store)
    assert found is not None
    assert found.index == 5


def test_an_upload_looks_at_the_manifest_long_before_its_end(etcd: MemoryEtcd) -> None:
    async def overtaken() -> AsyncIterator[bytes]:
        yield SNAPSHOT
        etcd.put((KEYS.manifest, EMPTY.encode()))
        yield SNAPSHOT * 100

    with pytest.raises(ManifestReplacedError):
        put(MemoryStore(etcd), 9, overtaken())
    assert len(etcd.select(ALL_PIECES)) < 100


def test_an_upload_stops_when_the_other_one_was_first_at_the_last_moment(etcd: MemoryEtcd) -> None:
    async def overtaken() -> AsyncIterator[bytes]:
        yield SNAPSHOT
        etcd.put((KEYS.manifest, EMPTY.encode()))

    with pytest.raises(ManifestReplacedError):
        put(MemoryStore(etcd), 9, overtaken())
    assert current(MemoryStore(etcd)) is None


def test_an_upload_does_not_count_if_etcd_was_restored_in_the_middle(etcd: MemoryEtcd) -> None:
    store = MemoryStore(etcd)
    old = put(store, 3)

    async def restored() -> AsyncIterator[bytes]:
        yield SNAPSHOT
        backup = dict(etcd.items)
        yield SNAPSHOT
        # The same manifest, with the same revision; pieces in the middle are gone.
        etcd.items = backup
        yield SNAPSHOT

    with pytest.raises(ManifestReplacedError):
        put(store, 9, restored())
    assert current(store) == old


def test_a_snapshot_whose_last_piece_is_gone_never_counts(etcd: MemoryEtcd) -> None:
    async def deleted() -> AsyncIterator[bytes]:
        yield SNAPSHOT[: 2 * PIECE_BYTES]
        etcd.delete([ALL_PIECES], None, 0)

    with pytest.raises(ManifestReplacedError):
        put(MemoryStore(etcd), 9, deleted())


def fail() -> Iterable[bytes]:
    yield SNAPSHOT
    raise OSError("the disk is broken")


@pytest.mark.parametrize("has_snapshot", [False, True])
def test_what_failed_uploads_leave_does_not_pile_up(
    etcd: MemoryEtcd, store: MemoryStore, has_snapshot: bool
) -> None:
    names = Names()
    before = put(store, 3, names=names) if has_snapshot else None
    for index in range(10, 20):
        with pytest.raises(OSError, match="broken"):
            put(store, index, fail(), names)
    assert len(etcd.select(ALL_PIECES)) <= 4 + 3
    found = current(store)
    if before is None or found is None:
        assert found is before
    else:
        assert found.name == before.name
        assert get(store, found) == SNAPSHOT
    manifest = put(store, 30, names=names)
    assert manifest.trimmed == (cut(3) if has_snapshot else None)
    assert get(store, manifest) == SNAPSHOT


def test_an_upload_that_begins_ends_those_that_began_before(etcd: MemoryEtcd) -> None:
    names = Names()

    async def overtaken() -> AsyncIterator[bytes]:
        yield SNAPSHOT
        with pytest.raises(OSError, match="broken"):
            await upload(MemoryStore(etcd), KEYS, fail(), cut(5), 1, names, calls=CALLS)

    with pytest.raises(ManifestReplacedError):
        put(MemoryStore(etcd), 9, overtaken(), names)


def test_a_reader_starts_over_when_the_snapshot_was_replaced(
    etcd: MemoryEtcd, store: MemoryStore
) -> None:
    names = Names()
    manifest = put(store, 3, [SNAPSHOT * 8], names)

    async def read() -> None:
        taken = 0
        async for _ in download(store, KEYS, manifest, calls=CALLS):
            taken += 1
            if taken == 3:
                await upload(store, KEYS, [b"new"], cut(5), 1, names, calls=CALLS)
                etcd.delete([Range(KEYS.snapshot_piece(manifest.name, 0), b"~")], None, 0)

    with pytest.raises(ManifestReplacedError, match="start over"):
        asyncio.run(read())


@pytest.mark.parametrize("number", [0, 2, 3])
def test_a_missing_piece_is_named(etcd: MemoryEtcd, store: MemoryStore, number: int) -> None:
    manifest = put(store, 7)
    etcd.delete([Range(KEYS.snapshot_piece(manifest.name, number))], None, 0)
    with pytest.raises(LogCorruptError, match=f"piece {number} of 4 is missing.*restore"):
        get(store, manifest)


@pytest.mark.parametrize("piece", [SNAPSHOT[:PIECE_BYTES][::-1], b"short"])
def test_a_changed_piece_is_noticed(etcd: MemoryEtcd, store: MemoryStore, piece: bytes) -> None:
    manifest = put(store, 7)
    etcd.put((KEYS.snapshot_piece(manifest.name, 0), piece))
    with pytest.raises(LogCorruptError, match=r"index 7 is damaged.*paddock restore"):
        get(store, manifest)


def test_one_piece_is_in_flight_and_an_upload_uses_a_fifth_of_the_time(store: MemoryStore) -> None:
    now = 0.0
    rested = 0.0
    in_flight = 0

    async def put_slowly() -> None:
        nonlocal now, in_flight
        in_flight += 1
        assert in_flight == 1
        await asyncio.sleep(0)
        now += 1.0
        in_flight -= 1

    async def sleep(seconds: float) -> None:
        nonlocal rested
        rested += seconds

    store.turn = put_slowly
    asyncio.run(
        upload(store, KEYS, [SNAPSHOT], cut(7), 1, Names(), calls=Calls(lambda: now, sleep))
    )
    assert rested == pytest.approx(4.0 * store.calls.count("swap"))
