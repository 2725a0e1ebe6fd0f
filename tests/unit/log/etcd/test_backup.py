"""A service is read while it runs, and written into an empty name."""

import asyncio
import random
from collections.abc import Iterable
from dataclasses import replace

import pytest

from paddock.log.etcd import pages
from paddock.log.etcd.backup import ServiceHead, ServicePiece, SnapshotPiece
from paddock.log.etcd.backup import read_service as read
from paddock.log.etcd.backup import write_service as write
from paddock.log.etcd.calls import Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import EMPTY, Cut, Manifest, ManifestReplacedError
from paddock.log.etcd.service import Service, find_or_create_service
from paddock.log.etcd.snapshots import PIECE_BYTES, download, upload
from paddock.log.etcd.store import Range, StoreError
from paddock.log.etcd.trimming import trim
from paddock.log.interface import LogCorruptError, LogError, Position, Record
from tests.support.memory_store import Fault, MemoryEtcd, MemoryStore

KEYS = Keys("shop")
A = b"\x0a" * 8
B = b"\x0b" * 8
SERVICE = Service(b"\x07" * 16)
SNAPSHOT = random.Random(1).randbytes(2 * PIECE_BYTES + 100)


async def no_sleep(seconds: float) -> None:
    pass


CALLS = Calls(sleep=no_sleep)


class Names:
    """Random bytes that are different each time, and known."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, size: int) -> bytes:
        self.count += 1
        return self.count.to_bytes(size, "big")


NAMES = Names()


@pytest.fixture
def etcd() -> MemoryEtcd:
    etcd = MemoryEtcd(KEYS)
    etcd.put((KEYS.id, SERVICE.encode()))
    return etcd


def append(etcd: MemoryEtcd, boot: bytes, *numbers: int) -> None:
    for number in numbers:
        assert etcd.append(boot, number, b"%b %d" % (boot, number))


def cut_now(etcd: MemoryEtcd) -> Cut:
    """Return the cut behind all that was appended so far."""
    last = etcd.records[-1]
    cuts: dict[bytes, int] = {}
    for record in etcd.records:
        assert record.server is not None
        cuts[record.server] = max(cuts.get(record.server, 0), record.number + 1)
    return Cut(last.index, last.revision, last.server or b"", last.number, cuts)


def snapshot(etcd: MemoryEtcd, content: bytes = SNAPSHOT) -> Manifest:
    store = MemoryStore(etcd)
    return asyncio.run(upload(store, KEYS, [content], cut_now(etcd), 1, NAMES, calls=CALLS))


async def gather(store: MemoryStore) -> list[ServicePiece]:
    return [piece async for piece in read(store, KEYS, calls=CALLS)]


def split(pieces: list[ServicePiece]) -> tuple[ServiceHead, bytes, list[Record]]:
    head = pieces[0]
    assert isinstance(head, ServiceHead)
    content = b"".join(one.content for one in pieces if isinstance(one, SnapshotPiece))
    return head, content, [one for one in pieces if isinstance(one, Record)]


def reading(etcd: MemoryEtcd, *faults: Fault) -> tuple[ServiceHead, bytes, list[Record]]:
    store = MemoryStore(etcd)
    store.faults = iter(faults)
    return split(asyncio.run(gather(store)))


def test_a_service_without_a_snapshot_is_read_from_its_first_batch(etcd: MemoryEtcd) -> None:
    append(etcd, B, 0, 1)
    append(etcd, A, 0)
    append(etcd, B, 3, 2)
    head, content, records = reading(etcd)
    assert head == ServiceHead(SERVICE, None, 5, etcd.revision, frozenset())
    assert head.after == Position()
    assert content == b""
    assert records == etcd.records


def test_every_batch_that_is_skipped_is_told_and_a_strange_key_is_none(
    etcd: MemoryEtcd, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(pages, "PLAN_KEYS", 2)
    append(etcd, A, 0)
    for key in (KEYS.skip(1), KEYS.skip(7), KEYS.skip(300), KEYS.skips + b"nonsense"):
        etcd.put((key, b"skip"))
    head, _, _ = reading(etcd)
    assert head.skipped == {1, 7, 300}
    assert "not the key of an index to skip" in caplog.text


def test_a_service_that_was_never_used_is_read(etcd: MemoryEtcd) -> None:
    head, content, records = reading(etcd)
    assert (head.index, content, records) == (0, b"", [])


def test_the_snapshot_is_followed_by_the_batches_behind_it_in_order(etcd: MemoryEtcd) -> None:
    append(etcd, B, *range(40))
    manifest = snapshot(etcd)
    append(etcd, B, 41, 40)
    append(etcd, A, *range(60))
    append(etcd, B, 42)
    head, content, records = reading(etcd)
    assert head.manifest == manifest
    assert head.after == manifest.position
    assert content == SNAPSHOT
    assert records == etcd.records[40:]


def test_a_late_duplicate_keeps_its_place(etcd: MemoryEtcd) -> None:
    append(etcd, A, 0, 1, 2)
    snapshot(etcd)
    append(etcd, A, 3)
    manifest = snapshot(etcd)
    asyncio.run(trim(MemoryStore(etcd), KEYS, manifest, calls=CALLS))
    append(etcd, A, 4, 0, 5)
    head, _, records = reading(etcd)
    assert head.index == 7
    assert [record.number for record in records] == [4, 0, 5]
    assert records == etcd.records[4:]


def test_batches_that_come_during_the_reading_are_not_in_it(etcd: MemoryEtcd) -> None:
    append(etcd, A, 0, 1)

    async def during() -> list[ServicePiece]:
        pieces = []
        async for piece in read(MemoryStore(etcd), KEYS, calls=CALLS):
            pieces.append(piece)
            append(etcd, B, len(pieces))
        return pieces

    head, _, records = split(asyncio.run(during()))
    assert head.index == 2
    assert records == etcd.records[:2]


def test_skipped_batches_are_named(etcd: MemoryEtcd) -> None:
    etcd.put((KEYS.skip(3), b""), (KEYS.skip(700), b""))
    assert reading(etcd)[0].skipped == {3, 700}


def test_a_claim_is_not_taken_for_a_snapshot(etcd: MemoryEtcd) -> None:
    etcd.put((KEYS.manifest, EMPTY.encode()))
    assert reading(etcd)[0].manifest is None


def test_a_reading_goes_on_when_there_is_a_new_snapshot_and_starts_over_after_the_next(
    etcd: MemoryEtcd,
) -> None:
    append(etcd, A, 0, 1)
    snapshot(etcd)
    append(etcd, A, 2, 3)

    async def during(snapshots: int) -> list[ServicePiece]:
        pieces = []
        async for piece in read(MemoryStore(etcd), KEYS, calls=CALLS):
            pieces.append(piece)
            if len(pieces) == 4:  # behind the last piece of the snapshot
                for _ in range(snapshots):
                    cut = cut_now(etcd)
                    store = MemoryStore(etcd)
                    manifest = await upload(store, KEYS, [SNAPSHOT], cut, 1, NAMES, calls=CALLS)
                    await trim(store, KEYS, manifest, calls=CALLS)
                    append(etcd, A, len(etcd.records))
        return pieces

    assert split(asyncio.run(during(1)))[2] == etcd.records[2:4]
    with pytest.raises(ManifestReplacedError, match="start over"):
        asyncio.run(during(2))


def test_a_missing_batch_is_damage_unless_it_was_trimmed(etcd: MemoryEtcd) -> None:
    append(etcd, A, 0, 1, 2)
    etcd.delete([Range(KEYS.batch(A, 1))], None, 0)
    with pytest.raises(LogCorruptError, match="/paddock/shop: batches between 0 and 3 are missing"):
        reading(etcd)


def test_a_missing_batch_behind_the_newest_snapshot_is_damage(etcd: MemoryEtcd) -> None:
    for number in range(3):
        append(etcd, A, number)
        snapshot(etcd)
    append(etcd, A, 3, 4)
    etcd.delete([Range(KEYS.batch(A, 3))], None, 0)
    with pytest.raises(LogCorruptError, match="batches between 3 and 5 are missing"):
        reading(etcd)


def test_a_batch_that_came_back_meanwhile_is_not_taken_for_the_one_that_went(
    etcd: MemoryEtcd,
) -> None:
    append(etcd, A, 0, 1)
    store = MemoryStore(etcd)

    async def exchange() -> None:
        # Once the keys are known, before the values are read.
        if store.calls[-2:] == ["page", "read"]:
            etcd.delete([Range(KEYS.batch(A, 1))], None, 0)
            append(etcd, A, 1)

    store.turn = exchange
    with pytest.raises(LogCorruptError, match="batches between 0 and 2 are missing"):
        asyncio.run(gather(store))


def test_every_call_of_a_reading_may_be_lost_once(etcd: MemoryEtcd) -> None:
    append(etcd, A, 0, 1)
    snapshot(etcd)
    append(etcd, A, 2)
    for calls in range(10):
        head, content, records = reading(etcd, *[Fault.NONE] * calls, Fault.AFTER)
        assert (head.index, content, records) == (3, SNAPSHOT, etcd.records[2:])


def test_a_name_without_a_service_is_named() -> None:
    with pytest.raises(LogError, match="/paddock/shop: there is no service"):
        reading(MemoryEtcd(KEYS))


def import_into(
    etcd: MemoryEtcd, chunks: Iterable[bytes] = (SNAPSHOT,), *faults: Fault, calls: Calls = CALLS
) -> Manifest:
    store = MemoryStore(etcd)
    store.faults = iter(faults)
    return asyncio.run(write(store, KEYS, SERVICE.id, chunks, 2, NAMES, calls=calls))


def test_a_service_that_is_written_is_read_as_one_without_batches() -> None:
    etcd = MemoryEtcd(KEYS)
    manifest = import_into(etcd)
    head, content, records = reading(etcd)
    assert head.service == SERVICE
    assert head.manifest == manifest
    assert (manifest.cut, manifest.rules) == (Cut(), 2)
    assert (head.index, content, records) == (0, SNAPSHOT, [])


def test_the_log_begins_behind_a_service_that_was_written() -> None:
    etcd = MemoryEtcd(KEYS)
    import_into(etcd)
    append(etcd, A, 0, 1)
    assert [record.index for record in reading(etcd)[2]] == [1, 2]
    first = snapshot(etcd)
    assert first.trimmed == Cut()
    asyncio.run(trim(MemoryStore(etcd), KEYS, first, calls=CALLS))
    append(etcd, A, 2)
    assert [record.index for record in reading(etcd)[2]] == [3]


@pytest.mark.parametrize("what", ["id", "head"])
def test_a_name_that_is_in_use_is_refused(what: str) -> None:
    etcd = MemoryEtcd(KEYS)
    if what == "id":
        etcd.put((KEYS.id, SERVICE.encode()))
    else:
        append(etcd, A, 0)
    before = dict(etcd.items)
    with pytest.raises(LogError, match="/paddock/shop: this name is in use"):
        import_into(etcd)
    assert etcd.items == before


@pytest.mark.parametrize("before", [1, PIECE_BYTES, len(SNAPSHOT)])
def test_a_name_that_comes_into_use_meanwhile_is_refused(before: int) -> None:
    etcd = MemoryEtcd(KEYS)

    def used_meanwhile() -> Iterable[bytes]:
        yield SNAPSHOT[:before]
        etcd.put((KEYS.id, Service(b"\x08" * 16).encode()))
        yield SNAPSHOT[before:]

    with pytest.raises(LogError, match="this name is in use"):
        import_into(etcd, used_meanwhile())
    head, content, _ = reading(etcd)
    assert head.service == Service(b"\x08" * 16)
    assert (head.manifest, content) == (None, b"")


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER, Fault.LATE])
def test_every_call_of_a_writing_may_be_lost_once(fault: Fault) -> None:
    for calls in range(10):
        etcd = MemoryEtcd(KEYS)
        manifest = import_into(etcd, [SNAPSHOT], *[Fault.NONE] * calls, fault)
        etcd.run_late()
        head, content, _ = reading(etcd)
        assert (head.service, head.manifest, content) == (SERVICE, manifest, SNAPSHOT)


def test_a_writing_that_died_anywhere_is_run_again_and_no_server_starts_on_it() -> None:
    dies = Calls(sleep=no_sleep, attempts_max=1)
    for calls in range(4):
        etcd = MemoryEtcd(KEYS)
        with pytest.raises(StoreError, match="not carried out"):
            import_into(etcd, [SNAPSHOT[:99]], *[Fault.NONE] * calls, Fault.BEFORE, calls=dies)
        assert KEYS.id not in etcd.items
        if KEYS.manifest in etcd.items:
            with pytest.raises(LogError, match="an import or a restore"):
                asyncio.run(find_or_create_service(MemoryStore(etcd), KEYS, NAMES, CALLS))
        manifest = import_into(etcd)
        assert reading(etcd)[:2] == (replace(reading(etcd)[0], manifest=manifest), SNAPSHOT)


def test_a_writing_that_another_has_taken_over_does_not_make_it_a_service() -> None:
    etcd = MemoryEtcd(KEYS)
    store = MemoryStore(etcd)

    async def take_over() -> None:
        if KEYS.manifest in etcd.items:
            etcd.put((KEYS.manifest, EMPTY.encode()))

    store.turn = take_over
    with pytest.raises(LogError, match="this name is in use"):
        asyncio.run(write(store, KEYS, SERVICE.id, [SNAPSHOT], 2, NAMES, calls=CALLS))
    assert KEYS.id not in etcd.items


def test_of_two_writings_at_once_one_is_refused() -> None:
    etcd = MemoryEtcd(KEYS)

    async def write_one(content: bytes) -> Manifest | LogError:
        store = MemoryStore(etcd)
        try:
            return await write(store, KEYS, content * 16, [content], 1, NAMES, calls=CALLS)
        except LogError as error:
            return error

    async def both() -> list[Manifest | LogError]:
        return await asyncio.gather(*map(write_one, (b"1", b"2")))

    outcomes = asyncio.run(both())
    [winner] = [one for one in outcomes if isinstance(one, Manifest)]
    head, content, _ = reading(etcd)
    assert head.manifest == winner
    assert head.service.id == content * 16

    async def collect() -> bytes:
        store = MemoryStore(etcd)
        return b"".join([one async for one in download(store, KEYS, winner, calls=CALLS)])

    assert asyncio.run(collect()) == content
