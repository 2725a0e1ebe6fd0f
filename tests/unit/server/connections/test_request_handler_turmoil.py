"""Clients that do whatever they like, in an order that a seed decides, with limits that are tiny.

Whatever happens: a connection that is still there when all is over has every answer exactly once
and in its order, is read from again, and nothing is left of those that are gone.
"""

from __future__ import annotations

import random
from collections.abc import Callable

import pytest

from paddock.server.connections.request_handler import CLOSED, OPEN
from paddock.testing.clock import run_virtually
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.support.records import Request
from tests.unit.server.harness import FakeClient, Harness, encoded, turn

PIECE_BYTES_MAX = 3000
STEPS = 150
#: What has no number of its own: events and pings.
UNNUMBERED = (-1, -2)


class Restless:
    """A client that sends at random, through a transport that takes what it likes."""

    def __init__(self, client: FakeClient, chance: random.Random) -> None:
        self.client = client
        self.sent = 0
        self.answered: list[int] = []
        self._chance = chance
        # What has not reached the server yet.
        self._on_the_way = b""
        self._is_paused = False
        client.transport.on_write = self._maybe_pause

    @property
    def is_gone(self) -> bool:
        return self.client.handler.stage == CLOSED

    def ask(self) -> None:
        for _ in range(self._chance.choice([1, 3, 30])):
            request = self._request()
            if request is PING:
                self._on_the_way += encoded(-2, request)
            else:
                self.sent += 1
                self._on_the_way += encoded(self.sent, request)

    def advance(self) -> None:
        """Let some of what is on its way arrive, if the server reads."""
        if self.client.transport.is_reading_now:
            piece = self._chance.randint(1, PIECE_BYTES_MAX)
            arrived, self._on_the_way = self._on_the_way[:piece], self._on_the_way[piece:]
            if arrived:
                self.client.receive(arrived)

    def look(self) -> None:
        """Take down what was answered; a connection that is closed is lost then."""
        numbers = [xid for xid, _, _ in self.client.replies()]
        self.answered += [xid for xid in numbers if xid not in UNNUMBERED]
        assert self.answered == list(range(1, len(self.answered) + 1))

    def lose(self) -> None:
        self.client.connection.connection_lost(None)

    def take(self) -> None:
        """Read again, if it does not."""
        if self._is_paused:
            self._is_paused = False
            self.client.connection.resume_writing()

    def finish(self) -> bool:
        """Send and take what there still is; tell whether that was all."""
        self.client.transport.on_write = None
        self.take()
        self.advance()
        return not self._on_the_way

    def _maybe_pause(self) -> None:
        if not self._is_paused and self._chance.random() < 0.3:
            self._is_paused = True
            self.client.connection.pause_writing()

    def _request(self) -> Request:
        return self._chance.choice(REQUESTS)(self._chance)


PING = rq.ping()
REQUESTS: list[Callable[[random.Random], Request]] = [
    lambda _: PING,
    lambda _: rq.exists("/a", watch=True),
    lambda _: rq.get_children2("/", watch=True),
    lambda _: rq.get_data("/large", watch=True),
    lambda _: rq.get_data("/a"),
    lambda _: rq.get_data("/large"),
    lambda _: rq.add_watch("/", 1),
    lambda _: rq.get_all_children_number("/"),
    lambda _: rq.multi_read(rq.get_data("/large"), rq.get_children("/")),
    lambda _: rq.get_ephemerals("/"),
    lambda _: rq.set_watches(0, data=("/a", "/large"), child=("/",)),
    lambda _: rq.remove_watches("/a", 3),
    lambda _: rq.auth("digest", b"a:b"),
    lambda _: rq.set_data("/a", b"x"),
    lambda chance: rq.set_data("/large", bytes(chance.randint(0, 20_000))),
    lambda _: rq.create("/a", b""),
    lambda _: rq.delete("/a"),
    lambda _: rq.multi(rq.check("/large"), rq.set_data("/a", b"y")),
]


async def turmoil(seed: int, **limits: int) -> None:
    chance = random.Random(seed)
    harness = Harness(max_watches_per_session=5, **limits)
    first = await harness.client()
    first.send(rq.create("/large", bytes(20_000)))
    await harness.settle()
    first.replies()
    clients = [Restless(first, chance)]
    clients += [Restless(await harness.client(), chance) for _ in range(4)]
    for _ in range(STEPS):
        one = chance.choice(clients)
        match chance.randrange(12):
            case 0 | 1 | 2:
                one.ask()
            case 3 | 4 | 5 | 6:
                one.advance()
            case 7:
                one.take()
            case 8 | 9:
                if harness.proposer.outstanding() and harness.log.number is not None:
                    outcome = chance.choice([Durability.DURABLE] * 5 + [Durability.NOT_WRITTEN])
                    harness.log.settle(outcome)
                await turn()
            case 10:
                await turn()
            case 11 if chance.random() < 0.2:
                await come_again(harness, clients, one, chance)
        for each in clients:
            each.look()
        for gone in [each for each in clients if each.is_gone]:
            gone.lose()
            clients.remove(gone)
            clients.append(Restless(await harness.client(), chance))
    await settle_down(harness, clients)
    assert harness.service.backlog.size == 0
    for one in clients:
        one.look()
        assert one.client.handler.stage == OPEN
        assert len(one.answered) == one.sent
        assert one.client.transport.is_reading_now
        one.lose()
    check_that_nothing_is_left(harness)


async def come_again(
    harness: Harness, clients: list[Restless], one: Restless, chance: random.Random
) -> None:
    """Attach to a session from elsewhere, while its connection is still there, or cut it off."""
    clients.remove(one)
    if chance.random() < 0.5:
        one.lose()
        clients.append(Restless(await harness.client(), chance))
        return
    again = FakeClient(harness)
    await again.attach(one.client.session, one.client.password)
    await turn()
    assert again.session == one.client.session
    assert one.is_gone
    one.lose()
    clients.append(Restless(again, chance))


async def settle_down(harness: Harness, clients: list[Restless]) -> None:
    """Let everybody read, and answer until there is nothing more to answer."""
    for _ in range(2000):
        done = [one.finish() for one in clients]
        await harness.settle()
        held = any(one.client.handler._held for one in clients)
        if all(done) and not held and not harness.proposer.outstanding():
            return
    raise AssertionError("it never ends")


def check_that_nothing_is_left(harness: Harness) -> None:
    service = harness.service
    admission = service.admission
    assert admission.is_empty()
    assert service.backlog.size == 0
    for left in (
        admission.connections,
        admission._newcomers,
        admission._by_address,
        service.backpressure._paused,
        service.slow_peers._connections,
        service.partial_requests._by_connection,
    ):
        assert not left
    assert service.partial_requests._bytes == 0
    assert (harness.watches.data.size, harness.watches.child.size) == (0, 0)
    assert all(one.connection is None for one in service.tracker.all())
    assert not any(one.is_held for one in service.tracker.all())
    assert harness.proposer.outstanding() == 0
    assert harness.proposer._gathered.size == 0


LIMITS: list[dict[str, int]] = [
    {},
    {"max_requests": 3, "max_requests_per_connection": 2},
    {"max_request_bytes": 110_000, "max_request_bytes_per_connection": 10_000},
    {"max_requests": 1, "max_requests_per_connection": 1},
    {"max_reply_bytes_per_connection": 100_000},
    {"max_reply_bytes": 100_000, "max_requests": 5},
]


@pytest.mark.parametrize("limits", LIMITS, ids=lambda limits: "-".join(limits) or "none")
@pytest.mark.parametrize("seed", range(10))
def test_everybody_is_served_in_order_and_nothing_is_left(
    seed: int, limits: dict[str, int]
) -> None:
    run_virtually(turmoil(seed, **limits))
