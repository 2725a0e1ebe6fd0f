"""The loop of a test's server or proxy, in a thread of its own."""

from __future__ import annotations

import asyncio

import pytest

from paddock.testing.listening import BackgroundLoop


async def nothing() -> None:
    """Nothing to begin or to end."""


async def fails(message: str) -> None:
    """Report what asyncio reports of a callback that has failed."""
    asyncio.get_running_loop().call_exception_handler(
        {"message": message, "exception": AssertionError()}
    )


TOO_LATE = "Error on transport creation for incoming connection"


def test_a_callback_that_fails_is_told_at_the_end() -> None:
    for message in ("Exception in callback", TOO_LATE):
        loop = BackgroundLoop()
        loop.open(fails(message))
        with pytest.raises(RuntimeError, match=message):
            loop.close(nothing(), None)


def test_a_connection_that_comes_while_it_is_closed_is_no_failure() -> None:
    loop = BackgroundLoop()
    loop.open(nothing())
    loop.close(fails(TOO_LATE), None)
    loop = BackgroundLoop()
    loop.open(nothing())
    with pytest.raises(RuntimeError, match="Exception in callback"):
        loop.close(fails("Exception in callback"), None)
