"""The clock of a session, in virtual time."""

from __future__ import annotations

import asyncio
import math

from paddock.client.session.clock import SessionClock
from paddock.testing import VirtualClockLoop, run_virtually


class Heard:
    """A session that only takes note of what its clock says."""

    def __init__(self, timeout: float = 9.0) -> None:
        self.loop = asyncio.get_running_loop()
        self.told: list[tuple[float, str]] = []
        self.answers = 0
        self.clock = SessionClock(
            self.loop,
            timeout,
            ping=lambda: self.take("ping"),
            leave=self.take,
            on_overdue=lambda: self.take("overdue"),
            answered=lambda: self.answers,
        )

    def take(self, what: str) -> None:
        self.told.append((self.loop.time(), what))


def test_it_pings_after_a_third_of_silence_and_leaves_a_silent_server_after_two() -> None:
    async def scenario() -> None:
        heard = Heard()
        heard.clock.start()
        heard.clock.attach(heard.loop.time(), 9.0)
        await asyncio.sleep(8)
        assert heard.told == [(3.0, "ping"), (6.0, "the server went silent")]
        heard.clock.stop()

    run_virtually(scenario())


def test_whoever_talks_is_not_pinged_and_whoever_answers_is_not_left() -> None:
    async def scenario() -> None:
        heard = Heard()
        heard.clock.start()
        heard.clock.attach(heard.loop.time(), 9.0)
        for _ in range(20):
            await asyncio.sleep(2)
            heard.clock.sent_at = heard.clock.heard_at = heard.clock.confirmed_at = (
                heard.loop.time()
            )
        assert heard.told == []
        heard.clock.stop()

    run_virtually(scenario())


def test_an_answer_vouches_for_the_ping_that_it_answers_and_not_for_a_later_one() -> None:
    async def scenario() -> None:
        heard = Heard()
        heard.clock.start()
        heard.clock.attach(0.0, 9.0)
        await asyncio.sleep(3.5)
        heard.clock.heard_at = heard.loop.time()
        await asyncio.sleep(3)
        assert heard.told == [(3.0, "ping"), (6.0, "ping")]
        assert heard.clock.answer_ping()
        assert heard.clock.valid_until == 12.0
        assert heard.clock.answer_ping()
        assert heard.clock.valid_until == 15.0
        assert not heard.clock.answer_ping()
        heard.clock.stop()

    run_virtually(scenario())


def test_it_is_overdue_one_timeout_after_the_last_answered_request_was_sent() -> None:
    async def scenario() -> None:
        heard = Heard()
        assert heard.clock.valid_until == -math.inf
        heard.clock.start()
        await asyncio.sleep(2)
        heard.clock.attach(1.0, 9.0)
        heard.clock.confirmed_at = 1.5
        heard.clock.detach()
        await asyncio.sleep(60)
        assert heard.told == [(10.5, "overdue")]
        assert heard.clock.is_overdue
        heard.clock.stop()

    run_virtually(scenario())


def test_a_server_that_sends_but_answers_nothing_is_left() -> None:
    async def scenario() -> None:
        heard = Heard()
        heard.clock.start()
        heard.clock.attach(0.0, 9.0)
        for _ in range(20):
            await asyncio.sleep(1)
            heard.clock.heard_at = heard.loop.time()
        told = [one for one in heard.told if one[1] != "ping"]
        assert told == [(9.0, "overdue"), (15.0, "the server answers nothing")]
        heard.clock.stop()

    run_virtually(scenario())


def test_a_server_whose_answers_come_late_is_not_left_while_they_come() -> None:
    async def scenario() -> None:
        heard = Heard()
        heard.clock.start()
        heard.clock.attach(0.0, 9.0)
        for second in range(60):
            await asyncio.sleep(1)
            heard.clock.heard_at = heard.loop.time()
            heard.answers += second < 30
        told = [one for one in heard.told if one[1] != "ping"]
        # It is looked at every six seconds; between the last two nothing was answered.
        assert told == [(9.0, "overdue"), (39.0, "the server answers nothing")]
        heard.clock.stop()

    run_virtually(scenario())


def test_silence_does_not_count_while_the_loop_stood_still() -> None:
    async def scenario() -> None:
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        heard = Heard()
        heard.clock.start()
        heard.clock.attach(0.0, 9.0)
        await asyncio.sleep(1)
        loop.stall(7)
        await asyncio.sleep(0.5)
        # It asks, and gives the server the time that an answer may take.
        assert heard.told == [(8.0, "ping")]
        await asyncio.sleep(2.4)
        assert [what for _, what in heard.told] == ["ping", "overdue"]
        await asyncio.sleep(0.2)
        assert heard.told[-1] == (11.0, "the server went silent")
        heard.clock.stop()

    run_virtually(scenario())


def test_an_old_answer_does_not_end_being_overdue_and_a_new_one_does() -> None:
    async def scenario() -> None:
        heard = Heard()
        heard.clock.start()
        heard.clock.attach(0.0, 9.0)
        loop = asyncio.get_running_loop()
        assert isinstance(loop, VirtualClockLoop)
        loop.stall(20)
        await asyncio.sleep(1)
        assert heard.clock.is_overdue
        heard.clock.confirmed_at = 5.0
        assert not heard.clock.recover()
        assert heard.clock.answer_ping()
        assert heard.clock.recover()
        assert heard.clock.valid_until == 29.0
        heard.clock.stop()

    run_virtually(scenario())
