"""How a host is reached that has several addresses."""

from __future__ import annotations

import asyncio
import socket
from random import Random
from typing import Any

import pytest

from paddock import ConnectionLostError, connect
from paddock.client.session.hosts import Host
from paddock.client.session.reconnector import Connector, UnreachableError
from paddock.client.session.transport import Transport
from paddock.testing import EmbeddedServer, VirtualClockLoop
from tests.support.scripted import ScriptedServer, Talk


class NamedLoop(VirtualClockLoop):
    """A loop in which one name stands for some addresses, which can change."""

    def __init__(self) -> None:
        super().__init__()
        self.addresses: list[str] = []
        self.lookups = 0

    async def getaddrinfo(self, host: Any, port: Any, **_: Any) -> list[Any]:
        self.lookups += 1
        if host != "service" or not self.addresses:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        kind = socket.SOCK_STREAM
        return [(socket.AF_INET, kind, 6, "", (one, port)) for one in self.addresses]


async def take(transport: Transport) -> str:
    transport.abort()
    return "taken"


def run(scenario: Any) -> None:
    with asyncio.Runner(loop_factory=NamedLoop) as runner:
        runner.run(scenario())


def loop() -> NamedLoop:
    running = asyncio.get_running_loop()
    assert isinstance(running, NamedLoop)
    return running


def test_every_address_is_tried_and_each_failure_is_named() -> None:
    async def scenario() -> None:
        loop().addresses = ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
        with pytest.raises(UnreachableError) as caught:
            await Connector(loop(), Random(1), None).reach(Host("service", 2181), take, 6)
        for address in loop().addresses:
            assert f"{address}: nobody listens on {address}:2181" in str(caught.value)

    run(scenario)


def test_an_address_that_listens_and_says_nothing_does_not_take_all_the_time() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            address, port = server.address

            async def say_nothing(talk: Talk) -> None:
                await talk.reader.read()

            async with ScriptedServer(say_nothing, "10.0.0.1", port):
                # In whichever order they come.
                for seed in range(4):
                    loop().addresses = ["10.0.0.1", address]
                    async with connect(f"service:{port}", random=Random(seed)) as client:
                        await client.get("/")

    run(scenario)


def test_a_name_is_resolved_again_for_every_attempt() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            address, port = server.address
            with pytest.raises(ConnectionLostError, match="the name cannot be resolved: Name or"):
                await connect(f"service:{port}", random=Random(1)).start()
            assert loop().lookups > 3
            loop().addresses = ["10.0.0.9"]
            starting = asyncio.create_task(connect(f"service:{port}", random=Random(1)).start())
            await asyncio.sleep(1)
            loop().addresses = [address]
            await starting

    run(scenario)


def test_an_address_is_not_looked_up() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            async with connect(server.hosts, random=Random(1)) as client:
                await client.get("/")
        assert loop().lookups == 0

    run(scenario)
