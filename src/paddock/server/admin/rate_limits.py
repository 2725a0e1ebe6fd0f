"""Rate limits of the admin server, and the tasks that run its commands on all data.

A restore stops the server that received it, and another server takes its place. The supervisor
keeps these limits across servers, so that a restore does not reset its own rate limit.
"""

from __future__ import annotations

import asyncio
import ipaddress
from collections import OrderedDict, deque
from collections.abc import Callable, Coroutine
from typing import Any, Final, TypeAlias

from paddock.state.access import Identities

# Operation, result, identities of the client, and its address.
Audit: TypeAlias = Callable[[str, str, Identities, str], None]

WRONG_MAX: Final = 10
WRONG_SECONDS: Final = 60.0
"""So many wrong passwords of one address in so many seconds, and it is not heard for a while."""
_ADDRESSES_MAX: Final = 1000
# Who has one IPv6 address has all of its network.
_NETWORK_BITS: Final = 64


class Tasks(set[asyncio.Task[Any]]):
    """Running tasks with one owner, which ends them; each is forgotten when it is done."""

    def start(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Start and own a task."""
        task = asyncio.get_running_loop().create_task(work)
        self.own(task)
        return task

    def own(self, task: asyncio.Task[Any]) -> None:
        self.add(task)
        task.add_done_callback(self.discard)

    def hand_over(self, task: asyncio.Task[Any], heir: Tasks) -> None:
        """Move a task to another owner, which ends later."""
        self.discard(task)
        heir.own(task)

    async def end(self, grace: float = 0.0) -> None:
        """Wait `grace` seconds for the tasks, then cancel the rest and await it."""
        if self and grace:
            await asyncio.wait(self, timeout=grace)
        for task in self:
            task.cancel()
        if self:
            await asyncio.wait(self)


class RateLimit:
    """Allows one event per interval, in seconds; 0 is no limit."""

    def __init__(self, interval: float) -> None:
        self._interval = interval
        self._last: float | None = None

    def wait(self, now: float) -> float:
        """Count an event and return 0, or return the seconds until one is allowed."""
        if self._last is not None and now - self._last < self._interval:
            return self._last + self._interval - now
        self._last = now
        return 0.0

    def give_back(self, counted_at: float) -> None:
        """Undo the count of that time, unless another event was counted since."""
        if self._last == counted_at:
            self._last = None


class Guesses:
    """The wrong passwords of each address, so that nobody can try many.

    An address with too many is not heard until the oldest of them is a minute old, whatever it
    says: a right password that was let in would be told from the wrong ones. Others are heard.
    """

    def __init__(self) -> None:
        # Addresses by their last wrong password; the times of the last ones of each.
        self._wrong: OrderedDict[str, deque[float]] = OrderedDict()

    def wait(self, address: str, now: float) -> float:
        """Return the seconds for which an address is not heard, 0 if it is."""
        times = self._wrong.get(_network(address))
        if times is None or len(times) < WRONG_MAX:
            return 0.0
        return max(0.0, times[0] + WRONG_SECONDS - now)

    def count(self, address: str, now: float) -> None:
        """Count a wrong password."""
        key = _network(address)
        self._wrong.setdefault(key, deque(maxlen=WRONG_MAX)).append(now)
        self._wrong.move_to_end(key)
        if len(self._wrong) > _ADDRESSES_MAX:
            self._wrong.popitem(last=False)


def _network(address: str) -> str:
    """Return what stands for an address: itself, or the network of IPv6."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4:
        return str(found)
    if found.ipv4_mapped is not None:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, _NETWORK_BITS), strict=False))


class AdminLimits:
    """The rate limits, and the audit log of the current server."""

    def __init__(self, interval: float) -> None:
        self.snapshot = RateLimit(interval)
        self.restore = RateLimit(interval)
        self.guesses = Guesses()
        # Restores whose body has arrived; the supervisor waits for them at its end.
        self.restores = Tasks()
        # None without an audit log, and while no server runs: it would hold a server's state.
        self.on_audit: Audit | None = None

    def audit(self, operation: str, result: str, identities: Identities, address: str) -> None:
        """Write the result of a command to the audit log, if there is one."""
        if self.on_audit is not None:
            self.on_audit(operation, result, identities, address)
