"""The event loop's time, shared: in what order turns are taken, and when a pass ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from paddock.server.connections import turns
from paddock.server.connections.turns import PASS_SECONDS, SHORT_TURN_SECONDS, TURN_SECONDS, Turns


class Clock:
    """A clock that only turns move."""

    def __init__(self, loop: asyncio.AbstractEventLoop, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 0.0
        monkeypatch.setattr(loop, "time", lambda: self.now)


class Taker:
    """Takes so many turns, each of which lasts so long."""

    def __init__(self, name: str, told: list[str], times: int, last: Callable[[], None]) -> None:
        self.name = name
        self.told = told
        self.times = times
        self.last = last
        self.turns: Turns | None = None

    def take_turn(self) -> None:
        self.told.append(self.name)
        self.last()
        self.times -= 1
        if self.times:
            assert self.turns is not None
            self.turns.ask(self)


def scene(monkeypatch: pytest.MonkeyPatch, seconds: float, counts: dict[str, int]) -> list[str]:
    """Have takers ask for turns; return who had one, with a bar where the loop looked elsewhere."""
    told: list[str] = []

    async def scenario() -> None:
        clock = Clock(asyncio.get_running_loop(), monkeypatch)
        shared = Turns()

        def last() -> None:
            clock.now += seconds

        for name, times in counts.items():
            taker = Taker(name, told, times, last)
            taker.turns = shared
            shared.ask(taker)
        while len([one for one in told if one != "|"]) < sum(counts.values()):
            await asyncio.sleep(0)
            told.append("|")

    asyncio.run(scenario())
    return [one for at, one in enumerate(told) if one != "|" or told[at - 1] != "|"]


def test_turns_are_taken_in_the_order_in_which_they_were_asked_for(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = scene(monkeypatch, 0.0, {"a": 2, "b": 3, "c": 1})
    assert "".join(taken) == "abc|ab|b|"


def test_a_pass_ends_when_its_time_is_over_and_goes_on_where_it_was(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = scene(monkeypatch, PASS_SECONDS / 2, {"a": 2, "b": 2, "c": 1})
    assert "".join(taken) == "ab|ca|b|"


def test_one_turn_is_taken_in_each_pass_however_long_it_lasts(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    taken = scene(monkeypatch, 10 * PASS_SECONDS, {"a": 2, "b": 1})
    assert "".join(taken) == "a|b|a|"


def test_a_turn_is_shorter_while_others_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        clock = Clock(asyncio.get_running_loop(), monkeypatch)
        shared = Turns()
        assert shared.end() == clock.now + TURN_SECONDS
        shared.ask(Taker("a", [], 1, lambda: None))
        end = shared.end()
        assert end == clock.now + SHORT_TURN_SECONDS
        assert not shared.is_over(end)
        clock.now = end
        assert shared.is_over(end)
        await asyncio.sleep(0)

    asyncio.run(scenario())
    assert turns.SHORT_TURN_SECONDS < turns.TURN_SECONDS < turns.PASS_SECONDS


def test_long_reads_are_served_at_once_for_a_part_of_each_pass(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def scenario() -> None:
        clock = Clock(asyncio.get_running_loop(), monkeypatch)
        shared = Turns()
        for _ in range(3):
            assert shared.may_read()
            clock.now += PASS_SECONDS * 3 / 4
            assert shared.may_read()
            clock.now += PASS_SECONDS * 3 / 4
            assert not shared.may_read()
            await asyncio.sleep(0)

    asyncio.run(scenario())
