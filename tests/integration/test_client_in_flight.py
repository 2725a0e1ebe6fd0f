"""Very many requests under way at once, on the loop of asyncio and on uvloop."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar, cast

import pytest
import uvloop

import paddock
from paddock.client.session.hosts import Host
from paddock.client.session.reconnector import Connector
from paddock.client.session.transport import Transport
from paddock.testing import FaultProxy, ServerProcess

DEADLINE_S = 120.0
HUNDREDS_OF_THOUSANDS = 200_000

PING = struct.pack(">iii", 8, -2, 11)

T = TypeVar("T")
Scenario = Callable[[], Coroutine[Any, Any, None]]
Run = Callable[[Scenario], None]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    folder: Path = tmp_path_factory.mktemp("in-flight")
    with ServerProcess(folder / "data") as server:
        yield server


@pytest.fixture(params=["asyncio", "uvloop"])
def run(request: pytest.FixtureRequest) -> Run:
    """Run a scenario on a loop of this kind, but not for ever."""
    new_loop = uvloop.new_event_loop if request.param == "uvloop" else asyncio.new_event_loop

    def run(scenario: Scenario) -> None:
        async def main() -> None:
            async with asyncio.timeout(DEADLINE_S):
                await scenario()

        # Not in debug mode, in which each future remembers the stack that it was made on.
        with asyncio.Runner(debug=False, loop_factory=new_loop) as runner:
            runner.run(main())

    return run


class Recorder:
    """A transport that notes what is written, but no pings: when these come is a matter of time."""

    def __init__(self, transport: asyncio.Transport | None, written: list[bytes]) -> None:
        self._transport = transport
        self._written = written

    def write(self, data: bytes) -> None:
        if data != PING:
            self._written.append(data)
        assert self._transport is not None
        self._transport.write(data)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._transport, name)


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> list[bytes]:
    """What clients write on the connections that they make from now on."""
    written: list[bytes] = []
    reach = Connector.reach

    async def record(
        connector: Connector, host: Host, attempt: Callable[[Transport], Awaitable[T]], limit: float
    ) -> T:
        async def attempt_recorded(transport: Transport) -> T:
            inner = transport._asyncio_transport
            transport._asyncio_transport = cast(asyncio.Transport, Recorder(inner, written))
            return await attempt(transport)

        return await reach(connector, host, attempt_recorded, limit)

    monkeypatch.setattr(Connector, "reach", record)
    return written


def test_hundreds_of_thousands_are_answered_in_their_order(run: Run, server: ServerProcess) -> None:
    async def scenario() -> None:
        async with paddock.connect(server.hosts, session_timeout=30) as client:
            path = await client.create("/order-", b"data", sequential=True)
            futures = [client.get(path) for _ in range(HUNDREDS_OF_THOUSANDS)]
            answered: list[asyncio.Future[Any]] = []
            for future in futures[::100]:
                future.add_done_callback(answered.append)
            for future in futures:
                assert (await future).data == b"data"
            # The last callback may come in the pass after the last answer.
            await asyncio.sleep(0)
            assert answered == futures[::100]
            assert client.state is paddock.SessionState.CONNECTED

    run(scenario)


def test_writes_and_reads_in_flight_see_each_other_in_their_order(
    run: Run, server: ServerProcess
) -> None:
    async def scenario() -> None:
        async with paddock.connect(server.hosts) as client:
            path = await client.create("/versions-", sequential=True)
            futures = [
                (client.set(path, b"%d" % number), client.get(path)) for number in range(1, 5_001)
            ]
            for number, (written, read) in enumerate(futures, 1):
                assert (await written).version == number
                assert (await read).data == b"%d" % number

    run(scenario)


def test_the_first_is_written_at_once_and_what_else_is_asked_in_that_pass_is_one_write(
    run: Run, server: ServerProcess, written: list[bytes]
) -> None:
    async def scenario() -> None:
        async with paddock.connect(server.hosts) as client:
            # From the second time on they are known to come in crowds, which are one write.
            for crowded in range(3):
                written.clear()
                futures = [client.exists("/") for _ in range(1000)]
                assert len(written) == (0 if crowded else 1)
                await asyncio.gather(*futures)
                assert len(written) == (1 if crowded else 2)
            # A single request ends that.
            await client.exists("/")
            written.clear()
            asking = client.exists("/")
            assert len(written) == 1
            await asking

    run(scenario)


def test_what_is_asked_together_is_one_write_at_the_end_of_its_scope(
    run: Run, server: ServerProcess, written: list[bytes]
) -> None:
    async def scenario() -> None:
        async with paddock.connect(server.hosts) as client:
            written.clear()
            with client.together():
                first = client.exists("/")
                with client.together():
                    second = client.children("/")
                assert written == []
            assert len(written) == 1
            await asyncio.gather(first, second)
            with suppress(ValueError), client.together():
                third = client.exists("/")
                raise ValueError("whatever goes wrong, what was asked is asked")
            await third
            assert len(written) == 2

    run(scenario)


def test_a_very_long_queue_does_not_hold_the_loop(
    run: Run, server: ServerProcess, written: list[bytes]
) -> None:
    async def scenario() -> None:
        async with paddock.connect(server.hosts) as client:
            written.clear()
            futures = [client.exists("/") for _ in range(50_000)]
            while not futures[-1].done():
                before = len(written)
                await asyncio.sleep(0)
                assert len(written) - before <= 1
            assert len(written) > 3
            assert max(map(len, written)) < 300_000

    run(scenario)


def test_a_server_that_stands_still_is_not_sent_everything_at_once(
    run: Run, server: ServerProcess, written: list[bytes]
) -> None:
    count, data = 2_000, bytes(50_000)

    async def scenario() -> None:
        async with paddock.connect(server.hosts, session_timeout=40) as client:
            path = await client.create("/still-", sequential=True)
            written.clear()
            server.pause()
            try:
                futures = [client.set(path, data) for _ in range(count)]
                before = -1
                while before < len(written):
                    before = len(written)
                    await client_passes()
                # What the system has taken, and a little of ours, but not the whole of it.
                assert sum(map(len, written)) < count * len(data) / 2
            finally:
                server.resume()
            stats = [await future for future in futures]
            assert [stat.version for stat in stats] == list(range(1, count + 1))

    async def client_passes() -> None:
        for _ in range(100):
            await asyncio.sleep(0)

    run(scenario)


def test_those_given_up_are_not_sent_and_the_others_are_answered(
    run: Run, server: ServerProcess, written: list[bytes]
) -> None:
    async def scenario() -> None:
        async with paddock.connect(server.hosts) as client:
            written.clear()
            futures = [client.exists("/") for _ in range(100_000)]
            for future in futures[1:]:
                future.cancel()
            assert await futures[0] is not None
            assert len(b"".join(written)) < 100
            # Those on their way when they are given up are not waited for, either.
            futures = [client.exists("/") for _ in range(100_000)]
            await asyncio.sleep(0)
            for future in futures[:-1]:
                future.cancel()
            assert await futures[-1] is not None

    run(scenario)


def test_all_in_flight_are_asked_again_after_a_lost_connection(
    run: Run, server: ServerProcess
) -> None:
    with FaultProxy(server.address) as proxy:

        async def scenario() -> None:
            async with paddock.connect(proxy.hosts) as client:
                futures = [client.exists("/") for _ in range(20_000)]
                await futures[100]
                proxy.cut()
                assert None not in await asyncio.gather(*futures)

        run(scenario)


def test_all_in_flight_fail_once_when_the_client_is_closed(
    run: Run, server: ServerProcess, tmp_path: Path
) -> None:
    async def scenario() -> None:
        # What is closed waits for its session's timeout at most.
        with ServerProcess(tmp_path / "data", ["--tick-time-ms", "200"]) as lost:
            async with paddock.connect(lost.hosts, session_timeout=1) as client:
                lost.pause()
                futures = [client.exists("/") for _ in range(HUNDREDS_OF_THOUSANDS)]
                await asyncio.sleep(0)
                lost.kill()
            assert {type(one.exception()) for one in futures} == {paddock.ConnectionLostError}

    run(scenario)
