"""How often the costly admin commands may be asked for."""

from __future__ import annotations

import pytest

from paddock.server.admin.rate_limits import RateLimit


def test_once_in_an_interval() -> None:
    limit = RateLimit(10.0)
    assert [limit.wait(now) for now in (0.0, 4.0, 9.5, 10.0, 11.0)] == [0.0, 6.0, 0.5, 0.0, 9.0]


def test_an_interval_of_nothing_is_no_limit() -> None:
    limit = RateLimit(0.0)
    assert [limit.wait(5.0), limit.wait(5.0)] == [0.0, 0.0]


@pytest.mark.parametrize(("since", "then"), [(None, 0.0), (20.0, 9.0)])
def test_what_is_given_back_does_not_count_but_others_do(since: float | None, then: float) -> None:
    limit = RateLimit(10.0)
    limit.wait(0.0)
    if since is not None:
        limit.wait(since)
    limit.give_back(0.0)
    assert limit.wait(21.0 if since else 1.0) == then
