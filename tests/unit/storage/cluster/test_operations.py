"""What an operator does to a service in etcd: which batches may be skipped."""

import asyncio
import random

import pytest

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.service import find_or_create_service
from paddock.log.interface import LogError
from paddock.storage.cluster.operations import skip
from paddock.testing.simulation.store_model import EtcdModel
from tests.unit.state.shared_state import A, B, join_entry, payload_of

KEYS = Keys("shop")
UNREADABLE = b"no batch"


def skip_after(index: int, *batches: tuple[bytes, int, bytes]) -> None:
    """Skip a batch of a log with these ones: each with its boot and its number."""

    async def work() -> None:
        model = EtcdModel(keys=KEYS)
        store = model.store("one")
        await find_or_create_service(store, KEYS, random.Random(1).randbytes)
        for boot, number, payload in batches:
            await store.append(boot, number, payload)
        await skip(store, KEYS, index)
        assert (await store.read(KEYS.skip(index))).found[0] is not None

    asyncio.run(work())


def joins(boot: bytes) -> tuple[bytes, int, bytes]:
    return boot, 0, payload_of(join_entry())


def knows(boot: bytes, number: int, applied: int) -> tuple[bytes, int, bytes]:
    """Return a batch whose proposer had applied the log up to an index."""
    return boot, number, payload_of(digest_index=applied)


def test_a_batch_that_somebody_has_applied_is_not_skipped() -> None:
    with pytest.raises(LogError, match="has applied batch 3: the one that has proposed 4"):
        skip_after(3, joins(A), joins(B), (A, 1, UNREADABLE), knows(B, 1, 3))


def test_a_batch_that_nobody_has_applied_is_skipped() -> None:
    skip_after(3, joins(A), joins(B), (A, 1, UNREADABLE), knows(B, 1, 2))


def test_a_batch_that_was_held_is_applied_where_the_one_before_it_came() -> None:
    log = (joins(A), joins(B), (A, 2, UNREADABLE), knows(B, 1, 3), knows(A, 1, 2))
    skip_after(3, *log)
    with pytest.raises(LogError, match="has applied batch 3: the one that has proposed 6"):
        skip_after(3, *log, knows(B, 2, 5))


def test_what_a_batch_begins_with_that_cannot_be_read_says_nothing() -> None:
    skip_after(3, joins(A), joins(B), (A, 1, b"\x00" * 7 + b"\x03"), (B, 1, UNREADABLE))
