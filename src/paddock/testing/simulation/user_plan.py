"""What is done to a user's world, from its seed: which faults, when, and how its clocks run.

A plan without some of its faults is a plan as well, so a failure can be shrunk. Tests differ in how
long they take, so faults come at all scales: many early ones, and some late.
"""

from __future__ import annotations

import dataclasses
import enum
import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Final

from paddock.testing.simulation import plan as p
from paddock.testing.simulation.plan import Fault


class Faults(enum.Flag):
    """The kinds of faults that a simulated world may have."""

    NONE = 0
    #: Connections are reset, with or without the replies that were on their way.
    CONNECTIONS = enum.auto()
    #: A process cannot reach a server for a while.
    PARTITIONS = enum.auto()
    #: A process does not run for a while, as on a machine that swaps or is suspended.
    PAUSES = enum.auto()
    #: A process is killed.
    KILLS = enum.auto()
    #: Servers are stopped, killed, paused and started again; disks fail, and so does etcd.
    SERVERS = enum.auto()
    #: Clocks run up to ten percent fast or slow, and the time of day jumps.
    CLOCKS = enum.auto()
    ALL = CONNECTIONS | PARTITIONS | PAUSES | KILLS | SERVERS | CLOCKS


OF_PROCESSES: Final = (p.CUT, p.CUT_REPLIES, p.PART, p.PAUSE_CLIENT, p.KILL_CLIENT)
_KINDS: Final = {
    Faults.CONNECTIONS: (p.CUT, p.CUT_REPLIES),
    Faults.PARTITIONS: (p.PART,),
    Faults.PAUSES: (p.PAUSE_CLIENT,),
    Faults.KILLS: (p.KILL_CLIENT,),
    Faults.CLOCKS: (p.JUMP,),
}
# What finds most, twice as often.
_FREQUENT: Final = Faults.CONNECTIONS | Faults.PAUSES
_OF_SERVERS: Final = (p.STOP, p.KILL, p.POWER, p.PAUSE)
_OF_DISKS: Final = (p.FULL, p.FAIL, p.SLOW)
_OF_ETCD: Final = (p.UNLINK, p.MUTE, p.LAG, p.ELECT, p.QUORUM)
# How many faults a world has; one in ten has none.
_COUNTS: Final = (1, 1, 1, 2, 2, 3, 4, 6)
_CALM_EVERY: Final = 10
# How long they last, in seconds, with some variation. Long ones end sessions: those of processes
# find most.
_SPANS: Final = (0.05, 0.5, 2.0, 6.0, 12.0, 25.0)
_SPANS_OF_PROCESSES: Final = (0.5, 4.0, 8.0, 16.0)
# When they come, as a part of the whole time.
_SCALES: Final = (1.0, 0.3, 0.1, 0.1, 0.03)
_RATES: Final = (1.0, 1.0, 1.1, 0.9)
_JUMP_SECONDS: Final = 60.0


@dataclass(frozen=True, slots=True)
class UserPlan:
    """All that a seed decides beforehand."""

    seed: int
    servers: int
    faults: tuple[Fault, ...]
    # When everything is mended at the latest.
    end: float
    # How long a message, and a sync of a disk, takes at most.
    delay_max: float
    sync_max: float = 0.001
    # How fast the clocks of servers run, and whether those of processes differ.
    rates: tuple[float, ...] = ()
    has_clocks: bool = False

    def clock_of(self, name: str) -> tuple[float, float]:
        """Return how fast the clock of a process runs, and how far its time of day is off."""
        if not self.has_clocks:
            return 1.0, 0.0
        draw = random.Random(f"{self.seed} clock {name}")
        return draw.choice(_RATES), draw.uniform(-_JUMP_SECONDS, _JUMP_SECONDS)

    def with_faults(self, faults: Sequence[Fault]) -> UserPlan:
        return dataclasses.replace(self, faults=tuple(faults))

    def simpler(self) -> Iterator[UserPlan]:
        """Yield plans that are simpler to follow, in all but the number of faults."""
        if self.has_clocks or any(rate != 1.0 for rate in self.rates):
            right = (1.0,) * self.servers
            yield dataclasses.replace(self, has_clocks=False, rates=right)
        if self.servers > 1:
            yield dataclasses.replace(self, servers=1, rates=self.rates[:1])
        if self.delay_max > _DELAYS[0]:
            yield dataclasses.replace(self, delay_max=_DELAYS[0])

    def __str__(self) -> str:
        return f"{_counted(self.servers, 'server')}, {_counted(len(self.faults), 'fault')}"


_DELAYS: Final = (0.001, 0.01, 0.05)


def make_user_plan(seed: int, servers: int, kinds: Faults, seconds: float) -> UserPlan:
    """Return the plan of a seed."""
    draw = random.Random(f"{seed} user plan {servers} {kinds.value} {seconds}")
    has_clocks = Faults.CLOCKS in kinds and draw.random() < 0.5
    rates = tuple(draw.choice(_RATES) if has_clocks else 1.0 for _ in range(servers))
    delay_max = draw.choice(_DELAYS)
    sync_max = draw.choice((0.001, 0.01))
    faults: list[Fault] = []
    groups = list(_groups(kinds, servers))
    if groups and seed % _CALM_EVERY:
        for _ in range(draw.choice(_COUNTS)):
            # Each group has the same share, however many kinds it has.
            kind = draw.choice(draw.choice(groups))
            spans = _SPANS_OF_PROCESSES if kind in OF_PROCESSES else _SPANS
            faults.append(
                Fault(
                    round(draw.uniform(0, seconds * draw.choice(_SCALES)), 4),
                    kind,
                    draw.randint(1, 60),
                    round(draw.choice(spans) * draw.uniform(0.5, 1.5), 4),
                    round(draw.random(), 4),
                )
            )
    return UserPlan(
        seed,
        servers,
        tuple(sorted(faults, key=lambda fault: fault.at)),
        seconds,
        delay_max,
        sync_max,
        rates,
        has_clocks,
    )


def _groups(kinds: Faults, servers: int) -> Iterator[tuple[str, ...]]:
    for kind, names in _KINDS.items():
        if kind in kinds:
            yield names
            if kind in _FREQUENT:
                yield names
    if Faults.SERVERS in kinds:
        yield _OF_SERVERS
        yield _OF_DISKS if servers == 1 else _OF_ETCD


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}{'' if number == 1 else 's'}"
