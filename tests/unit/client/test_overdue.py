"""What was waited for when the time was up, in every release of Python."""

from __future__ import annotations

import asyncio
import traceback
from collections.abc import Sequence
from contextlib import AsyncExitStack

import pytest

from paddock.client.overdue import waited_for
from paddock.testing import run_virtually


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


def test_nothing_is_said_of_a_wait_that_has_said_nothing() -> None:
    async def scenario() -> None:
        with pytest.raises(TimeoutError) as error:
            async with asyncio.timeout(1):
                await asyncio.sleep(100)
        assert waited_for(error.value) == []

    run_virtually(scenario())
    assert waited_for(TimeoutError()) == []
