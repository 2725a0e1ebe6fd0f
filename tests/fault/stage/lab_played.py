"""What came of a scene: the verdict of the judge, and what clients noticed."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field

from paddock.protocol import opcodes
from paddock.testing.simulation.calls import Call, Connection
from paddock.testing.simulation.judge import Verdict


@dataclass
class Played:
    """What came of a scene."""

    verdict: Verdict
    #: What failed besides the rules of the judge.
    failures: list[str]
    #: What became of records of the log and of members.
    counts: Counter[str]
    #: The clients whose server was struck, and when the scene began.
    struck: set[str] = field(default_factory=set)
    begun: float = 0.0
    #: Whether a process ended that should.
    has_ended: bool = False
    #: How many syncs of a slow disk were waited for.
    slow_syncs: int = 0
    #: For how long etcd had no leader, as far as was looked; None if it did not elect another one.
    leaderless_s: float | None = None

    @property
    def problems(self) -> list[str]:
        return [*self.failures, *map(str, self.verdict.violations)]

    def report(self) -> str:
        return "\n".join([*self.failures, self.verdict.report()])

    @property
    def calls(self) -> list[Call]:
        return self.verdict.calls.calls

    @property
    def clients(self) -> set[str]:
        return {one.client for one in self._connections() if one.client.startswith("c")}

    @property
    def acknowledged(self) -> int:
        """How many writes were."""
        return sum(_is_done(call) for call in self.calls if call.is_write)

    @property
    def unknown(self) -> int:
        """How many writes had no answer; some of them happened."""
        return sum(call.is_write and call.reply is None for call in self.calls)

    @property
    def ended_sessions(self) -> int:
        """How many clients were told that their session is over."""
        return sum(one.is_refused for one in self._connections())

    @property
    def reconnects(self) -> int:
        """How often a client went on with its session on another connection."""
        return sum(len(one) - 1 for one in self.verdict.calls.sessions().values())

    @property
    def losses(self) -> int:
        """How often a client lost a connection on which it had a session, or left it."""
        return sum(one.lost_at is not None and one.session > 0 for one in self._connections())

    def longest_wait(self, clients: Iterable[str], *, writes: bool) -> float:
        """Return the longest time without an answer to a write, or to a read, of any client."""
        waits = [0.0]
        for client in clients:
            ends = [
                call.end
                for call in self.calls
                if call.connection.client == client
                and call.operation != opcodes.PING
                and call.is_write == writes
                and _is_done(call)
            ]
            pairs = itertools.pairwise(sorted(ends))
            waits += [later - one for one, later in pairs if later >= self.begun]
        return max(waits)

    def _connections(self) -> list[Connection]:
        return list(self.verdict.calls.connections.values())


def _is_done(call: Call) -> bool:
    return call.reply is not None and not call.reply.error
