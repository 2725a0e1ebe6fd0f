"""How often the costly admin commands may be asked for, and that their tasks end."""

from __future__ import annotations

import asyncio

import pytest

from paddock.server.admin.rate_limits import WRONG_MAX, WRONG_SECONDS, Guesses, RateLimit, Tasks
from paddock.testing.clock import run_virtually


def test_once_in_an_interval() -> None:
    limit = RateLimit(10.0)
    assert [limit.wait(now) for now in (0.0, 4.0, 9.5, 10.0, 11.0)] == [0.0, 6.0, 0.5, 0.0, 9.0]


def test_an_interval_of_nothing_is_no_limit() -> None:
    limit = RateLimit(0.0)
    assert [limit.wait(5.0), limit.wait(5.0)] == [0.0, 0.0]


@pytest.mark.parametrize(("since", "then"), [(None, 0.0), (20.0, 9.0)])
def test_what_is_given_back_does_not_count_but_others_do(since: float | None, then: float) -> None:
    limit = RateLimit(10.0)
    limit.wait(0.0)
    if since is not None:
        limit.wait(since)
    limit.give_back(0.0)
    assert limit.wait(21.0 if since else 1.0) == then


def test_wrong_passwords_are_counted_by_address_and_by_network_of_ipv6() -> None:
    guesses = Guesses()
    for number in range(WRONG_MAX):
        assert guesses.wait("2001:db8::1", float(number)) == 0.0
        guesses.count(f"2001:db8::{number:x}", float(number))
        guesses.count("127.0.0.1", float(number))
    assert guesses.wait("2001:db8::ffff", 10.0) == WRONG_SECONDS - 10.0
    assert guesses.wait("::ffff:127.0.0.1", 10.0) == WRONG_SECONDS - 10.0
    assert guesses.wait("2001:db8:0:1::1", 10.0) == guesses.wait("127.0.0.2", 10.0) == 0.0
    # The oldest does not count any more; one more does.
    assert guesses.wait("127.0.0.1", WRONG_SECONDS) == 0.0
    guesses.count("127.0.0.1", WRONG_SECONDS)
    assert guesses.wait("127.0.0.1", WRONG_SECONDS) == 1.0


def test_the_memory_of_wrong_passwords_has_a_bound() -> None:
    guesses = Guesses()
    for _ in range(WRONG_MAX):
        guesses.count("10.0.0.1", 0.0)
    for number in range(5000):
        guesses.count(f"10.1.{number >> 8}.{number & 255}", 1.0)
    assert len(guesses._wrong) == 1000
    assert guesses.wait("10.0.0.1", 2.0) == 0.0


async def hang() -> None:
    await asyncio.Event().wait()


def test_what_is_left_at_the_end_is_cancelled_and_waited_for() -> None:
    async def scenario() -> None:
        tasks = Tasks()
        cleaned = []

        async def clean() -> None:
            try:
                await hang()
            finally:
                await asyncio.sleep(1)
                cleaned.append(True)

        task = tasks.start(clean())
        await asyncio.sleep(0)
        await tasks.end()
        assert (cleaned, task.cancelled(), len(tasks)) == ([True], True, 0)
        # With nothing to do it is over at once.
        await tasks.end(grace=5)

    run_virtually(scenario())


def test_what_ends_in_time_is_not_cancelled() -> None:
    async def scenario() -> None:
        tasks = Tasks()
        quick, slow = tasks.start(asyncio.sleep(4)), tasks.start(asyncio.sleep(6))
        await tasks.end(grace=5)
        assert (quick.cancelled(), slow.cancelled()) == (False, True)

    run_virtually(scenario())


def test_what_was_handed_over_ends_with_its_new_owner() -> None:
    async def scenario() -> None:
        first, second = Tasks(), Tasks()
        task = first.start(hang())
        first.hand_over(task, second)
        await first.end()
        assert (task in first, task in second, task.done()) == (False, True, False)
        await second.end()
        assert task.cancelled()

    run_virtually(scenario())
