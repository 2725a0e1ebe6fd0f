"""What tests are made of, for Paddock's own and for those of its users.

Servers: `EmbeddedServer` on the event loop of a test, `ServerThread` for tests without asyncio,
`ServerProcess` to be killed. `FaultProxy` breaks connections at chosen requests, `at_every_cut` at
all of them in turn. `expire_session` ends a session from outside. `run_virtually` runs all of this
but processes and threads without waiting for time.

    async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
        async with paddock.connect(proxy.hosts) as client:
            await client.create("/worker", ephemeral=True)
            proxy.cut()
            print(await client.exists("/worker") is not None)  # True
"""

from paddock.testing.clock import VirtualClockLoop, run_virtually
from paddock.testing.conversation import Seen, SeenEvent, SeenReply, SeenRequest
from paddock.testing.cuts import (
    Cut,
    CutPoint,
    at_every_cut,
    at_every_cut_blocking,
    cut_points,
)
from paddock.testing.embedded import EmbeddedServer, ServerThread
from paddock.testing.expiry import SessionLivesError, expire_session, expire_session_blocking
from paddock.testing.faults import Direction, Fault, Trigger
from paddock.testing.process import ServerProcess, ServerProcessError
from paddock.testing.proxy import FaultProxy

__all__ = [
    "Cut",
    "CutPoint",
    "Direction",
    "EmbeddedServer",
    "Fault",
    "FaultProxy",
    "Seen",
    "SeenEvent",
    "SeenReply",
    "SeenRequest",
    "ServerProcess",
    "ServerProcessError",
    "ServerThread",
    "SessionLivesError",
    "Trigger",
    "VirtualClockLoop",
    "at_every_cut",
    "at_every_cut_blocking",
    "cut_points",
    "expire_session",
    "expire_session_blocking",
    "run_virtually",
]
