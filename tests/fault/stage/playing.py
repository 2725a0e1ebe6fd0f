"""One client behind a fault proxy, and a bystander beside it: where most stories of a client play.

    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        proxy.when(operation="get").cut_after()
        assert await client.exists("/") == await bystander.exists("/")


    play(story)

All of it in virtual time, so a minute of silence takes no time; and with a limit in real time, for
a client that asks again and again instead of waiting.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from random import Random
from typing import Any, Final, TypeVar

from paddock.api import connect
from paddock.client.client import Client
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.fault.stage.cutting import in_real_time

T = TypeVar("T")

# The client's; the server grants it.
TIMEOUT_S: Final = 9.0
# In virtual time: what takes longer, hangs.
_DEADLINE_S: Final = 3600.0
_REAL_DEADLINE_S: Final = 120


def play(
    story: Callable[[Client, FaultProxy, Client], Coroutine[Any, Any, T]], *, exact: bool = True
) -> T:
    """Play a story of a client, the proxy before it, and the bystander; give what it gives.

    Nothing may have reached the event loop's exception handler.
    """

    async def main() -> T:
        problems: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: problems.append(f"{context['message']} {context.get('exception')}")
        )
        async with (
            asyncio.timeout(_DEADLINE_S),
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(server.hosts, random=Random(1)) as bystander,
            connect(
                proxy.hosts, session_timeout=TIMEOUT_S, random=Random(2), exact=exact
            ) as client,
        ):
            result = await story(client, proxy, bystander)
        assert not problems, problems
        return result

    with in_real_time(_REAL_DEADLINE_S):
        return run_virtually(main())
