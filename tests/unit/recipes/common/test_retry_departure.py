"""That something of ours is given up, and those who wait for it."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddock.recipes.common.departure import Departure
from paddock.testing import run_virtually

REFUSED = PermissionError("not ours to delete")


def test_everybody_waits_until_it_is_over_and_who_comes_later_does_not_wait() -> None:
    async def main() -> None:
        departure = Departure(asyncio.get_running_loop())
        waiting = [asyncio.ensure_future(departure.wait()) for _ in range(2)]
        await asyncio.sleep(1)
        assert not any(one.done() for one in waiting)
        departure.end()
        await asyncio.gather(*waiting)
        assert departure.is_over
        await departure.wait()

    run_virtually(main())


def test_who_is_cancelled_takes_nobody_along() -> None:
    async def main() -> None:
        departure = Departure(asyncio.get_running_loop())
        cancelled, other = (asyncio.ensure_future(departure.wait()) for _ in range(2))
        await asyncio.sleep(1)
        cancelled.cancel()
        await asyncio.sleep(1)
        assert cancelled.cancelled()
        assert not departure.is_over
        departure.end()
        await other

    run_virtually(main())


def test_an_error_is_for_everybody_who_waits_then_and_later() -> None:
    async def main() -> None:
        departure = Departure(asyncio.get_running_loop())
        waiting = [asyncio.ensure_future(departure.wait()) for _ in range(2)]
        await asyncio.sleep(1)
        departure.end(REFUSED)
        # Once it is over, nothing changes that.
        departure.end()
        answers = await asyncio.gather(*waiting, return_exceptions=True)
        assert answers == [REFUSED, REFUSED]
        with pytest.raises(PermissionError):
            await departure.wait()

    run_virtually(main())


@pytest.mark.parametrize("was_waited_for", [False, True])
def test_an_error_that_nobody_waits_for_is_not_lost(was_waited_for: bool) -> None:
    async def main() -> list[Any]:
        loop = asyncio.get_running_loop()
        problems: list[Any] = []
        loop.set_exception_handler(lambda _, context: problems.append(context["exception"]))
        departure = Departure(loop)
        if was_waited_for:
            waiting = asyncio.ensure_future(departure.wait())
            await asyncio.sleep(1)
            waiting.cancel()
            await asyncio.sleep(1)
        departure.end(REFUSED)
        return problems

    assert run_virtually(main()) == [REFUSED]


def test_it_ends_as_a_task_does() -> None:
    async def work(error: Exception | None) -> None:
        if error is not None:
            raise error

    async def main() -> None:
        for outcome in (None, REFUSED):
            departure = Departure(asyncio.get_running_loop())
            asyncio.ensure_future(work(outcome)).add_done_callback(departure.end_with)
            (answer,) = await asyncio.gather(departure.wait(), return_exceptions=True)
            assert answer is outcome
        departure = Departure(asyncio.get_running_loop())
        task = asyncio.ensure_future(asyncio.sleep(1))
        task.add_done_callback(departure.end_with)
        task.cancel()
        await departure.wait()

    run_virtually(main())
