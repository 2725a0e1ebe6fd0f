"""How long a client waits for what comes slowly, or not at all; in virtual time."""

from __future__ import annotations

import asyncio
from random import Random

import pytest

from paddock import ConnectionLostError, SessionState, connect
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.support.scripted import ScriptedServer, Talk, buffer, reply, stat

TIMEOUT_S = 9.0


@pytest.mark.parametrize(("part", "is_answered"), [(1.6, True), (1.7, False)])
def test_a_reply_in_pieces_is_waited_for_up_to_five_thirds_of_the_timeout(
    part: float, is_answered: bool
) -> None:
    async def trickle(talk: Talk) -> None:
        if talk.number:
            # Nobody else is there.
            await talk.wait_left()
            return
        await talk.grant(timeout_ms=int(TIMEOUT_S * 1000))
        asked = await talk.request()
        whole = buffer(reply(asked.xid, buffer(b"blue") + stat()))
        for one in whole:
            await asyncio.sleep(TIMEOUT_S * part / len(whole))
            talk.writer.write(bytes([one]))
        await talk.serve()

    async def scenario() -> None:
        async with ScriptedServer(trickle) as server:
            async with connect(
                server.hosts, random=Random(1), session_timeout=TIMEOUT_S, exact=False
            ) as client:
                states: list[SessionState] = []
                client.add_listener(states.append)
                asked = client.get("/n")
                if is_answered:
                    assert (await asked).data == b"blue"
                else:
                    with pytest.raises(ConnectionLostError):
                        await asked
                    assert asyncio.get_running_loop().time() == pytest.approx(5 / 3 * TIMEOUT_S)
                assert states[0] is SessionState.OVERDUE

    run_virtually(scenario())


def test_a_task_that_was_cancelled_closes_a_client_that_nobody_answers() -> None:
    """It goes on after that, to clean up the rest."""

    async def work(server: EmbeddedServer) -> str:
        async with FaultProxy(server.address) as proxy:
            client = connect(proxy.hosts, random=Random(1))
            await client.start()
            proxy.blackhole()
            try:
                await asyncio.sleep(100)
            except asyncio.CancelledError:
                await client.close()
                proxy.heal()
                return "cleaned up"
            raise AssertionError("it is cancelled")

    async def scenario() -> None:
        async with EmbeddedServer() as server:
            task = asyncio.create_task(work(server))
            await asyncio.sleep(1)
            task.cancel()
            assert await task == "cleaned up"

    run_virtually(scenario())


@pytest.mark.parametrize(("timeout", "seconds"), [(20.0, 5.0), (4.0, 4.0)])
def test_a_client_that_nobody_answers_is_closed_after_five_seconds(
    timeout: float, seconds: float
) -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            client = connect(proxy.hosts, random=Random(1), session_timeout=timeout)
            await client.start()
            proxy.blackhole()
            began_at = asyncio.get_running_loop().time()
            await client.close()
            assert asyncio.get_running_loop().time() - began_at <= seconds + 1
            assert asyncio.get_running_loop().time() - began_at >= seconds * 2 / 3
            proxy.heal()

    run_virtually(scenario())
