"""The recipes that are measured: kazoo's and ours, in turn on the same server.

`recipe_load` measures the operations per second, and `lock_growth` the messages of a lock hand-over
by the number of waiters.
"""

import json
from dataclasses import dataclass
from typing import Final

from bench.clients import BLOCKING, KAZOO, PADDOCK, PLAIN, Job, Need, output_of
from bench.servers import BenchError, Server

# It can lose items, so it is measured for information only.
KAZOO_QUEUE: Final = "kazoo, Queue"
CLIENTS: Final = (KAZOO, PADDOCK, PLAIN, BLOCKING, KAZOO_QUEUE)

SEVERAL: Final = 10
QUEUE_OPS: Final = ("put", "take", "pass")
_NAMES: Final = {
    ("lock", 1): "lock cycle, uncontended",
    ("lock", SEVERAL): f"lock cycle, {SEVERAL} contenders",
    ("put", 1): "queue: put, one producer",
    ("take", 1): "queue: take, acknowledge, one consumer",
    ("pass", 1): "queue: put, take, acknowledge, one",
    ("put", SEVERAL): f"queue: put, {SEVERAL} producers",
    ("take", SEVERAL): f"queue: take, acknowledge, {SEVERAL} consumers",
    ("pass", SEVERAL): f"queue: put, take, acknowledge, {SEVERAL} at once",
    ("elect", SEVERAL): f"election hand-over, {SEVERAL} candidates",
}

WAITERS: Final = (10, 50, 100, 250, 500)


@dataclass(frozen=True, slots=True)
class RecipeTask(Job):
    """An operation of a recipe, and the number of participants; each has its own client."""

    count: int

    @property
    def row(self) -> str:
        return _NAMES[self.op, self.count]

    @property
    def clients(self) -> tuple[str, ...]:
        return CLIENTS if self.op in QUEUE_OPS else CLIENTS[:-1]

    def command(self, client: str) -> list[str]:
        return ["bench.recipe_load", client, self.op, str(self.count)]


def tasks(servers: list[str]) -> list[RecipeTask]:
    return [RecipeTask(server, op, count) for server in servers for op, count in _NAMES]


# A put is one write with both: the server's disk decides, so it is for information only.
_TIMES_KAZOO: Final = {"lock": 3.0, "take": 2.0, "pass": 2.0, "elect": 1.0}
_AIMS: Final = {"lock": 5.0}
NEEDS: Final = (
    *(
        Need(PADDOCK, task, times=_TIMES_KAZOO[task.op], aim=_AIMS.get(task.op))
        for task in tasks(["apache"])
        if task.op in _TIMES_KAZOO
    ),
    Need(BLOCKING, RecipeTask("apache", "lock", 1), times=2.0, aim=2.5),
)


@dataclass(frozen=True, slots=True)
class Growth:
    """The messages of one lock hand-over, on the connections of all contenders."""

    requests: float
    replies: float
    events: float
    # Bytes of requests and replies.
    bytes: float

    @property
    def messages(self) -> float:
        return self.requests + self.replies + self.events


@dataclass(frozen=True, slots=True)
class Line:
    """A lock hand-over: the client, the server, and the number of waiters at the beginning."""

    server: str
    client: str
    waiters: int


Growths = dict[Line, Growth]


def lines(servers: list[str]) -> list[Line]:
    return [
        Line(server, client, waiters)
        for server in servers
        for client in (KAZOO, PADDOCK)
        for waiters in WAITERS
    ]


def grow(server: Server, line: Line) -> Growth:
    """Count the messages of hand-overs with so many waiters."""
    command = ["bench.lock_growth", line.client, str(line.waiters), str(server.port)]
    said = output_of(command, f"{line.client}: {line.waiters} waiters", 300)
    try:
        return Growth(**json.loads(said))
    except (ValueError, TypeError):
        raise BenchError(f"a client said {said.strip()!r}") from None


def is_constant(growths: Growths, server: str, client: str) -> bool | None:
    """Return whether the messages do not grow with the waiters; None if it is unknown."""
    found = [
        growth.messages
        for line, growth in growths.items()
        if (line.server, line.client) == (server, client)
    ]
    if len(found) < 2:
        return None
    # A holder that leaves before its last reply saves a message or two.
    return max(found) - min(found) < 1
