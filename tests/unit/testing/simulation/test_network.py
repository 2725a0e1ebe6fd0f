"""The simulated network: order, cuts, partitions, deaths."""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from paddock.testing.simulation.network import SimulatedNetwork
from paddock.testing.simulation.process import ProcessLoop, new_process
from paddock.testing.simulation.world_loop import new_world

PORT = 2181


class End(asyncio.Protocol):
    """One end of a connection, which remembers everything."""

    def __init__(self) -> None:
        self.got = b""
        self.lost: list[Exception | None] = []
        self.paused: list[bool] = []
        self.transport: asyncio.Transport

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.got += data

    def connection_lost(self, error: Exception | None) -> None:
        self.lost.append(error)

    def pause_writing(self) -> None:
        self.paused.append(True)

    def resume_writing(self) -> None:
        self.paused.append(False)


class Pair:
    """A client and a server, connected."""

    def __init__(self, network: SimulatedNetwork) -> None:
        self.network = network
        self.client = new_process(network.world, network, "c1", "10.0.1.1")
        self.server = new_process(network.world, network, "s1", "10.0.0.1")
        self.near, self.far = End(), End()

    async def listen(self) -> None:
        await self.run(self.server, self.server.create_server(lambda: self.far, "", PORT))

    async def connect(self) -> None:
        await self.run(
            self.client, self.client.create_connection(lambda: self.near, "10.0.0.1", PORT)
        )
        # The server learns of it in its next pass.
        await asyncio.sleep(0)

    async def run(self, process: ProcessLoop, work: Coroutine[Any, Any, object]) -> None:
        task = process.spawn(work)
        over = asyncio.Event()
        task.add_done_callback(lambda _: network_loop.call_soon(over.set))
        network_loop = self.network.world
        await over.wait()
        task.result()


def connected(main: Callable[[Pair], Coroutine[Any, Any, None]]) -> None:
    loop = new_world()
    pair = Pair(SimulatedNetwork(loop, "test", delay_max=0.1))

    async def run() -> None:
        await pair.listen()
        await pair.connect()
        await main(pair)

    try:
        loop.run_until_complete(run())
        for process in pair.network.processes:
            process.bury()
    finally:
        loop.close()


def test_what_is_written_arrives_in_order_and_takes_time() -> None:
    async def main(pair: Pair) -> None:
        for number in range(100):
            pair.near.transport.write(b"%02d" % number)
        assert pair.far.got == b""
        await asyncio.sleep(0.2)
        assert pair.far.got == b"".join(b"%02d" % number for number in range(100))

    connected(main)


def test_nobody_listens_on_another_port() -> None:
    async def main(pair: Pair) -> None:
        with pytest.raises(ConnectionRefusedError):
            await pair.run(pair.client, pair.client.create_connection(End, "10.0.0.1", 1))

    connected(main)


def test_a_close_comes_after_what_was_written() -> None:
    async def main(pair: Pair) -> None:
        pair.far.transport.write(b"last")
        pair.far.transport.close()
        await asyncio.sleep(0.5)
        assert pair.near.got == b"last"
        assert pair.near.lost == [None]

    connected(main)


def test_a_cut_loses_what_is_on_its_way_in_both_directions() -> None:
    async def main(pair: Pair) -> None:
        pair.near.transport.write(b"request")
        pair.far.transport.write(b"reply")
        pair.network.alive()[0].cut()
        await asyncio.sleep(0.5)
        assert (pair.near.got, pair.far.got) == (b"", b"")
        assert [type(end.lost[0]) for end in (pair.near, pair.far)] == [ConnectionResetError] * 2
        assert pair.network.alive() == []

    connected(main)


def test_replies_alone_can_be_lost() -> None:
    async def main(pair: Pair) -> None:
        pair.near.transport.write(b"request")
        pair.far.transport.write(b"reply")
        pair.network.alive()[0].cut(lose_replies_only=True)
        await asyncio.sleep(0.5)
        assert (pair.near.got, pair.far.got) == (b"", b"request")
        assert len(pair.near.lost) == len(pair.far.lost) == 1

    connected(main)


def test_a_partition_delays_and_loses_nothing() -> None:
    async def main(pair: Pair) -> None:
        pair.network.part("10.0.1.1", "10.0.0.1")
        pair.near.transport.write(b"request")
        await asyncio.sleep(5)
        assert pair.far.got == b""
        pair.network.join("10.0.1.1", "10.0.0.1")
        await asyncio.sleep(0.2)
        assert pair.far.got == b"request"

    connected(main)


def test_a_dead_process_resets_its_connections_and_one_without_power_does_not() -> None:
    async def main(pair: Pair) -> None:
        pair.server.kill()
        pair.network.die(pair.server, silently=True)
        await asyncio.sleep(5)
        assert pair.near.lost == []

    connected(main)

    async def reset(pair: Pair) -> None:
        pair.far.transport.write(b"last")
        pair.server.kill()
        pair.network.die(pair.server, silently=False)
        await asyncio.sleep(5)
        assert pair.near.got == b"last"
        assert [type(error) for error in pair.near.lost] == [ConnectionResetError]

    connected(reset)


def test_a_reset_waits_for_the_end_of_a_partition() -> None:
    async def main(pair: Pair) -> None:
        pair.network.part("10.0.1.1", "10.0.0.1")
        pair.server.kill()
        pair.network.die(pair.server, silently=False)
        await asyncio.sleep(5)
        assert pair.network.alive() == []
        assert pair.near.lost == []
        pair.network.join("10.0.1.1", "10.0.0.1")
        await asyncio.sleep(0.2)
        assert [type(error) for error in pair.near.lost] == [ConnectionResetError]

    connected(main)


def test_the_tap_of_a_dead_client_ends_though_a_reset_was_on_its_way() -> None:
    class Ended:
        def __init__(self) -> None:
            self.reasons: list[str] = []

        def sent(self, data: bytes) -> None:
            pass

        def received(self, data: bytes) -> None:
            pass

        def ended(self, reason: str) -> None:
            self.reasons.append(reason)

    async def main(pair: Pair) -> None:
        pair.network.connections[0].tap = tap = Ended()
        pair.network.part("10.0.1.1", "10.0.0.1")
        pair.server.kill()
        pair.network.die(pair.server, silently=False)
        await asyncio.sleep(1)
        pair.network.alive()
        pair.client.kill()
        pair.network.die(pair.client, silently=False)
        assert tap.reasons == ["the client is dead"]

    connected(main)


def test_a_paused_process_finds_everything_when_it_goes_on() -> None:
    async def main(pair: Pair) -> None:
        pair.server.pause()
        pair.near.transport.write(b"one")
        await asyncio.sleep(5)
        assert pair.far.got == b""
        pair.server.resume()
        await asyncio.sleep(0.1)
        assert pair.far.got == b"one"

    connected(main)


def test_who_writes_much_is_paused_until_it_has_arrived() -> None:
    async def main(pair: Pair) -> None:
        pair.near.transport.write(bytes(1 << 20))
        assert pair.near.paused == [True]
        await asyncio.sleep(1)
        assert pair.near.paused == [True, False]
        assert len(pair.far.got) == 1 << 20

    connected(main)
