"""A deterministic world in one process: servers, clients and faults in virtual time, and its judge.

Nothing here is real but the code under test: processes, clocks, the network and disks are simulated
from one seed. The same seed gives the same trace, byte for byte.

For tests of code that coordinates by way of Paddock there is `simulated`. It runs a test in many
worlds. Each has its own servers, and the test's coroutines as processes, with the real client and
the real recipes; faults come from its seed: connections are cut, replies are lost, servers are
killed, processes are paused or killed, clocks run fast or slow.

    from paddock.recipes import Lock
    from paddock.testing.simulation import simulated


    @simulated(seeds=20)
    async def test_one_at_a_time(world):
        async def work():
            async with world.client() as client, Lock(client, "/lock") as grant:
                await client.create("/log/by-", b"%d" % grant.token, sequential=True)

        world.spawn("alice", work, may_raise=Exception)
        world.spawn("bob", work, may_raise=Exception)
        await world.rest()
        tokens = [int(write.data) for write in world.written("/log/by-")]
        assert tokens == sorted(tokens)

A world that fails is shrunk, and printed as a story. Blocking code (`paddock.sync`) is simulated as
well, in one thread for each process. Not simulated are other threads, real sockets, child processes
and TLS: they raise SimulationError.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddock._first_use import on_first_use

if TYPE_CHECKING:
    from paddock.testing.simulation.decorator import WorldFailedError, simulated
    from paddock.testing.simulation.user_handle import ProcessHandle
    from paddock.testing.simulation.user_plan import Faults
    from paddock.testing.simulation.user_process import SimulationError
    from paddock.testing.simulation.user_world import SimulatedWorld
    from paddock.testing.simulation.writes import Write

__all__ = [
    "Faults",
    "ProcessHandle",
    "SimulatedWorld",
    "SimulationError",
    "WorldFailedError",
    "Write",
    "simulated",
]

# Where they are, the light modules first.
_HOMES = (
    "paddock.testing.simulation.user_plan",
    "paddock.testing.simulation.user_process",
    "paddock.testing.simulation.writes",
    "paddock.testing.simulation.user_handle",
    "paddock.testing.simulation.user_world",
    "paddock.testing.simulation.decorator",
)

if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for one of ours.
    __getattr__, __dir__ = on_first_use(globals(), _HOMES)
