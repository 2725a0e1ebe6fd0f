"""The plan of a world: its servers, what its clients do, and what is done to it. All of it data.

A plan is made from a seed (`make_plan`). A part of a plan is a plan as well, so a failure can be
shrunk: what happens to each remaining part depends on the seed and on that part alone.
"""

from __future__ import annotations

import dataclasses
import random
from dataclasses import dataclass
from typing import Final

# What may be done to a world; with several servers also what concerns their shared log.
CUT: Final = "cut connections"
CUT_REPLIES: Final = "lose replies"
PART: Final = "part a client from a server"
PAUSE_CLIENT: Final = "pause a client"
KILL_CLIENT: Final = "kill a client"
STOP: Final = "stop a server"
KILL: Final = "kill a server"
POWER: Final = "power off a server"
PAUSE: Final = "pause a server"
FULL: Final = "fill the disk"
FAIL: Final = "fail syncs"
SLOW: Final = "slow syncs"
JUMP: Final = "set the time of day"

UNLINK: Final = "cut a server off etcd"
MUTE: Final = "lose etcd's replies to a server"
GAG: Final = "lose a server's requests to etcd"
LAG: Final = "slow a server's link to etcd"
DEAF: Final = "silence a server's watch"
BREAK: Final = "break a server's watch"
ELECT: Final = "elect in etcd"
QUORUM: Final = "stop etcd's quorum"
COMPACT: Final = "compact etcd"
NOSPACE: Final = "fill etcd"
ROUGH: Final = "make etcd rough"
HOARD: Final = "keep a server's appends for later"
CLONE: Final = "clone a server"
# The last that is done to a world: nobody may serve it from then on.
RESTORE: Final = "restore an older etcd"

_ANY_FAULTS: Final = (
    CUT, CUT, CUT_REPLIES, CUT_REPLIES, PART, PAUSE_CLIENT, KILL_CLIENT, STOP, KILL, KILL, POWER,
    PAUSE, JUMP,
)  # fmt: skip
SINGLE_FAULTS: Final = (*_ANY_FAULTS, POWER, FULL, FAIL, FAIL, SLOW)
CLUSTER_FAULTS: Final = (
    *_ANY_FAULTS, PAUSE, UNLINK, UNLINK, MUTE, GAG, LAG, LAG, DEAF, BREAK, ELECT, QUORUM, COMPACT,
    NOSPACE, ROUGH, HOARD, CLONE,
)  # fmt: skip
# How long faults last, in seconds, with some variation; and those that may end a lease.
_SPANS: Final = (0.05, 0.5, 2.0, 6.0, 12.0)
_LONG: Final = (0.5, 4.0, 5.0, 8.0, 14.0)
_OF_LEASES: Final = (UNLINK, MUTE, GAG, LAG, PAUSE, QUORUM, NOSPACE, HOARD)

# How many delays of the network a session timeout has at least: with fewer, no client could live.
_DELAYS_MIN: Final = 20.0

# In how many worlds of several servers etcd is restored.
_RESTORED: Final = 0.08

# Where clients meet.
_PLACES: Final = ("/a", "/b", "/c", "/a/x", "/a/y", "/b/x", "/q")
_CONTAINERS: Final = ("/k", "/c/k")
_READS: Final = ("get", "exists", "children", "children2")


@dataclass(frozen=True, slots=True)
class Wish:
    """One call. `flags` are those of a create; a version is -1 for any.

    `close` ends the session, and `hop` leaves the server for the next one, whatever is in flight;
    `linger` does so, too, and leaves the connection open behind it.
    """

    name: str
    path: str = "/"
    data: str = ""
    version: int = -1
    flags: int = 0
    watch: bool = False
    steps: tuple[Wish, ...] = ()


@dataclass(frozen=True, slots=True)
class Burst:
    """Calls that are issued together, without waiting for each other, after a pause."""

    pause: float
    wishes: tuple[Wish, ...]


@dataclass(frozen=True, slots=True)
class ClientPlan:
    """A client, and what it does."""

    name: str
    # "raw" or "paddock".
    kind: str
    timeout: float
    bursts: tuple[Burst, ...]
    # How fast its clock runs.
    rate: float = 1.0
    # Whether it waits for the outcomes of a burst before the next, if it is a raw one.
    waits: bool = True


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that is done to a world at a moment, and undone later if it lasts."""

    at: float
    kind: str
    # A server or client by its number, counted from 1.
    target: int = 1
    seconds: float = 0.0
    # Another number, where a kind needs one.
    value: float = 0.0

    def __str__(self) -> str:
        lasting = f" for {self.seconds:.1f} s" if self.seconds else ""
        return f"{self.kind} ({self.target}){lasting}"


@dataclass(frozen=True, slots=True)
class Plan:
    """All of a world."""

    seed: int
    servers: int
    clients: tuple[ClientPlan, ...]
    faults: tuple[Fault, ...]
    # When the last fault is over.
    end: float
    # How long a message, and a sync of a disk, takes at most.
    delay_max: float
    sync_max: float
    # How often things go wrong between servers and etcd: 0 never, 1 often.
    roughness: float = 0.0
    # How fast the clock of each server runs.
    rates: tuple[float, ...] = ()

    def with_parts(self, clients: tuple[ClientPlan, ...], faults: tuple[Fault, ...]) -> Plan:
        return dataclasses.replace(self, clients=clients, faults=faults)

    @property
    def restoration(self) -> Fault | None:
        """How etcd is replaced by an older one at its end; None if it is not."""
        return next((fault for fault in self.faults if fault.kind == RESTORE), None)

    @property
    def is_calm(self) -> bool:
        """Whether nothing goes wrong in it."""
        return not self.faults and not self.roughness

    def size(self) -> int:
        """Return how much there is in it, for shrinking."""
        calls = sum(len(burst.wishes) for one in self.clients for burst in one.bursts)
        return len(self.faults) + len(self.clients) + calls

    def __str__(self) -> str:
        calls = sum(len(burst.wishes) for one in self.clients for burst in one.bursts)
        return (
            f"seed {self.seed}: {self.servers} servers, {len(self.clients)} clients,"
            f" {calls} calls, {len(self.faults)} faults"
        )


def make_plan(seed: int, servers: int = 1) -> Plan:
    """Return the plan of a seed."""
    draw = random.Random(f"{seed} plan {servers}")
    end = draw.choice((20.0, 40.0, 60.0))
    delay_max = draw.choice((0.001, 0.01, 0.05, 0.3))
    clients = tuple(
        _client(number, random.Random(f"{seed} client {number}"), end, delay_max * _DELAYS_MIN)
        for number in range(1, draw.randint(2, 5) + 1)
    )
    faults = _faults(random.Random(f"{seed} faults {servers}"), servers, clients, end)
    if servers > 1:
        faults += _restoration(random.Random(f"{seed} restoration"), end)
    return Plan(
        seed,
        servers,
        clients,
        faults,
        end,
        delay_max=delay_max,
        sync_max=draw.choice((0.001, 0.02, 0.2)),
        roughness=draw.choice((0.0, 0.0, 0.2, 1.0)) if servers > 1 else 0.0,
        rates=tuple(draw.choice((1.0, 1.1, 0.9)) for _ in range(servers)),
    )


def _client(number: int, draw: random.Random, end: float, timeout_min: float) -> ClientPlan:
    name = f"c{number}"
    kind = draw.choice(("raw", "raw", "paddock"))
    bursts: list[Burst] = []
    at, count = 0.0, 0
    # Some are quick, some slow: the slow ones live long through faults.
    pace = draw.choice((0.1, 0.5, 2.0))
    while at < end and len(bursts) < 60:
        pause = draw.expovariate(1 / pace)
        at += pause
        wishes = []
        for _ in range(draw.choice((1, 1, 2, 3, 8))):
            count += 1
            wish = _wish(draw, f"{name}-{count}")
            wishes.append(wish)
            if wish.name == "delete" and wish.path in _CONTAINERS:
                # Another one is there at once, perhaps before somebody notices.
                wishes.append(Wish("create", wish.path, wish.data, flags=4))
        bursts.append(Burst(round(pause, 4), tuple(wishes)))
    timeout = max(timeout_min, draw.choice((1.0, 1.0, 2.0, 4.0, 8.0, 15.0)))
    return ClientPlan(name, kind, timeout, tuple(bursts), waits=draw.random() < 0.5)


def _wish(draw: random.Random, mark: str) -> Wish:
    path = draw.choice(_PLACES)
    version = draw.choice((-1, -1, -1, 0, 1, 2))
    name = draw.choice(
        ("create", "create", "create", "set", "set", "set", "delete", "get", "get", "exists",
         "children", "children2", "sync", "multi", "ephemeral", "sequential", "add_watch",
         "remove_watches", "ephemerals", "multi_read", "container", "contained", "close", "hop",
         "linger")
    )  # fmt: skip
    if name == "close" and draw.random() < 0.5:
        name = "get"
    if name in ("hop", "linger"):
        return Wish(name)
    if name == "ephemeral":
        return Wish("create", draw.choice(("/e1", "/e2", "/a/e", "/c/e")), mark, flags=1)
    if name == "sequential":
        return Wish("create", "/q/n-", mark, flags=draw.choice((2, 3)))
    if name == "container":
        return Wish("create", draw.choice(_CONTAINERS), mark, flags=4)
    if name == "contained":
        # What comes and goes below a container, which is reaped when it is empty.
        path = draw.choice(_CONTAINERS)
        if draw.random() < 0.3:
            return Wish("delete", path, mark)
        return Wish(draw.choice(("create", "create", "delete")), f"{path}/x", mark)
    if name == "multi":
        steps = [_step(draw, f"{mark}.{number}") for number in range(1, draw.randint(1, 3) + 1)]
        return Wish("multi", steps=tuple(steps))
    if name == "multi_read":
        return Wish("multi_read", steps=(Wish("get", path), Wish("children", "/a")))
    if name == "add_watch":
        return Wish(name, draw.choice(("/", *_PLACES)), flags=draw.choice((0, 1)))
    if name in _READS:
        return Wish(name, path, watch=draw.random() < 0.5)
    return Wish(name, path, mark, version)


def _step(draw: random.Random, mark: str) -> Wish:
    path = draw.choice(_PLACES)
    name = draw.choice(("check", "set", "create", "delete"))
    version = draw.choice((-1, -1, 0, 1)) if name != "create" else -1
    flags = draw.choice((0, 0, 1, 2)) if name == "create" else 0
    return Wish(name, path, mark, version, flags)


def _faults(
    draw: random.Random, servers: int, clients: tuple[ClientPlan, ...], end: float
) -> tuple[Fault, ...]:
    found: list[Fault] = []
    for _ in range(draw.choice((0, 0, *range(1, 11)))):
        kind = draw.choice(SINGLE_FAULTS if servers == 1 else CLUSTER_FAULTS)
        of_clients = kind in (PART, PAUSE_CLIENT, KILL_CLIENT, CUT_REPLIES, CUT)
        spans = _LONG if kind in _OF_LEASES and servers > 1 else _SPANS
        target = draw.randint(1, len(clients) if of_clients else servers)
        seconds = draw.choice(spans) * draw.uniform(0.5, 1.5)
        if kind in (PART, PAUSE_CLIENT) and draw.random() < 0.5:
            # It comes back about when its session ends.
            seconds = clients[target - 1].timeout * draw.uniform(0.8, 1.3)
        at = round(draw.uniform(1, end), 4)
        fault = Fault(at, kind, target, round(seconds, 4), round(draw.random(), 4))
        found.append(fault)
        if not of_clients and draw.random() < 0.3:
            # A client that has to go elsewhere just then.
            at = fault.at + draw.uniform(0, 3)
            found.append(Fault(round(at, 4), CUT, draw.randint(1, len(clients)), 0.0, 0.5))
        if kind == LAG and draw.random() < 0.6:
            # It sends nothing more, until others depose it, and still hears of what it has sent.
            at = fault.at + draw.uniform(0, fault.seconds)
            seconds = round(draw.uniform(4, 8), 4)
            found.append(Fault(round(at, 4), GAG, target, seconds))
        elif kind in _OF_LEASES and servers > 1 and draw.random() < 0.3:
            # Troubles do not come alone.
            at = fault.at + draw.uniform(0, fault.seconds)
            again = draw.choice(_OF_LEASES)
            seconds = round(draw.choice(_LONG) * draw.uniform(0.5, 1.5), 4)
            value = round(draw.random(), 4)
            found.append(Fault(round(at, 4), again, fault.target, seconds, value))
        if kind in _OF_LEASES and servers > 1 and draw.random() < 0.3:
            # One that is not heard of again, while it is in doubt who has its session.
            at = fault.at + draw.uniform(0, 8)
            gone = draw.choice((KILL_CLIENT, PAUSE_CLIENT, PART))
            seconds = round(draw.choice(_LONG) * draw.uniform(0.5, 1.5), 4)
            found.append(Fault(round(at, 4), gone, draw.randint(1, len(clients)), seconds, 0.5))
    return tuple(sorted((fault for fault in found if fault.at < end), key=lambda one: one.at))


def _restoration(draw: random.Random, end: float) -> tuple[Fault, ...]:
    """Return at most one fault: a backup of etcd is made now, and all begins again with it later.

    It comes behind all others: what happens after it has nobody to happen to.
    """
    if draw.random() >= _RESTORED:
        return ()
    seconds = round(draw.uniform(1.0, 10.0), 4)
    return (Fault(end, RESTORE, 1, seconds, round(draw.random(), 4)),)
