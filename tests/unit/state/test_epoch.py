"""The first zxid of the next epoch."""

from __future__ import annotations

import pytest

from paddock.state.epoch import next_epoch


def test_an_epoch_begins_above_every_zxid_of_the_one_before() -> None:
    assert next_epoch(0, 0) == (1 << 32, 1 << 20)
    assert next_epoch((7 << 32) - 1, 100) == (7 << 32, 100 + (1 << 20))
    assert next_epoch(7 << 32, 100) == (8 << 32, 100 + (1 << 20))


@pytest.mark.parametrize(
    ("zxid", "last_session"), [((1 << 63) - 1, 0), (0, (1 << 63) - (1 << 20)), (-(1 << 40), 0)]
)
def test_there_may_be_no_further_one(zxid: int, last_session: int) -> None:
    assert next_epoch(zxid, last_session) is None
