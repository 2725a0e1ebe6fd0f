"""How a server has its log: one of its own, or one that it shares with other servers.

What differs between the two is behind `Backing`: `paddock.server.durability.own_log` is the one,
`paddock.server.cluster.cluster` the other. The server calls it in this order: `load`, `prepare`,
`snapshotter`, `assemble`, `open`; at the end `drain`, `settle` and `close`. `close` alone is called
if the start has failed, wherever that was.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paddock.log.interface import Log, SharedLog
from paddock.server.connections.core import Core
from paddock.server.durability.snapshotter import Snapshotter
from paddock.server.durability.startup import Restored
from paddock.server.replication.lease import Lease
from paddock.server.replication.proposer import Proposer
from paddock.server.replication.replica import Replica
from paddock.storage.replay import Replay


class Backing:
    """The log of one server, and what keeps its state."""

    @property
    def log(self) -> Log | SharedLog:
        """The log, once it was loaded."""
        raise NotImplementedError

    @property
    def lease(self) -> Lease | None:
        """Until when the server may speak to clients; None if nobody else does."""
        return None

    async def load(self, make_replica: Callable[[Replay], Replica]) -> tuple[Restored, Replica]:
        """Return the state at the end of the log, and where it came from. Raises LogError."""
        raise NotImplementedError

    def prepare(self, proposer: Proposer, monotonic: Callable[[], float]) -> None:
        """Set how batches go to the log."""

    def snapshotter(self, replica: Replica, restored: Restored) -> Snapshotter | None:
        """Return what takes snapshots; None if nothing does."""
        raise NotImplementedError

    def assemble(self, core: Core, snapshotter: Snapshotter | None) -> None:
        """Take the parts that serve the state."""
        raise NotImplementedError

    async def open(self) -> None:
        """Return when clients may come. Raises LogError if the server may not serve."""

    def is_on_duty(self) -> bool:
        """Return whether this server does what one server does for all."""
        return True

    def use_endpoints(self, endpoints: Sequence[str]) -> None:
        """Find a shared log at other addresses."""

    async def drain(self) -> None:
        """Begin to stop. The ports are closed, and clients that are there are still answered."""
        raise NotImplementedError

    async def settle(self) -> None:
        """Wait until the log has nothing more to say; nothing is proposed any more."""
        raise NotImplementedError

    def keeps_state(self) -> bool:
        """Return whether a last snapshot should be written."""
        raise NotImplementedError

    async def close(self) -> None:
        """Let go of everything."""
