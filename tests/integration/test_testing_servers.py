"""The servers that tests are given: in the loop, in a thread, in a process."""

from __future__ import annotations

import asyncio
import os
import socket
from pathlib import Path

import pytest
import uvloop

from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer, ServerProcess, ServerProcessError, ServerThread
from tests.support import requests as rq
from tests.support import wire
from tests.support.kazoo_clients import KazooClients
from tests.support.records import Code


def create(address: tuple[str, int], path: str) -> int:
    with wire.connect(address) as client:
        error = client.call(rq.create(path)).err
        client.close()
        return error


@pytest.mark.parametrize("factory", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_an_embedded_server_serves_on_the_running_loop(factory: object) -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            assert await asyncio.to_thread(create, server.address, "/a") == Code.OK
            before = server.address
            await server.restart()
            # It was in memory.
            assert server.address == before
            assert await asyncio.to_thread(create, server.address, "/a") == Code.OK
            await server.stop()
            with pytest.raises(ConnectionRefusedError):
                await asyncio.to_thread(create, server.address, "/a")

    assert callable(factory)
    with asyncio.Runner(loop_factory=factory) as runner:
        runner.run(scenario())


def test_an_embedded_server_with_a_folder_keeps_what_it_has(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with EmbeddedServer(tmp_path / "data") as server:
            assert await asyncio.to_thread(create, server.address, "/a") == Code.OK
        async with EmbeddedServer(tmp_path / "data") as server:
            assert await asyncio.to_thread(create, server.address, "/a") == Code.NODE_EXISTS

    asyncio.run(scenario())


def test_a_server_in_a_thread_is_for_those_who_block(tmp_path: Path) -> None:
    config = ServerConfig(port=0, tick_time_ms=200)
    with ServerThread(tmp_path, config) as server, KazooClients(server.address) as clients:
        client = clients.connect()
        client.create("/a", b"1", ephemeral=True)
        session = client.client_id
        server.restart()
        # The same session on the same port; its ephemeral node is there.
        assert client.retry(client.get, "/a")[0] == b"1"
        assert client.client_id == session


def test_what_fails_in_the_thread_of_a_server_is_not_lost() -> None:
    def fail() -> None:
        raise ArithmeticError("as the test wants it")

    server = ServerThread().__enter__()
    server._background.loop.call_soon_threadsafe(fail)
    with pytest.raises(RuntimeError, match="as the test wants it"):
        server.__exit__(None, None, None)


def test_a_process_that_is_killed_comes_back_with_all_that_was_acknowledged(
    tmp_path: Path,
) -> None:
    with ServerProcess(tmp_path / "data") as server:
        first, address = server.pid, server.address
        assert create(address, "/a") == Code.OK
        server.kill()
        assert not server.is_running
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(address)
        server.start()
        assert (server.address, server.pid != first) == (address, True)
        assert create(address, "/a") == Code.NODE_EXISTS
        server.restart()
        assert create(address, "/a") == Code.NODE_EXISTS
        assert server.log.count("ready: serving") == 3
    with pytest.raises(ProcessLookupError):
        os.kill(first, 0)


def test_a_process_in_memory_comes_back_with_nothing() -> None:
    with ServerProcess() as server:
        assert create(server.address, "/a") == Code.OK
        server.kill()
        server.start()
        assert create(server.address, "/a") == Code.OK


def test_a_process_can_stand_still() -> None:
    with ServerProcess() as server, wire.connect(server.address) as client:
        server.pause()
        client.send(rq.exists("/"))
        with pytest.raises(TimeoutError):
            client.read(deadline_s=0.2)
        server.resume()
        assert client.reply().err == Code.OK


def test_a_process_that_stands_still_can_be_stopped() -> None:
    with ServerProcess() as server:
        server.pause()
        server.stop()
        assert not server.is_running


def test_a_process_that_cannot_start_says_why(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(ServerProcessError, match=r"paddock: .*file"), ServerProcess(file):
        pass
    with (
        pytest.raises(ServerProcessError, match="--no-such-option"),
        ServerProcess(options=["--no-such-option"]),
    ):
        pass
