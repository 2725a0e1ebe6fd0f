"""How many writes some requests are: a lone one goes at once, and a crowd goes as one."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from random import Random

from paddock import Client, connect
from paddock.testing import EmbeddedServer, run_virtually


class Relay(asyncio.Protocol):
    """What stands between a client and a server, and counts the requests of each write."""

    def __init__(self, address: tuple[str, int], writes: list[int]) -> None:
        self._address = address
        self._writes = writes
        self._early: list[bytes] = []
        self._onward: asyncio.Transport | None = None
        self._opening: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._opening = asyncio.ensure_future(self._open(transport))

    def data_received(self, data: bytes) -> None:
        self._writes.append(_frames(data))
        if self._onward is None:
            self._early.append(data)
        else:
            self._onward.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        if self._onward is not None:
            self._onward.close()

    async def _open(self, back: asyncio.Transport) -> None:
        loop = asyncio.get_running_loop()
        self._onward, _ = await loop.create_connection(lambda: _Back(back), *self._address)
        self._onward.writelines(self._early)


class _Back(asyncio.Protocol):
    def __init__(self, back: asyncio.Transport) -> None:
        self._back = back

    def data_received(self, data: bytes) -> None:
        self._back.write(data)

    def connection_lost(self, error: Exception | None) -> None:
        self._back.close()


def _frames(data: bytes) -> int:
    count = 0
    while data:
        data = data[4 + int.from_bytes(data[:4], "big") :]
        count += 1
    return count


def writes_of(asking: Callable[[Client], Awaitable[None]]) -> list[int]:
    """Return the number of requests in each write while `asking` runs."""
    writes: list[int] = []

    async def main() -> None:
        async with EmbeddedServer() as server:
            loop = asyncio.get_running_loop()
            relay = await loop.create_server(
                lambda: Relay(server.address, writes), "127.0.0.1", 7000
            )
            async with connect("127.0.0.1:7000", random=Random(1)) as client:
                await client.exists("/")
                writes.clear()
                await asking(client)
                # Before the session is closed, which is a request like any other.
                writes.append(0)
            relay.close()

    run_virtually(main())
    return writes[: writes.index(0)]


def test_a_request_that_comes_alone_is_a_write_of_its_own_at_once() -> None:
    async def ask(client: Client) -> None:
        first = client.exists("/")
        later = [client.exists("/") for _ in range(5)]
        await asyncio.gather(first, *later)

    assert writes_of(ask) == [1, 5]


def test_whoever_asks_in_crowds_has_one_write_for_each_of_them() -> None:
    async def ask(client: Client) -> None:
        for _ in range(3):
            await asyncio.gather(*(client.exists("/") for _ in range(50)))

    # The first time nobody knows yet.
    assert writes_of(ask) == [1, 49, 50, 50]


def test_after_a_crowd_has_gone_a_lone_request_is_written_at_once_again() -> None:
    async def ask(client: Client) -> None:
        await asyncio.gather(*(client.exists("/") for _ in range(50)))
        await client.exists("/")
        await asyncio.gather(*(client.exists("/") for _ in range(3)))

    assert writes_of(ask) == [1, 49, 1, 1, 2]


def test_what_is_asked_together_is_one_write_at_the_end_of_the_scope() -> None:
    async def ask(client: Client) -> None:
        with client.together():
            with client.together():
                one = client.exists("/")
            two = client.exists("/")
        three = client.exists("/")
        await asyncio.gather(one, two, three)
        await client.exists("/")

    assert writes_of(ask) == [2, 1, 1]
