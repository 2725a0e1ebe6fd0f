"""Batches of a shared log, and the digests of the states between them."""

import pytest

from paddock.state.entry import Batch
from paddock.storage.cluster.shared_batches import DIGESTS_MAX, SharedBatches
from paddock.storage.replay import UnreadableBatchError


def test_a_batch_differs_if_its_proposer_had_another_state_than_is_remembered() -> None:
    batches = SharedBatches(3, 30)
    batches.applied(4, 40)
    assert [batches.digest_at(index) for index in (2, 3, 4)] == [None, 30, 40]
    assert not batches.differs(Batch([], 4, 40))
    assert batches.differs(Batch([], 4, 41))
    # Nobody knows any more.
    assert not batches.differs(Batch([], 2, 20))


def test_the_last_digests_are_remembered() -> None:
    batches = SharedBatches(0, 0)
    for index in range(1, DIGESTS_MAX + 1):
        batches.applied(index, index)
    assert (batches.digest_at(0), batches.digest_at(1)) == (None, 1)


def test_a_batch_that_cannot_be_read_is_named_with_the_way_on() -> None:
    batches = SharedBatches(0, 0)
    decoded = batches.decode(1, Batch([], 0, 0).encode())
    assert (decoded.entries, decoded.digest_index) == ([], 0)
    with pytest.raises(UnreadableBatchError, match=r"batch 2 .* paddock cluster skip 2$"):
        batches.decode(2, b"no batch")
