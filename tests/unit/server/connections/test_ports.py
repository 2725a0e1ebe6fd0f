"""A port that two have bound, and that only one can listen on."""

import asyncio
import contextlib
from collections.abc import Callable

import pytest
import uvloop

from paddock.server.connections.ports import PortError, explained, start_listening


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
