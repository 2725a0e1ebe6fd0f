"""Trimming: what goes, what stays, and what becomes of it when it is interrupted or repeated."""

import asyncio
import contextlib
from dataclasses import replace

import pytest

from paddock.log.etcd.calls import Calls
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import Cut, Manifest, ManifestReplacedError
from paddock.log.etcd.store import Range, StoreError
from paddock.log.etcd.trimming import BATCHES_MAX, KEYS_MAX, LOG_BYTES_MIN, due, trim
from tests.support.memory_store import Fault, MemoryEtcd, MemoryStore

KEYS = Keys("shop")
A = b"\x0a" * 8
B = b"\x0b" * 8
C = b"\x0c" * 8
ALL_PIECES = Range(KEYS.snapshots, KEYS.snapshots_end)


async def no_sleep(seconds: float) -> None:
    pass


CALLS = Calls(sleep=no_sleep)


@pytest.fixture
def etcd() -> MemoryEtcd:
    return MemoryEtcd(KEYS)


def append(etcd: MemoryEtcd, boot: bytes, *numbers: int) -> int:
    """Append some batches; return the revision of the last."""
    for number in numbers:
        assert etcd.append(boot, number, b"batch")
    return etcd.revision


def batches(etcd: MemoryEtcd, boot: bytes) -> list[int]:
    """Return the numbers of a boot that are there."""
    found = map(KEYS.parse_batch, etcd.select(Range(KEYS.batches, KEYS.batches_end)))
    return [one[1] for one in found if one is not None and one[0] == boot]


def put_manifest(etcd: MemoryEtcd, trimmed: Cut | None, name: str = "new") -> Manifest:
    manifest = Manifest(Cut(99, etcd.revision), 1, name, 0, 0, bytes(32), trimmed)
    return replace(manifest, mod_revision=etcd.put((KEYS.manifest, manifest.encode())))


def run(etcd: MemoryEtcd, manifest: Manifest, *faults: Fault, compact: bool = True) -> int:
    store = MemoryStore(etcd)
    store.faults = iter(faults)
    return asyncio.run(trim(store, KEYS, manifest, compact=compact, calls=CALLS))


@pytest.mark.parametrize(
    ("bytes_since", "batches_since", "size", "is_due"),
    [
        (0, 0, 0, False),
        (LOG_BYTES_MIN - 1, BATCHES_MAX - 1, 0, False),
        (LOG_BYTES_MIN, 1, 0, True),
        (LOG_BYTES_MIN, 1, LOG_BYTES_MIN + 1, False),
        (LOG_BYTES_MIN + 1, 1, LOG_BYTES_MIN + 1, True),
        (0, BATCHES_MAX, LOG_BYTES_MIN + 1, True),
    ],
)
def test_a_snapshot_is_due(bytes_since: int, batches_since: int, size: int, is_due: bool) -> None:
    assert due(bytes_since, batches_since, size) == is_due


def test_batches_of_members_go_below_the_cut(etcd: MemoryEtcd) -> None:
    append(etcd, A, 0, 1, 2)
    revision = append(etcd, B, 0, 1)
    append(etcd, A, 3, 4)
    append(etcd, B, 2)
    run(etcd, put_manifest(etcd, Cut(5, revision, cuts={A: 3, B: 2})))
    assert batches(etcd, A) == [3, 4]
    assert batches(etcd, B) == [2]
    assert KEYS.head in etcd.items


def test_no_batch_of_a_member_goes_above_the_cut(etcd: MemoryEtcd) -> None:
    """One that is far ahead is void, and old, but its number has not come yet."""
    revision = append(etcd, A, 0, 1, 2, 3, 90)
    run(etcd, put_manifest(etcd, Cut(5, revision, cuts={A: 3})))
    assert batches(etcd, A) == [3, 90]


def test_batches_of_boots_that_have_ended_go_up_to_the_revision(etcd: MemoryEtcd) -> None:
    append(etcd, A, 0, 1, 2)
    revision = append(etcd, B, 0)
    append(etcd, A, 3)
    append(etcd, C, 0, 1)
    run(etcd, put_manifest(etcd, Cut(4, revision, cuts={B: 1})))
    assert batches(etcd, A) == [3]
    assert batches(etcd, B) == []
    assert batches(etcd, C) == [0, 1]


def test_the_first_snapshot_trims_no_batch(etcd: MemoryEtcd) -> None:
    append(etcd, A, 0, 1)
    assert run(etcd, put_manifest(etcd, None)) == 0
    assert batches(etcd, A) == [0, 1]
    assert etcd.compacted == 0


def test_more_batches_than_a_transaction_takes_go_in_several(etcd: MemoryEtcd) -> None:
    revision = append(etcd, A, *range(2 * KEYS_MAX + 3))
    append(etcd, A, 2 * KEYS_MAX + 3)
    run(etcd, put_manifest(etcd, Cut(9, revision, cuts={A: 2 * KEYS_MAX + 3})))
    assert batches(etcd, A) == [2 * KEYS_MAX + 3]
    assert etcd.keys_deleted_max == KEYS_MAX


def test_numbers_far_apart_take_no_more_transactions(etcd: MemoryEtcd) -> None:
    revision = append(etcd, A, 5, 10**9, 10**12)
    store = MemoryStore(etcd)
    manifest = put_manifest(etcd, Cut(9, revision, cuts={A: 10**12 + 1}))
    asyncio.run(trim(store, KEYS, manifest, calls=CALLS))
    assert batches(etcd, A) == []
    assert store.calls.count("delete") == 3


def test_a_late_duplicate_stays_until_its_index_is_in_the_previous_snapshot(
    etcd: MemoryEtcd,
) -> None:
    """Readers behind the snapshot count the batches, and would otherwise miscount."""
    revision = append(etcd, A, 2, 3, 4, 5)
    duplicate = append(etcd, A, 0, 1)
    late = append(etcd, A, 6)
    run(etcd, put_manifest(etcd, Cut(4, revision, cuts={A: 6})))
    assert batches(etcd, A) == [0, 1, 6]
    run(etcd, put_manifest(etcd, Cut(6, duplicate, cuts={A: 6})))
    assert batches(etcd, A) == [6]
    run(etcd, put_manifest(etcd, Cut(7, late, cuts={A: 7})))
    assert batches(etcd, A) == []


@pytest.mark.parametrize("is_member", [True, False])
def test_a_duplicate_among_old_batches_stays_alone(etcd: MemoryEtcd, is_member: bool) -> None:
    revision = append(etcd, A, 0, 1, 3, 4, *range(6, 30))
    append(etcd, A, 2, 5)
    run(etcd, put_manifest(etcd, Cut(4, revision, cuts={A: 30} if is_member else {})))
    assert batches(etcd, A) == [2, 5]


def test_a_duplicate_that_arrives_during_the_trimming_stays(etcd: MemoryEtcd) -> None:
    """The deletion is lost, is carried out, and the duplicate comes before it is repeated."""
    revision = append(etcd, A, 0, 1, 2)
    manifest = put_manifest(etcd, Cut(3, revision, cuts={A: 3}))

    async def resurrect(seconds: float) -> None:
        if len(batches(etcd, A)) == 0:
            append(etcd, A, 1)

    store = MemoryStore(etcd)
    store.faults = iter([Fault.NONE, Fault.NONE, Fault.AFTER])
    asyncio.run(trim(store, KEYS, manifest, calls=Calls(sleep=resurrect)))
    assert batches(etcd, A) == [1]


def test_foreign_keys_are_left_alone(etcd: MemoryEtcd) -> None:
    foreign = [
        KEYS.batches + b"0",
        KEYS.batches + b"zz/1",
        KEYS.batch(A, 1).upper().replace(KEYS.batches.upper(), KEYS.batches),
        KEYS.snapshots + b"note",
        KEYS.snapshots + b"old/zz",
        KEYS.snapshots + b"other/1",
    ]
    etcd.put(*((key, b"") for key in foreign))
    revision = append(etcd, A, 0)
    append(etcd, B, 0)
    run(etcd, put_manifest(etcd, Cut(1, revision, cuts={A: 1})))
    assert all(key in etcd.items for key in foreign)
    assert batches(etcd, B) == [0]


def put_pieces(etcd: MemoryEtcd, name: str, count: int) -> None:
    for number in range(count):
        etcd.put((KEYS.snapshot_piece(name, number), b"piece"))


def test_snapshots_that_do_not_count_go(etcd: MemoryEtcd) -> None:
    put_pieces(etcd, "0-old", KEYS_MAX + 5)
    put_pieces(etcd, "1-new", 3)
    put_pieces(etcd, "2-failed", 2)
    run(etcd, put_manifest(etcd, None, "1-new"))
    assert etcd.select(ALL_PIECES) == [KEYS.snapshot_piece("1-new", n) for n in range(3)]
    assert etcd.keys_deleted_max == KEYS_MAX


def test_an_upload_that_began_under_this_manifest_is_left_alone(etcd: MemoryEtcd) -> None:
    put_pieces(etcd, "1-new", 1)
    manifest = put_manifest(etcd, None, "1-new")
    put_pieces(etcd, "2-running", 2)
    run(etcd, manifest)
    assert len(etcd.select(ALL_PIECES)) == 3


def test_the_history_is_compacted_up_to_the_last_deletion(etcd: MemoryEtcd) -> None:
    revision = append(etcd, A, 0, 1)
    put_pieces(etcd, "0-old", 1)
    manifest = put_manifest(etcd, Cut(2, revision, cuts={A: 2}))
    assert run(etcd, manifest) == etcd.compacted == etcd.revision


def test_the_history_stays_on_an_etcd_that_others_use(etcd: MemoryEtcd) -> None:
    revision = append(etcd, A, 0, 1)
    manifest = put_manifest(etcd, Cut(2, revision, cuts={A: 2}))
    assert run(etcd, manifest, compact=False) == etcd.revision
    assert etcd.compacted == 0


def test_a_manifest_that_was_replaced_trims_nothing(etcd: MemoryEtcd) -> None:
    revision = append(etcd, A, 0, 1)
    put_pieces(etcd, "0-old", 1)
    old = put_manifest(etcd, Cut(2, revision, cuts={A: 2}))
    put_manifest(etcd, None, "0-old")
    with pytest.raises(ManifestReplacedError):
        run(etcd, old)
    with pytest.raises(ManifestReplacedError):
        run(etcd, replace(old, trimmed=None))
    assert batches(etcd, A) == [0, 1]
    assert len(etcd.select(ALL_PIECES)) == 1
    assert etcd.compacted == 0


@pytest.mark.parametrize("fault", [Fault.BEFORE, Fault.AFTER, Fault.LATE])
def test_every_call_of_a_trimming_may_be_lost_once(fault: Fault) -> None:
    for calls in range(20):
        etcd = MemoryEtcd(KEYS)
        revision = append(etcd, A, 0, 1, 2)
        append(etcd, A, 3)
        put_pieces(etcd, "0-old", 2)
        manifest = put_manifest(etcd, Cut(3, revision, cuts={A: 3}))
        run(etcd, manifest, *[Fault.NONE] * calls, fault)
        etcd.run_late()
        assert batches(etcd, A) == [3]
        assert etcd.select(ALL_PIECES) == []
        assert etcd.compacted


def test_a_trimming_that_died_anywhere_is_finished_by_the_next_one() -> None:
    dies = Calls(sleep=no_sleep, attempts_max=1)
    for calls in range(20):
        etcd = MemoryEtcd(KEYS)
        first = append(etcd, A, *range(2 * KEYS_MAX))
        second = append(etcd, A, 2 * KEYS_MAX)
        put_pieces(etcd, "0-old", 2)
        manifest = put_manifest(etcd, Cut(1, first, cuts={A: 2 * KEYS_MAX}))
        store = MemoryStore(etcd)
        store.faults = iter([Fault.NONE] * calls + [Fault.BEFORE] * 100)
        with contextlib.suppress(StoreError):
            asyncio.run(trim(store, KEYS, manifest, calls=dies))
        assert batches(etcd, A)[-1] == 2 * KEYS_MAX
        run(etcd, put_manifest(etcd, Cut(2, second, cuts={A: 2 * KEYS_MAX + 1})))
        assert batches(etcd, A) == []
        assert etcd.select(ALL_PIECES) == []


def test_two_may_trim_at_once(etcd: MemoryEtcd) -> None:
    revision = append(etcd, A, *range(KEYS_MAX + 3))
    append(etcd, A, KEYS_MAX + 3)
    put_pieces(etcd, "0-old", 9)
    manifest = put_manifest(etcd, Cut(9, revision, cuts={A: KEYS_MAX + 3}))

    async def both() -> None:
        await asyncio.gather(
            *(trim(MemoryStore(etcd), KEYS, manifest, calls=CALLS) for _ in range(2))
        )

    asyncio.run(both())
    assert batches(etcd, A) == [KEYS_MAX + 3]
    assert etcd.select(ALL_PIECES) == []
