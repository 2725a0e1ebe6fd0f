"""A load on something that is no service: how much is under way, and when it ends."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable

import pytest

from paddock.cli.bench.load import Load
from paddock.cli.bench.plan import Cell
from paddock.cli.bench.tally import Measurement, Tally
from paddock.errors import ConnectionLostError, NoAuthError
from paddock.testing import run_virtually

WINDOW = 3


class FakeService:
    """Answers a tenth of a second after it was asked."""

    def __init__(self) -> None:
        self.asked = 0
        self.under_way = 0
        self.under_way_max = 0
        # What it does instead, by the number of the request.
        self.fails: Callable[[int], BaseException | None] = lambda number: None

    async def ask(self) -> None:
        self.asked += 1
        error = self.fails(self.asked)
        self.under_way += 1
        self.under_way_max = max(self.under_way, self.under_way_max)
        await asyncio.sleep(0.1)
        self.under_way -= 1
        if error is not None:
            raise error


def measured(
    service: FakeService, limit: int | None = None, *, clients: int = 2, seconds: float = 1.0
) -> Measurement:
    tally = Tally()
    asks: list[Callable[[], Awaitable[object]]] = [service.ask] * clients
    run_virtually(Load(tally, limit).run(asks, WINDOW, 0.25, seconds))
    return tally.result(Cell("get", clients, WINDOW))


def test_so_many_are_under_way_all_the_time() -> None:
    service = FakeService()
    result = measured(service)
    assert service.under_way_max == 2 * WINDOW
    # Each is asked at 0.0, 0.1, ... 1.2, and what is answered from 0.25 to 1.25 counts.
    assert service.asked == 2 * WINDOW * 13
    assert result.operations == 2 * WINDOW * 10


def test_nothing_is_under_way_any_more_when_it_has_ended() -> None:
    service = FakeService()
    measured(service)
    assert service.under_way == 0


def test_it_ends_when_the_limit_is_reached() -> None:
    service = FakeService()
    measured(service, limit=20, seconds=100)
    assert service.asked == 20


def test_what_is_refused_is_counted_and_the_load_goes_on() -> None:
    service = FakeService()
    service.fails = lambda number: NoAuthError("get", f"/{number}") if number == 8 else None
    result = measured(service)
    assert (result.refusals, result.problem) == (1, "/8: the ACL does not permit it")
    assert service.asked == 2 * WINDOW * 13


def test_a_lost_connection_ends_it() -> None:
    service = FakeService()
    service.fails = lambda number: ConnectionLostError("get", "/a") if number == 8 else None
    with pytest.raises(BaseExceptionGroup) as caught:
        measured(service)
    assert caught.group_contains(ConnectionLostError)
    # Those that were under way beside it are given up.
    assert service.asked <= 3 * 2 * WINDOW
