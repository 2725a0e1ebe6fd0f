"""The cancellation of a scope's body: by us, by others, swallowed, and late."""

from __future__ import annotations

import asyncio

import pytest

from paddock.client.interruption import Interruption
from paddock.testing import run_virtually


def test_the_body_is_cancelled_with_the_reason_and_the_cancellation_is_ours() -> None:
    async def scenario() -> None:
        interruption = Interruption(5)
        interruption.begin("it is over")
        interruption.begin("once is enough")
        with pytest.raises(asyncio.CancelledError, match="it is over") as error:
            await asyncio.sleep(100)
        assert await interruption.end(error.value)
        await asyncio.sleep(100)

    run_virtually(scenario())


def test_others_who_cancel_win() -> None:
    async def body() -> bool:
        interruption = Interruption(5)
        interruption.begin("it is over")
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError as error:
            return await interruption.end(error)
        raise AssertionError("it is cancelled")

    async def scenario() -> None:
        task = asyncio.create_task(body())
        await asyncio.sleep(0)
        task.cancel()
        assert await task is False

    run_virtually(scenario())


def test_a_body_that_swallows_its_cancellation_is_cancelled_again() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        interruption = Interruption(5)
        interruption.begin("it is over")
        times = []
        for _ in range(3):
            with pytest.raises(asyncio.CancelledError) as error:
                await asyncio.sleep(100)
            times.append(loop.time())
        assert times == [0, 5, 10]
        assert await interruption.end(error.value)
        task = asyncio.current_task()
        assert task is not None
        assert task.cancelling() == 0

    run_virtually(scenario())


def test_a_cancellation_that_is_due_does_not_hit_what_follows() -> None:
    async def scenario() -> None:
        interruption = Interruption(5)
        # As if the body ended in the pass of the loop in which it is cancelled.
        interruption._cancel("it is over")
        assert not await interruption.end(None)
        await asyncio.sleep(10)

    run_virtually(scenario())


def test_nobody_is_cancelled_after_the_end() -> None:
    async def scenario() -> None:
        interruption = Interruption(5)
        interruption.begin("soon")
        assert not await interruption.end(None)
        interruption.begin("later")
        await asyncio.sleep(100)

    run_virtually(scenario())
