"""When containers and TTL nodes are over, in virtual time."""

from __future__ import annotations

import asyncio

from paddock.server.sessions.reaper import LOOKS_IN_A_STEP, Reaper
from paddock.testing.clock import run_virtually
from tests.support import requests as rq
from tests.support.records import Request
from tests.unit.server.harness import FakeClient, Harness

INTERVAL = 60.0


class World:
    """A harness with a reaper, whose clocks go together."""

    def __init__(self, **settings: int) -> None:
        self.harness = Harness(**settings)
        self.client = FakeClient(self.harness)
        self._reaper = Reaper(
            self.harness.proposer,
            self.harness.machine.tree,
            self.harness.service.config,
            self._time_ms,
        )
        # The steps in which it has looked through the nodes: it reads the time in each.
        self.steps = 0

    def _time_ms(self) -> int:
        self.steps += 1
        return self.harness.wall_ms

    async def start(self) -> None:
        await self.client.attach()
        self._reaper.start()

    async def wait(self, seconds: float) -> None:
        """Let time pass, second by second."""
        for _ in range(int(seconds)):
            self.harness.wall_ms += 1000
            await asyncio.sleep(1)
            await self.harness.settle()

    async def do(self, *requests: Request) -> None:
        self.client.send(*requests)
        await self.harness.settle()
        assert [error for _, error, _ in self.client.replies()] == [0] * len(requests)

    def has(self, path: bytes) -> bool:
        return path in self.harness.machine.tree.nodes

    def stop(self) -> None:
        self._reaper.stop()


def test_a_container_goes_when_its_last_child_has_gone() -> None:
    async def scenario() -> None:
        world = World()
        await world.start()
        await world.do(rq.create_container("/c"), rq.create("/c/n"))
        await world.wait(2 * INTERVAL)
        assert world.has(b"/c")
        await world.do(rq.delete("/c/n"))
        await world.wait(INTERVAL)
        assert not world.has(b"/c")
        world.stop()

    run_virtually(scenario())


def test_a_container_that_never_had_a_child_stays() -> None:
    async def scenario() -> None:
        world = World()
        await world.start()
        await world.do(rq.create_container("/c"))
        await world.wait(3 * INTERVAL)
        assert world.has(b"/c")
        world.stop()

    run_virtually(scenario())


def test_a_container_that_never_had_a_child_goes_if_that_is_wanted() -> None:
    async def scenario() -> None:
        world = World(max_unused_container_ms=100_000)
        await world.start()
        await world.do(rq.create_container("/c"))
        await world.wait(99)
        assert world.has(b"/c")
        await world.wait(INTERVAL)
        assert not world.has(b"/c")
        world.stop()

    run_virtually(scenario())


def test_how_many_go_in_a_minute_can_be_set() -> None:
    async def scenario() -> None:
        world = World(max_containers_per_minute=10, container_check_interval_ms=30_000)
        await world.start()
        await world.do(*(rq.create_ttl(f"/n{number}", 1) for number in range(12)))
        await world.wait(INTERVAL)
        assert len(world.harness.machine.tree.ttls) == 2
        world.stop()

    run_virtually(scenario())


def test_a_ttl_node_goes_when_nobody_wrote_to_it_for_so_long() -> None:
    async def scenario() -> None:
        world = World()
        await world.start()
        await world.do(rq.create_ttl("/t", ttl_ms=90_000))
        await world.wait(60)
        await world.do(rq.set_data("/t", b"still here"))
        await world.wait(89)
        assert world.has(b"/t")
        await world.wait(INTERVAL + 2)
        assert not world.has(b"/t")
        world.stop()

    run_virtually(scenario())


def test_a_ttl_node_stays_while_it_has_children() -> None:
    async def scenario() -> None:
        world = World()
        await world.start()
        await world.do(rq.create_ttl("/t", ttl_ms=1), rq.create("/t/n"))
        await world.wait(2 * INTERVAL)
        assert world.has(b"/t")
        await world.do(rq.delete("/t/n"))
        await world.wait(INTERVAL)
        assert not world.has(b"/t")
        world.stop()

    run_virtually(scenario())


def test_a_write_that_comes_first_saves_the_node() -> None:
    async def scenario() -> None:
        world = World()
        await world.start()
        await world.do(rq.create_ttl("/t", ttl_ms=1))
        world.client.send(rq.set_data("/t", b"saved"))
        # The decision is made while the write is under way, on the node as it was.
        world.harness.wall_ms += 60_000
        await asyncio.sleep(INTERVAL)
        await world.harness.settle()
        assert world.has(b"/t")
        world.stop()

    run_virtually(scenario())


def test_of_very_many_nodes_that_are_over_only_some_go_at_once() -> None:
    async def scenario() -> None:
        world = World()
        await world.start()
        for first in range(0, 10_001, 1_000):
            numbers = range(first, min(first + 1_000, 10_001))
            await world.do(*(rq.create_ttl(f"/n{number}", 1) for number in numbers))
        await world.wait(INTERVAL)
        assert len(world.harness.machine.tree.ttls) == 1
        await world.wait(INTERVAL)
        assert not world.harness.machine.tree.ttls
        world.stop()

    run_virtually(scenario())


def test_ends_do_not_pile_up_while_the_log_is_broken() -> None:
    async def scenario() -> None:
        world = World()
        await world.start()
        await world.do(rq.create_ttl("/t", ttl_ms=1))
        world.harness.wall_ms += 1_000_000
        # Nothing is settled for a long time; then the node goes, and nothing is left to do.
        await asyncio.sleep(20_000 * INTERVAL)
        assert world.harness.proposer.outstanding() <= 10_000
        await world.harness.settle()
        assert not world.has(b"/t")
        world.stop()

    run_virtually(scenario())


def test_very_many_nodes_are_looked_at_in_steps_between_which_others_have_their_turn() -> None:
    async def scenario() -> None:
        world = World()
        await world.start()
        count = 3 * LOOKS_IN_A_STEP
        await world.do(*(rq.create_ttl(f"/n{number}", 1_000_000) for number in range(count)))
        turns: list[int] = []

        def turn() -> None:
            turns.append(world.steps)
            if len(turns) < 4:
                asyncio.get_running_loop().call_soon(turn)

        asyncio.get_running_loop().call_later(INTERVAL, turn)
        await world.wait(INTERVAL + 1)
        assert world.steps == 3
        # One turn before the first step, and one behind each.
        assert turns == [0, 1, 2, 3]
        world.stop()

    run_virtually(scenario())


def test_what_is_over_goes_in_one_round_although_nodes_come_and_go_between_its_steps() -> None:
    async def scenario() -> None:
        world = World(container_check_interval_ms=60_000, max_containers_per_minute=100_000)
        await world.start()
        count = 4 * LOOKS_IN_A_STEP
        await world.do(*(rq.create_ttl(f"/n{number}", 1) for number in range(count)))
        await world.do(*(rq.create_ttl(f"/kept{number}", 1_000_000) for number in range(500)))
        world.harness.wall_ms += 60_000
        await asyncio.sleep(INTERVAL)
        assert 0 < world.steps < 5
        # Between two steps: some of the first are deleted, and others created.
        await world.do(
            *(rq.delete(f"/n{number}") for number in range(0, 500, 5)),
            *(rq.create_ttl(f"/new{number}", 1_000_000) for number in range(300)),
        )
        await world.harness.settle()
        names = {path[1:4] for path in world.harness.machine.tree.ttls}
        assert names == {b"kep", b"new"}
        world.stop()

    run_virtually(scenario())


def test_many_containers_that_are_over_do_not_keep_ttl_nodes_waiting_for_ever() -> None:
    async def scenario() -> None:
        world = World(max_containers_per_minute=10)
        await world.start()
        await world.do(rq.create_ttl("/t", 1))
        for number in range(4):
            # In each round as many containers are over as may go in it.
            for name in (f"/c{number}-{one}" for one in range(10)):
                await world.do(
                    rq.create_container(name), rq.create(f"{name}/n"), rq.delete(f"{name}/n")
                )
            await world.wait(INTERVAL)
        assert not world.has(b"/t")
        world.stop()

    run_virtually(scenario())
