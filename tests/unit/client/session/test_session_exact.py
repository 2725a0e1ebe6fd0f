"""Exact sessions: what becomes of calls whose connection is lost, wherever it is cut."""

from __future__ import annotations

import asyncio
from random import Random
from types import NoneType
from typing import Any

import pytest

from paddock import (
    CREATOR_ALL_ACL,
    BadVersionError,
    Client,
    ConnectionLostError,
    ReplyLostError,
    SessionExpiredError,
    SessionState,
    TransactionFailedError,
    connect,
)
from paddock.client.states import Event, EventType
from paddock.errors import NoAuthError, NoNodeError, RuntimeInconsistencyError
from paddock.protocol.exact import ASKS_EXACT
from paddock.recipes import Barrier, Queue
from paddock.state.kept_replies import SESSION_BYTES_MAX, WINDOW
from paddock.testing import CutPoint, EmbeddedServer, FaultProxy, at_every_cut, run_virtually
from paddock.testing.cuts import Cut
from paddock.testing.faults import Direction
from tests.support.scripted import ScriptedServer, Talk

EVERY_CUT = (Cut.BEFORE, Cut.AFTER, Cut.WITHIN)


def exact(hosts: str, **settings: Any) -> Client:
    return connect(hosts, random=Random(1), **settings)


def test_every_write_happens_once_and_has_its_own_outcome_wherever_it_is_cut() -> None:
    async def scenario(proxy: FaultProxy, cut: CutPoint | None) -> None:
        async with exact(proxy.hosts) as client:
            assert client.is_exact
            await client.create("/line", b"0")
            placed = [client.create("/line/n-", sequential=True) for _ in range(3)]
            counted = [client.set("/line", b"%d" % n, version=n) for n in range(3)]
            twice = client.set("/line", b"again", version=0)
            both = client.transaction().create("/pair").set("/line", b"3", version=3).commit()
            gone = client.delete("/pair")
            seen = client.children("/line")
            assert [await one for one in placed] == [f"/line/n-{n:010d}" for n in range(3)]
            assert [(await one).version for one in counted] == [1, 2, 3]
            with pytest.raises(BadVersionError):
                await twice
            assert (await both)[0] == "/pair"
            await gone
            assert len(await seen) == 3
            assert (await client.get("/line")).data == b"3"
            assert (await client.get("/line")).stat.version == 4

    async def main() -> None:
        assert len(await at_every_cut(EmbeddedServer, scenario, EVERY_CUT)) > 30

    run_virtually(main())


def test_two_connections_that_are_lost_in_a_row_lose_nothing() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts) as client:
                await client.create("/n", b"0")
                proxy.when(operation="set").cut_after()
                # The answer to the handshake is lost as well, twice.
                proxy.when(operation="create_session", times=2).cut_after()
                stats = await asyncio.gather(
                    *(client.set("/n", b"x", version=version) for version in range(5))
                )
                assert [stat.version for stat in stats] == [1, 2, 3, 4, 5]

    run_virtually(main())


def test_credentials_are_sent_before_what_is_repeated() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts) as client:
                await client.add_auth("digest", b"bob:secret")
                await client.create("/mine", acl=CREATOR_ALL_ACL)
                fault = proxy.when(operation="set").cut_before()
                assert (await client.set("/mine", b"1")).version == 1
                assert fault.hits
                async with connect(server.hosts) as other:
                    with pytest.raises(NoAuthError):
                        await other.set("/mine", b"2")

    run_virtually(main())


def test_the_event_of_a_write_comes_before_its_reply_also_after_a_reconnect() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts) as client:
                await client.create("/n", b"0")
                order: list[str] = []

                def watch(event: Event) -> None:
                    if event.type is not EventType.NONE:
                        order.append("told")

                await client.get("/n", watch=watch)
                # Neither the event nor the reply comes through; the client leaves in the end.
                proxy.when(operation="set").blackhole(Direction.TO_CLIENT)
                writing = client.set("/n", b"1")
                writing.add_done_callback(lambda _: order.append("replied"))
                assert (await writing).version == 1
                assert order == ["told", "replied"]

    run_virtually(main())


def test_a_refused_transaction_says_what_failed_also_after_a_reconnect() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts) as client:
                proxy.when(operation="multi").cut_after()
                steps = client.transaction().create("/a").check("/none").delete("/b").create("/c")
                with pytest.raises(TransactionFailedError) as caught:
                    await steps.commit()
                kinds = [type(error) for error in caught.value.results]
                assert kinds == [
                    NoneType,
                    NoNodeError,
                    RuntimeInconsistencyError,
                    RuntimeInconsistencyError,
                ]
                assert await client.exists("/a") is None

    run_virtually(main())


def test_recipes_know_a_refusal_whose_reply_was_lost() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts) as client, exact(server.hosts) as other:
                await Barrier(other, "/barrier").close()
                fault = proxy.when(operation="multi", times=1).cut_after()
                await Barrier(client, "/barrier").close()
                assert fault.hits
                fault = proxy.when(operation="multi", times=1).cut_after()
                queue = Queue(client, "/queue")
                await queue.put(b"first")
                assert fault.hits
                async with queue.take() as item:
                    assert item.data == b"first"

    run_virtually(main())


def test_what_was_applied_is_not_repeated_if_it_is_gone_since() -> None:
    """Its reply was not kept, and somebody has taken it meanwhile."""

    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts) as client, exact(server.hosts) as other:
                proxy.when(operation="create2").cut_after()
                path = "/" + "x" * SESSION_BYTES_MAX
                made = asyncio.Event()
                await other.exists(path, watch=lambda _: made.set())
                creating = client.create(path, exist_ok=True)
                await made.wait()
                await other.delete(path)
                with pytest.raises(ReplyLostError):
                    await creating
                assert await other.exists(path) is None

    run_virtually(main())


def test_a_reply_that_was_too_large_to_be_kept_is_named() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts) as client:
                proxy.when(operation="create2").cut_after()
                path = "/" + "x" * SESSION_BYTES_MAX
                with pytest.raises(ReplyLostError, match="the write was applied"):
                    await client.create_with_stat(path)
                assert await client.exists(path) is not None

    run_virtually(main())


def test_a_crowd_of_writes_waits_for_the_window_and_is_answered_in_order() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, exact(server.hosts) as client:
            await client.create("/n")
            writes = [client.set("/n", b"x", version=n) for n in range(10 * WINDOW)]
            in_flight = client._session.in_flight
            await asyncio.sleep(0)
            assert 0 < in_flight.writes <= WINDOW
            behind = client.get("/n")
            # Credentials do not overtake what was asked before.
            await client.add_auth("digest", b"bob:secret")
            assert [(await one).version for one in writes] == list(range(1, 10 * WINDOW + 1))
            assert (await behind).stat.version == 10 * WINDOW

    run_virtually(main())


def test_a_session_that_expires_meanwhile_says_so() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts, session_timeout=4) as client:
                proxy.when(operation="set").cut_after(stay_away=True)
                with pytest.raises(ConnectionLostError):
                    await client.set("/", b"1")
                await asyncio.sleep(20)
                proxy.heal()
                async for state in client.states():
                    if state.is_final:
                        assert state is SessionState.EXPIRED

    run_virtually(main())


def test_a_patient_transaction_is_answered_when_a_session_that_may_be_over_is_not() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts, session_timeout=4) as client:
                await client.create("/n")
                # The service hears of the client, but not the other way round.
                fault = proxy.when(operation="multi").blackhole(Direction.TO_CLIENT)
                sent = client.transaction().set("/n", b"1", version=0).commit(patient=True)
                hasty = client.set("/n", b"2", version=1)
                await fault.happened()
                proxy.blackhole(Direction.TO_CLIENT)
                await asyncio.sleep(8)
                assert client.state is SessionState.OVERDUE
                with pytest.raises(ConnectionLostError):
                    await hasty
                with pytest.raises(ConnectionLostError, match="it was not sent"):
                    await client.set("/n", b"2", version=1)
                later = client.transaction().set("/n", b"3").commit(patient=True)
                await asyncio.sleep(1)
                assert not sent.done()
                assert not later.done()
                proxy.heal()
                [first], [last] = await sent, await later
                assert first.version == 1
                assert last.version in (2, 3)

    run_virtually(main())


def test_a_patient_transaction_ends_with_its_session() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts, session_timeout=4) as client:
                proxy.when(operation="multi").cut_after(stay_away=True)
                sent = client.transaction().set("/", b"1").commit(patient=True)
                await asyncio.sleep(20)
                later = client.transaction().set("/", b"2").commit(patient=True)
                proxy.heal()
                for one in (sent, later):
                    with pytest.raises(SessionExpiredError):
                        await one
                with pytest.raises(SessionExpiredError):
                    await client.transaction().set("/", b"2").commit(patient=True)

    run_virtually(main())


def test_a_close_whose_reply_is_lost_has_succeeded() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            client = exact(proxy.hosts)
            await client.start()
            await client.create("/e", ephemeral=True)
            fault = proxy.when(operation="close_session").cut_after()
            await client.close()
            assert fault.hits
            assert client.state is SessionState.CLOSED
            async with connect(server.hosts) as other:
                assert await other.exists("/e") is None

    run_virtually(main())


def test_a_service_without_exact_sessions_gives_an_ordinary_one() -> None:
    async def main() -> None:
        async def lead(talk: Talk) -> None:
            request = await talk.grant()
            assert (request.password, request.protocol_version) == (ASKS_EXACT, 0)
            await talk.serve()

        async with ScriptedServer(lead) as server, exact(server.hosts) as client:
            assert not client.is_exact
            assert await client.exists("/") is not None

    run_virtually(main())


def test_who_does_not_want_an_exact_session_has_an_ordinary_one() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, random=Random(1), exact=False) as client:
                assert not client.is_exact
                proxy.when(operation="set").cut_after()
                with pytest.raises(ConnectionLostError, match="outcome is unknown"):
                    await client.set("/", b"1")

    run_virtually(main())


def test_a_restored_service_leaves_the_outcome_unknown() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with exact(proxy.hosts) as client:
                await client.create("/n")
                proxy.when(operation="set").cut_after(stay_away=True)
                writing = client.set("/n", b"1")
                await asyncio.sleep(0.1)
                assert server._server is not None
                core = server._server._core
                assert core is not None
                core.machine.zxid += 1 << 32
                proxy.heal()
                with pytest.raises(ConnectionLostError, match="unknown"):
                    await writing
                # And from here on it is exact again.
                proxy.when(operation="set").cut_after()
                assert (await client.set("/n", b"2")).version == 2

    run_virtually(main())
