"""Test support, for Paddock's own tests and for those of its users.

`FaultyServer` is a server whose clients can be cut off, and lose sessions and replies; under pytest
there are fixtures for it. Servers alone: `EmbeddedServer` on the event loop of a test,
`ServerThread` for tests without asyncio, `ServerProcess` to be killed. `FaultProxy` breaks
connections at chosen requests, `at_every_cut` at all of them in turn. `expire_session` ends a
session from outside. `run_virtually` and `in_virtual_time` run all of this but processes and
threads without waiting for time.

    async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
        async with paddock.connect(proxy.hosts) as client:
            await client.create("/worker", ephemeral=True)
            proxy.cut()
            print(await client.exists("/worker") is not None)  # True

Like the package itself, this imports a module at its first use: pytest looks for fixtures here in
every run where Paddock is installed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddock._first_use import on_first_use

if TYPE_CHECKING:
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
    from paddock.testing.faults import Direction, Fault, Partition, Trigger
    from paddock.testing.faulty import FaultyServer
    from paddock.testing.process import ServerProcess, ServerProcessError
    from paddock.testing.proxy import FaultProxy
    from paddock.testing.virtual import VirtualServer, VirtualTime, in_virtual_time

__all__ = [
    "Cut",
    "CutPoint",
    "Direction",
    "EmbeddedServer",
    "Fault",
    "FaultProxy",
    "FaultyServer",
    "Partition",
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
    "VirtualServer",
    "VirtualTime",
    "at_every_cut",
    "at_every_cut_blocking",
    "cut_points",
    "expire_session",
    "expire_session_blocking",
    "in_virtual_time",
    "run_virtually",
]

# Where they are, the light modules first.
_HOMES = (
    "paddock.testing.conversation",
    "paddock.testing.faults",
    "paddock.testing.clock",
    "paddock.testing.expiry",
    "paddock.testing.process",
    "paddock.testing.proxy",
    "paddock.testing.embedded",
    "paddock.testing.cuts",
    "paddock.testing.faulty",
    "paddock.testing.virtual",
)


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for one of ours.
    __getattr__, __dir__ = on_first_use(globals(), _HOMES)
