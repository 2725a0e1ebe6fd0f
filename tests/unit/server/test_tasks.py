"""An owner of tasks ends with none of them under way."""

from __future__ import annotations

import asyncio

from paddock.server.tasks import Tasks
from paddock.testing.clock import run_virtually


async def hang() -> None:
    await asyncio.Event().wait()


def test_what_is_left_at_the_end_is_cancelled_and_waited_for() -> None:
    async def scenario() -> None:
        tasks = Tasks()
        cleaned = []

        async def clean() -> None:
            try:
                await hang()
            finally:
                await asyncio.sleep(1)
                cleaned.append(True)

        task = tasks.start(clean())
        await asyncio.sleep(0)
        await tasks.end()
        assert (cleaned, task.cancelled(), len(tasks)) == ([True], True, 0)
        # With nothing to do it is over at once.
        await tasks.end(grace=5)

    run_virtually(scenario())


def test_what_ends_in_time_is_not_cancelled() -> None:
    async def scenario() -> None:
        tasks = Tasks()
        quick, slow = tasks.start(asyncio.sleep(4)), tasks.start(asyncio.sleep(6))
        await tasks.end(grace=5)
        assert (quick.cancelled(), slow.cancelled()) == (False, True)

    run_virtually(scenario())


def test_what_was_handed_over_ends_with_its_new_owner() -> None:
    async def scenario() -> None:
        first, second = Tasks(), Tasks()
        task = first.start(hang())
        first.hand_over(task, second)
        await first.end()
        assert (task in first, task in second, task.done()) == (False, True, False)
        await second.end()
        assert task.cancelled()

    run_virtually(scenario())
