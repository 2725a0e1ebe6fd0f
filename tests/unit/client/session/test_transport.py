"""The end of a connection whose other side does not agree to it."""

from __future__ import annotations

import asyncio
from typing import cast

import pytest

from paddock.client.session.transport import Transport
from paddock.testing import run_virtually


class Stubborn:
    """A transport that is over only when it is aborted."""

    def __init__(self, transport: Transport) -> None:
        self._link = transport

    def is_closing(self) -> bool:
        return True

    def close(self) -> None:
        """Wait for the other side, which says nothing."""

    def abort(self) -> None:
        asyncio.get_running_loop().call_soon(self._link.connection_lost, None)


@pytest.mark.parametrize("is_cancelled", [False, True])
def test_who_does_not_agree_to_the_end_is_not_waited_for(is_cancelled: bool) -> None:
    async def main() -> None:
        transport = Transport()
        transport.connection_made(cast(asyncio.Transport, Stubborn(transport)))
        transport.close()
        begins_at = asyncio.get_running_loop().time()
        if is_cancelled:
            waiting = asyncio.ensure_future(transport.wait_closed())
            await asyncio.sleep(0.5)
            waiting.cancel()
            await asyncio.wait([waiting])
            assert waiting.cancelled()
        await transport.wait_closed()
        # In virtual time.
        assert asyncio.get_running_loop().time() == begins_at + 1.0
        assert transport.lost.done()

    run_virtually(main())
