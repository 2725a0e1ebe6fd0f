"""Time limits in every release of Python, and what was waited for when the time was up."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import sys
import traceback
import weakref
from collections.abc import Callable, Coroutine, Sequence
from contextlib import AsyncExitStack
from typing import Any, TypeVar

import pytest

from paddock.client.time_limits import limited, waited_for
from paddock.testing import run_virtually

T = TypeVar("T")


async def _wait() -> None:
    try:
        await asyncio.sleep(100)
    except asyncio.CancelledError as error:
        error.add_note("waiting for a reply")
        raise


async def _wait_in_scopes(limits: Sequence[float]) -> None:
    """Wait in several scopes, each in the one before."""
    async with AsyncExitStack() as scopes:
        for seconds in limits:
            await scopes.enter_async_context(asyncio.timeout(seconds))
        await _wait()


@pytest.mark.parametrize("limits", [(1,), (2, 1), (1, 2)])
def test_who_was_cancelled_says_what_was_waited_for(limits: Sequence[float]) -> None:
    async def scenario() -> None:
        with pytest.raises(TimeoutError) as error:
            await _wait_in_scopes(limits)
        assert waited_for(error.value) == ["waiting for a reply"]
        # So a user reads it, above the error itself.
        assert "waiting for a reply" in "".join(traceback.format_exception(error.value))

    run_virtually(scenario())


def test_an_error_that_is_handled_meanwhile_says_nothing() -> None:
    async def wait() -> list[str]:
        try:
            async with asyncio.timeout(1):
                await _wait()
        except TimeoutError as error:
            return waited_for(error)
        raise AssertionError("the time is up")

    async def scenario() -> None:
        try:
            raise ValueError("another error")
        except ValueError as other:
            other.add_note("waiting for something else")
            assert await wait() == ["waiting for a reply"]

    run_virtually(scenario())


async def _after_a_cancellation(work: Callable[[], Coroutine[Any, Any, T]]) -> T:
    """Do something as who cleans up does it: in a task that was cancelled."""

    async def body() -> T:
        try:
            await asyncio.sleep(100)
        except asyncio.CancelledError:
            return await work()
        raise AssertionError("it is cancelled")

    task = asyncio.create_task(body())
    await asyncio.sleep(0)
    task.cancel()
    return await task


def test_a_limit_is_a_limit_in_a_task_that_was_cancelled() -> None:
    async def work() -> TimeoutError:
        with pytest.raises(TimeoutError) as error:
            async with limited(asyncio.timeout(1)):
                await _wait()
        return error.value

    async def scenario() -> None:
        for error in await work(), await _after_a_cancellation(work):
            assert isinstance(error.__cause__, asyncio.CancelledError)
            assert waited_for(error) == ["waiting for a reply"]

    run_virtually(scenario())


def test_what_ends_in_time_is_not_overdue_in_a_task_that_was_cancelled() -> None:
    async def work() -> str:
        async with limited(asyncio.timeout(1)):
            await asyncio.sleep(0.5)
        await asyncio.sleep(2)
        return "in time"

    assert run_virtually(_after_a_cancellation(work)) == "in time"


@pytest.mark.parametrize("at", [0.5, 1.0])
def test_who_cancels_within_the_limit_wins(at: float) -> None:
    async def work() -> None:
        task = asyncio.current_task()
        assert task is not None
        async with limited(asyncio.timeout(1)):
            asyncio.get_running_loop().call_later(at, task.cancel)
            await asyncio.sleep(100)

    async def scenario() -> None:
        for ending in work(), _after_a_cancellation(work):
            with pytest.raises(asyncio.CancelledError):
                await asyncio.create_task(ending)

    run_virtually(scenario())


def test_an_error_within_the_limit_is_that_error() -> None:
    async def work() -> None:
        async with limited(asyncio.timeout(1)):
            raise ValueError("no good")

    async def scenario() -> None:
        for ending in work(), _after_a_cancellation(work):
            with pytest.raises(ValueError, match="no good"):
                await ending

    run_virtually(scenario())


def test_nothing_is_said_of_a_wait_that_has_said_nothing() -> None:
    async def scenario() -> None:
        with pytest.raises(TimeoutError) as error:
            async with asyncio.timeout(1):
                await asyncio.sleep(100)
        assert waited_for(error.value) == []

    run_virtually(scenario())
    assert waited_for(TimeoutError()) == []


def test_a_limit_that_is_over_keeps_nothing_of_the_wait() -> None:
    class Thing:
        pass

    async def wait(things: list[weakref.ref[Thing]]) -> None:
        thing = Thing()
        things.append(weakref.ref(thing))
        async with limited(asyncio.timeout(1)):
            await _wait()

    async def scenario() -> None:
        things: list[weakref.ref[Thing]] = []
        for _ in range(5):
            with contextlib.suppress(TimeoutError):
                await wait(things)
        # The last one may still be known as the error that was handled. From 3.12 on, contextlib
        # keeps its own frame with the error, until the garbage collector comes.
        kept = 1 if sys.version_info < (3, 12) else 5
        assert sum(one() is not None for one in things) <= kept

    gc.disable()
    try:
        run_virtually(scenario())
    finally:
        gc.enable()
