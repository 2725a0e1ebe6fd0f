"""The metrics of a client: what is counted when, over lost connections as well. In virtual time."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from random import Random
from typing import Any

import pytest

import paddock
from paddock import Client, ConnectionLostError, NoNodeError, SessionState, TransactionFailedError
from paddock.client.requests.pending_request import PendingRequest
from paddock.client.session.dispatcher import Dispatcher
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.support.scripted import ScriptedServer, Talk, good_body


def connect(hosts: str, **settings: Any) -> Client:
    return paddock.connect(hosts, random=Random(1), **settings)


def test_requests_are_counted_by_what_became_of_them() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            assert client.metrics().sent == 0
            asked = [client.get("/") for _ in range(3)]
            # The first goes at once, and the others at the end of this pass.
            metrics = client.metrics()
            assert (metrics.in_flight, metrics.queued, metrics.answered) == (1, 2, 0)
            await asyncio.gather(*asked)
            with pytest.raises(NoNodeError):
                await client.get("/nothing")
            with pytest.raises(TransactionFailedError):
                await client.transaction().check("/nothing").commit()
            assert await client.exists("/nothing") is None
            metrics = client.metrics()
            assert (metrics.in_flight, metrics.queued) == (0, 0)
            assert (metrics.sent, metrics.answered, metrics.succeeded) == (6, 6, 4)
            assert metrics.refused == {"NoNodeError": 1, "TransactionFailedError": 1}
            assert metrics.failed == {}
            assert metrics.last_zxid == client.last_zxid

    run_virtually(scenario())


def test_what_was_lost_is_no_answer_and_what_is_sent_again_counts_again() -> None:
    async def lead(talk: Talk) -> None:
        await talk.grant(timeout_ms=10_000)
        if talk.number == 0:
            # A read and a write, whose replies do not come.
            await talk.request()
            await talk.request()
            return
        await talk.serve()

    async def scenario() -> None:
        async with (
            ScriptedServer(lead) as server,
            connect(server.hosts, exact=False) as client,
        ):
            reading, writing = client.get("/"), client.set("/", b"")
            with pytest.raises(ConnectionLostError):
                await writing
            await reading
            metrics = client.metrics()
            assert (metrics.connections, metrics.reconnects) == (2, 1)
            assert (metrics.sent, metrics.answered) == (3, 1)
            assert metrics.failed == {"ConnectionLostError": 1}
            assert metrics.refused == {}

    run_virtually(scenario())


def test_a_write_that_an_exact_session_has_settled_is_answered_once() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts) as client:
                await client.create("/a")
                proxy.when(operation="set").cut_after()
                writing = client.set("/a", b"new")
                assert (await writing).version == 1
                metrics = client.metrics()
                assert (metrics.answered, metrics.in_flight, metrics.failed) == (2, 0, {})

    run_virtually(scenario())


def test_the_state_has_a_duration_and_attempts_in_vain_are_counted() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts) as client:
                await asyncio.sleep(7)
                metrics = client.metrics()
                assert (metrics.state, metrics.server) == (SessionState.CONNECTED, proxy.hosts)
                assert metrics.state_seconds == pytest.approx(7, abs=0.5)
                assert metrics.failed_attempts == 0
                proxy.refuse()
                lost_at = loop.time()
                async for state in client.states():
                    if state is SessionState.DISCONNECTED:
                        lost_at = loop.time()
                    if state is SessionState.OVERDUE:
                        break
                metrics = client.metrics()
                assert (metrics.state, metrics.server) == (SessionState.OVERDUE, None)
                assert metrics.state_seconds < loop.time() - lost_at
                assert metrics.failed_attempts > 2
                with pytest.raises(ConnectionLostError):
                    await client.get("/")
                assert client.metrics().failed == {"ConnectionLostError": 1}
                proxy.heal()

    run_virtually(scenario())


def test_watches_are_counted_by_their_kind_and_events_as_they_come() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            await client.create("/a")
            await client.get("/a", watch=print)
            await client.exists("/b", watch=print)
            await client.children("/a", watch=print)
            await client.add_watch("/a", print)
            await client.add_watch("/", print, recursive=True)
            kinds = ("data", "exists", "children", "persistent", "recursive")
            assert client.metrics().watches == dict.fromkeys(kinds, 1)
            await client.create("/b")
            assert client.metrics().watches == {**dict.fromkeys(kinds, 1), "exists": 0}
            assert client.metrics().events == 1

    run_virtually(scenario())


def test_one_round_trip_is_measured_for_each_write() -> None:
    async def lead(talk: Talk) -> None:
        await talk.grant(timeout_ms=10_000)
        while True:
            asked = await talk.request()
            await asyncio.sleep(0.5)
            talk.answer(asked.xid, good_body(asked.operation))

    async def scenario() -> None:
        async with ScriptedServer(lead) as server, connect(server.hosts) as client:
            # Later than the handshake, by the clock: what is sent at the same time is not measured.
            await asyncio.sleep(1)
            await client.get("/")
            with client.together():
                asked = [client.get("/") for _ in range(3)]
            await asyncio.gather(*asked)
            trips = client.metrics().round_trips
            assert trips.count == 2
            assert trips.mean == pytest.approx(0.5, rel=0.1)
            assert 0.5 <= trips.longest <= trips.quantile(1) + 1e-9

    run_virtually(scenario())


def test_without_an_observer_a_call_makes_no_object_for_one() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            assert client.observer is None
            assert type(client._session.dispatcher) is Dispatcher
            gc.collect()
            before = objects_of_clients()
            asked = [client.get("/") for _ in range(50)]
            assert objects_of_clients() - before == Counter({PendingRequest: 50})
            # Nothing waits for them but their own caller.
            assert all(future._callbacks is None for future in asked)
            await asyncio.gather(*asked)

    run_virtually(scenario())


def objects_of_clients() -> Counter[type]:
    kinds = (type(one) for one in gc.get_objects())
    return Counter(one for one in kinds if str(one.__module__).startswith("paddock.client"))
