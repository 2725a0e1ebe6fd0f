"""Receipts: who needs one, what it tells, and that it goes."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

import pytest

from paddock import Client, ConnectionLostError, SessionState, TransactionFailedError, connect
from paddock.protocol.acl import OPEN_TO_ALL
from paddock.recipes import Barrier, Counter, Queue
from paddock.recipes.common.departure import Sweeper
from paddock.recipes.common.receipt import Receipt
from paddock.state.kept_replies import SESSION_BYTES_MAX
from paddock.testing import Direction, EmbeddedServer, FaultProxy, run_virtually

SESSION_S = 9.0


def play(story: Callable[[Client, FaultProxy], Awaitable[None]], *, exact: bool) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(
                proxy.hosts, session_timeout=SESSION_S, random=Random(1), exact=exact
            ) as client,
        ):
            await story(client, proxy)

    run_virtually(main())


@pytest.mark.parametrize("exact", [False, True])
def test_there_is_one_in_an_ordinary_session_only(exact: bool) -> None:
    async def story(client: Client, proxy: FaultProxy) -> None:
        receipt = Receipt(client, "/receipt", OPEN_TO_ALL)
        await receipt.commit(client.transaction().create("/done"))
        assert sorted(await client.children("/")) == (
            ["done", "zookeeper"] if exact else ["done", "receipt", "zookeeper"]
        )
        receipt.delete()
        receipt.delete_later(Sweeper(client))
        await asyncio.sleep(1)
        assert await client.ephemerals() == []
        assert any(one.name == "delete" for one in proxy.requests) != exact

    play(story, exact=exact)


@pytest.mark.parametrize("is_done", [False, True])
def test_it_tells_whether_the_transaction_has_happened(is_done: bool) -> None:
    async def story(client: Client, proxy: FaultProxy) -> None:
        receipt = Receipt(client, "/receipt", OPEN_TO_ALL)
        lost = proxy.when(operation="multi")
        fault = lost.cut_after() if is_done else lost.cut_before()
        with pytest.raises(ConnectionLostError) as error:
            await receipt.commit(client.transaction().create("/done"))
        assert fault.hits
        assert await receipt.exists(error.value) == is_done

    play(story, exact=False)


def test_in_an_exact_session_what_the_client_does_not_know_nobody_knows() -> None:
    async def story(client: Client, proxy: FaultProxy) -> None:
        receipt = Receipt(client, "/receipt", OPEN_TO_ALL)
        lost = ConnectionLostError("update")
        with pytest.raises(ConnectionLostError) as error:
            await receipt.exists(lost)
        assert error.value is lost

    play(story, exact=True)


def test_in_an_exact_session_a_reply_that_was_not_kept_means_that_it_has_happened() -> None:
    async def story(client: Client, proxy: FaultProxy) -> None:
        proxy.when(operation="multi").cut_after()
        path = "/" + "x" * SESSION_BYTES_MAX
        await Receipt(client, "/receipt", OPEN_TO_ALL).commit(client.transaction().create(path))
        assert await client.exists(path) is not None

    play(story, exact=True)


@pytest.mark.parametrize("exact", [False, True])
def test_why_it_could_not_be_created(exact: bool) -> None:
    async def story(client: Client, proxy: FaultProxy) -> None:
        receipt = Receipt(client, "/none/receipt", OPEN_TO_ALL)
        with pytest.raises(TransactionFailedError) as refused:
            await receipt.commit(client.transaction().create("/none/done"))
        assert (receipt.refusal(refused.value) is None) == exact

    play(story, exact=exact)


async def add(client: Client) -> object:
    return await Counter(client, "/number").add(7)


async def put(client: Client) -> object:
    await Queue(client, "/queue").put(b"item")
    return len(await Queue(client, "/queue").items())


async def close(client: Client) -> object:
    await Barrier(client, "/gate").close()
    return await Barrier(client, "/gate").is_open()


@pytest.mark.parametrize("exact", [False, True])
@pytest.mark.parametrize(
    ("call", "result"), [(add, 7), (put, 1), (close, False)], ids=["counter", "queue", "barrier"]
)
def test_a_write_goes_on_when_a_session_that_may_have_been_over_was_not(
    call: Callable[[Client], Awaitable[object]], result: object, exact: bool
) -> None:
    """Nobody answers for longer than the session timeout, but the service hears of the client."""

    async def story(client: Client, proxy: FaultProxy) -> None:
        fault = proxy.when(operation="multi").blackhole(Direction.TO_CLIENT)
        calling = asyncio.ensure_future(call(client))
        await fault.happened()
        proxy.blackhole(Direction.TO_CLIENT)
        await asyncio.sleep(2 * SESSION_S)
        assert client.state is SessionState.OVERDUE
        assert not calling.done()
        proxy.heal()
        assert await calling == result

    play(story, exact=exact)
