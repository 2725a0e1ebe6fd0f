"""A port that two have bound, and that only one can listen on."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest
import uvloop

from paddock.server.connections.ports import PortError, explained, start_listening


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_an_address_of_another_machine_is_refused_in_words(
    new_loop: Callable[[], asyncio.AbstractEventLoop],
) -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        # An address for documentation.
        with (
            pytest.raises(PortError, match=r"192\.0\.2\.1:0: it is no address of this machine"),
            explained("192.0.2.1", 0),
        ):
            await loop.create_server(asyncio.Protocol, "192.0.2.1", 0)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())


@pytest.mark.parametrize(
    "said",
    [
        OSError(99, "error while attempting to bind on address ('192.0.2.1', 0)"),
        OSError("could not bind on any address out of [('192.0.2.1', 0)]"),
    ],
)
def test_each_release_of_asyncio_is_understood(said: OSError) -> None:
    with pytest.raises(PortError, match="it is no address of this machine"):
        with explained("192.0.2.1", 0):
            raise said


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
@pytest.mark.parametrize("looked_at", [False, True])
def test_the_second_of_two_that_bound_a_port_is_told(
    new_loop: Callable[[], asyncio.AbstractEventLoop], looked_at: bool
) -> None:
    async def bound(port: int) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        return await loop.create_server(asyncio.Protocol, "127.0.0.1", port, start_serving=False)

    async def scenario() -> None:
        with contextlib.ExitStack() as stack:
            first = await bound(0)
            stack.callback(first.close)
            port = first.sockets[0].getsockname()[1]
            second = await bound(port)
            stack.callback(second.close)
            if looked_at:
                # uvloop makes them when they are asked for, and then keeps them.
                assert second.sockets[0].getsockname()[1] == port
            await start_listening(first)
            with (
                pytest.raises(PortError, match=f"127.0.0.1:{port}: the port is taken"),
                explained("127.0.0.1", port),
            ):
                await start_listening(second)

    with asyncio.Runner(loop_factory=new_loop) as runner:
        runner.run(scenario())
