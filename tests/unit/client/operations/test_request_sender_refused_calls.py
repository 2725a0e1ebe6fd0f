"""Calls that are refused without being sent: a caller that retries at once lets others run."""

from __future__ import annotations

import asyncio

import pytest

import paddock
from paddock import (
    Client,
    ConnectionLostError,
    ServiceError,
    SessionExpiredError,
    SessionState,
)
from paddock.testing import EmbeddedServer, run_virtually


async def asking_lets_others_run(client: Client, refusal: type[ServiceError]) -> bool:
    """Ask something that is refused; tell whether the event loop could do anything else."""
    ran: list[bool] = []
    asyncio.get_running_loop().call_soon(ran.append, True)
    with pytest.raises(refusal):
        await client.get("/")
    return bool(ran)


def test_while_the_session_may_be_over() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            await server.stop()
            async for state in client.states():
                if state is SessionState.OVERDUE:
                    break
            assert await asking_lets_others_run(client, ConnectionLostError)
            await server.start()

    run_virtually(scenario())


def test_after_the_end() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            async with paddock.connect(server.hosts) as client:
                pass
            # Not ConnectionLostError: a caller that retries on that one would never end.
            assert await asking_lets_others_run(client, SessionExpiredError)

    run_virtually(scenario())
