"""Virtual time, and the network that belongs to it."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer, VirtualClockLoop, run_virtually
from tests.support import requests as rq
from tests.support.records import Code
from tests.unit.testing.client import connect

EPHEMERAL = 1


def virtually(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    run_virtually(scenario())


def test_a_silent_session_expires_without_anybody_waiting() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            owner = await connect(server.address, timeout_ms=10_000)
            other = await connect(server.address, timeout_ms=40_000)
            assert (await owner.call(rq.create("/mine", flags=EPHEMERAL))).err == Code.OK
            await asyncio.sleep(9)
            assert (await other.call(rq.exists("/mine"))).err == Code.OK
            await asyncio.sleep(5)
            assert (await other.call(rq.exists("/mine"))).err == Code.NO_NODE
            assert await owner.reader.read() == b""
            await owner.leave()
            await other.leave()

    virtually(scenario)


def test_a_session_that_is_heard_of_lives_on_for_days() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            client = await connect(server.address, timeout_ms=10_000)
            for _ in range(24 * 60):
                await asyncio.sleep(8)
                assert (await client.call(rq.exists("/"))).err == Code.OK
            await client.leave()

    virtually(scenario)


def test_a_node_outlives_its_ttl_by_no_more_than_virtual_time() -> None:
    async def scenario() -> None:
        config = ServerConfig(port=0, container_check_interval_ms=60_000)
        async with EmbeddedServer(config=config) as server:
            client = await connect(server.address, timeout_ms=40_000)
            await client.call(rq.create_ttl("/short", ttl_ms=1000))
            await asyncio.sleep(30)
            assert (await client.call(rq.exists("/short"))).err == Code.OK
            await asyncio.sleep(35)
            assert (await client.call(rq.exists("/short"))).err == Code.NO_NODE
            await client.leave()

    virtually(scenario)


def test_something_is_done_after_each_pass_in_turn() -> None:
    """What waits, and for how long, is the same however it is interrupted."""

    async def scenario(cancelled_after: int | None) -> tuple[list[str], int, float]:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        said: list[str] = []

        async def work() -> None:
            said.append("begun")
            await asyncio.sleep(0)
            said.append("gone on")
            await asyncio.sleep(60)
            said.append("done")

        task = asyncio.create_task(work())
        began = loop.passes
        if cancelled_after is not None:
            loop.call_at_pass(began + cancelled_after, task.cancel)
        await asyncio.wait((task,))
        return said, loop.passes - began, loop.time()

    _, passes, _ = run_virtually(scenario(None))
    heard = [run_virtually(scenario(number)) for number in range(1, passes)]
    assert [said for said, _, _ in heard][:3] == [[], ["begun"], ["begun", "gone on"]]
    # It was cancelled before time went on, or was about to.
    assert {at for _, _, at in heard} <= {0.0, 60.0}

    async def too_late() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        with pytest.raises(ValueError, match="is over"):
            loop.call_at_pass(loop.passes, print)

    run_virtually(too_late())


def test_what_a_thread_does_for_the_loop_takes_no_time() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        go_on = threading.Event()

        def work() -> str:
            # Long enough for time to jump, if it did.
            assert not go_on.wait(0.05)
            return "done"

        timer = loop.call_later(1000, go_on.set)
        assert await loop.run_in_executor(None, work) == "done"
        assert loop.time() == 0
        timer.cancel()

    virtually(scenario)


def test_time_that_a_disk_takes_is_not_promised() -> None:
    async def scenario() -> None:
        with pytest.raises(ValueError, match="in memory"):
            await EmbeddedServer(Path("unused")).start()

    virtually(scenario)


def test_nobody_is_reached_where_nobody_listens() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            address = server.address
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(*address)

    virtually(scenario)


def test_a_virtual_address_is_taken_once() -> None:
    async def scenario() -> None:
        first = await asyncio.start_server(lambda _r, _w: None, "127.0.0.1", 0)
        with pytest.raises(OSError, match="in use"):
            await asyncio.start_server(
                lambda _r, _w: None, "127.0.0.1", first.sockets[0].getsockname()[1]
            )
        first.close()

    virtually(scenario)


def test_what_is_written_arrives_whole_before_the_end() -> None:
    async def scenario() -> None:
        received: asyncio.Future[bytes] = asyncio.get_running_loop().create_future()

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            received.set_result(await reader.read())
            writer.write(b"thanks")
            writer.close()

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        writer.write(b"a" * 1000)
        writer.write(b"b" * 1_000_000)
        writer.write_eof()
        assert await received == b"a" * 1000 + b"b" * 1_000_000
        assert await reader.read() == b"thanks"
        writer.close()
        server.close()

    virtually(scenario)


def test_a_writer_waits_for_a_reader_that_does_not_read() -> None:
    async def scenario() -> None:
        held: asyncio.Future[asyncio.StreamReader] = asyncio.get_running_loop().create_future()

        async def take(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            held.set_result(reader)
            await over.wait()
            writer.close()

        over = asyncio.Event()
        server = await asyncio.start_server(take, "127.0.0.1", 0, limit=1000)
        _, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        far = await held
        # What the reader's own buffer takes is no longer ours to wait for.
        writer.write(b"x" * 10_000)
        await writer.drain()
        writer.write(b"x" * 1_000_000)
        draining = asyncio.ensure_future(writer.drain())
        await asyncio.sleep(60)
        assert not draining.done()
        assert len(await far.readexactly(1_010_000)) == 1_010_000
        await draining
        over.set()
        writer.close()
        server.close()

    virtually(scenario)


def test_an_aborted_connection_ends_at_the_other_end() -> None:
    async def scenario() -> None:
        async def take(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            writer.write(b"last")
            writer.transport.abort()

        server = await asyncio.start_server(take, "127.0.0.1", 0)
        reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname())
        assert await reader.read() == b"last"
        writer.close()
        server.close()

    virtually(scenario)


def test_a_timer_is_never_early() -> None:
    async def wait() -> list[float]:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(20.1)
        waits = []
        for seconds in (1e-12, 3e-10, 0.1):
            deadline = loop.time() + seconds
            while loop.time() < deadline:
                timer = loop.create_future()
                loop.call_at(deadline, timer.set_result, None)
                await timer
                waits.append(seconds)
        return waits

    assert run_virtually(wait()) == [1e-12, 3e-10, 0.1]


def test_time_passes_also_in_a_delay_that_is_lost_by_rounding() -> None:
    async def wait() -> bool:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(20.1)
        begun = loop.time()
        await asyncio.sleep(1e-18)
        return loop.time() > begun

    assert run_virtually(wait())
