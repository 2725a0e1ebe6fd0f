"""What the service makes of a system's clock that jumps, with both clocks driven by hand."""

from __future__ import annotations

import logging

import pytest

from paddock.server.replication.service_clock import ServiceClock

DAY_MS = 86_400_000
BEGUN_MS = 1_700_000_000_000


class Clocks:
    """A system's clock, and the time that really passes."""

    def __init__(self) -> None:
        self.wall_ms = BEGUN_MS
        self.seconds = 5000.0

    def clock(self, last_stamp_ms: int = 0) -> ServiceClock:
        return ServiceClock(lambda: self.wall_ms, lambda: self.seconds, last_stamp_ms)

    def pass_ms(self, milliseconds: int) -> None:
        self.seconds += milliseconds / 1000
        self.wall_ms += milliseconds


def messages(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [one.getMessage() for one in caplog.records if one.levelno == logging.WARNING]


def test_it_follows_a_clock_that_goes_as_time_passes(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    clock = clocks.clock()
    for step_ms in (0, 1, 10, 1000, 60_000, DAY_MS):
        clocks.pass_ms(step_ms)
        assert clock.time_ms() == clocks.wall_ms
    # Corrections of the clock are not worth a word.
    clocks.wall_ms += 900
    assert clock.time_ms() == clocks.wall_ms
    assert messages(caplog) == []


def test_a_jump_ahead_for_a_second_is_not_believed(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    clock = clocks.clock()
    clocks.wall_ms += DAY_MS
    for _ in range(10):
        clocks.pass_ms(100)
        assert clock.time_ms() == clocks.wall_ms - DAY_MS
    clocks.wall_ms -= DAY_MS
    clocks.pass_ms(100)
    assert clock.time_ms() == clocks.wall_ms
    (said,) = messages(caplog)
    assert said == (
        "the system's clock is 86400.0 s ahead of the time that has passed; it is followed if it"
        " stays so for 60 s"
    )


def test_a_jump_ahead_that_stays_is_followed_after_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clocks = Clocks()
    clock = clocks.clock()
    clocks.wall_ms += DAY_MS
    for _ in range(60):
        assert clock.time_ms() == clocks.wall_ms - DAY_MS
        clocks.pass_ms(1000)
    assert clock.time_ms() == clocks.wall_ms
    assert messages(caplog)[1:] == [
        "the system's clock has stayed 86400.0 s ahead, and is followed now"
    ]


def test_a_clock_that_jumps_about_is_followed_only_once_it_stays(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clocks = Clocks()
    clock = clocks.clock()
    real_ms = clocks.wall_ms
    for number in range(10):
        clocks.wall_ms = real_ms + (number % 2 + 1) * DAY_MS
        assert clock.time_ms() == real_ms
        clocks.pass_ms(30_000)
        real_ms += 30_000
    assert len(messages(caplog)) == 1


def test_a_second_jump_is_told_of_again(caplog: pytest.LogCaptureFixture) -> None:
    clocks = Clocks()
    clock = clocks.clock()
    for _ in range(2):
        clocks.wall_ms += DAY_MS
        clock.time_ms()
        clocks.wall_ms -= DAY_MS
        clock.time_ms()
    assert len(messages(caplog)) == 2


def test_while_the_clock_is_behind_time_goes_a_tenth_slower_until_it_has_caught_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clocks = Clocks()
    clock = clocks.clock()
    before_ms = clock.time_ms()
    clocks.wall_ms -= 10_000
    for _ in range(100):
        clocks.pass_ms(1000)
        before_ms += 900
        assert abs(clock.time_ms() - before_ms) <= 1
    # 10 s behind, and 10 s were gained in 100.
    clocks.pass_ms(1000)
    assert clock.time_ms() == clocks.wall_ms
    (said,) = messages(caplog)
    assert said.startswith("the system's clock is 9.9 s behind the last stamp")


def test_stamps_a_day_ahead_of_a_restart_neither_come_again_nor_stay_for_ever() -> None:
    clocks = Clocks()
    stamp_ms = clocks.wall_ms + DAY_MS
    clock = clocks.clock(stamp_ms)
    assert clock.time_ms() == stamp_ms
    # A TTL of an hour takes an hour and seven minutes at most.
    clocks.pass_ms(3_600_000)
    assert clock.time_ms() == stamp_ms + 3_240_000
    for _ in range(10 * 24):
        clocks.pass_ms(3_600_000)
        clock.time_ms()
    assert clock.time_ms() == clocks.wall_ms


def test_after_a_long_stop_the_clock_is_believed_at_once(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clocks = Clocks()
    clock = clocks.clock(clocks.wall_ms - 100 * DAY_MS)
    assert clock.time_ms() == clocks.wall_ms
    assert messages(caplog) == []


def test_readings_that_are_microseconds_apart_add_up() -> None:
    clocks = Clocks()
    clock = clocks.clock(clocks.wall_ms + DAY_MS)
    began_ms = clock.time_ms()
    for _ in range(10_000):
        clocks.seconds += 0.0001
        clock.time_ms()
    assert abs(clock.time_ms() - began_ms - 900) <= 1


def test_it_never_goes_back() -> None:
    clocks = Clocks()
    clock = clocks.clock()
    last_ms = clock.time_ms()
    for jump_ms in (DAY_MS, -DAY_MS, -DAY_MS, 5_000, 2 * DAY_MS, -1, 1, -10 * DAY_MS):
        clocks.wall_ms += jump_ms
        for _ in range(100):
            clocks.pass_ms(1000)
            now_ms = clock.time_ms()
            assert now_ms >= last_ms
            last_ms = now_ms


def test_what_is_a_jump_depends_on_how_long_nobody_looked() -> None:
    """A corrected clock gains a hundredth of the time at most, and a second at once."""
    for passed_ms, gained_ms, is_followed in (
        (0, 999, True),
        (0, 1_001, False),
        (3_600_000, 36_000, True),
        (3_600_000, 38_000, False),
    ):
        clocks = Clocks()
        clock = clocks.clock()
        clocks.pass_ms(passed_ms)
        clocks.wall_ms += gained_ms
        assert (clock.time_ms() == clocks.wall_ms) is is_followed, (passed_ms, gained_ms)


def test_after_a_restart_a_jump_ahead_is_not_believed_either() -> None:
    clocks = Clocks()
    stamp_ms = clocks.wall_ms + 10_000
    clock = clocks.clock(stamp_ms)
    clocks.wall_ms += DAY_MS
    clocks.pass_ms(1000)
    assert clock.time_ms() == stamp_ms + 1000


def test_that_the_clock_is_behind_the_log_is_told_at_the_start(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clocks = Clocks()
    clocks.clock(clocks.wall_ms + DAY_MS)
    (said,) = messages(caplog)
    assert said.startswith("the system's clock is 86400.0 s behind the last stamp")


def test_that_the_clock_is_behind_is_told_again_after_it_has_caught_up(
    caplog: pytest.LogCaptureFixture,
) -> None:
    clocks = Clocks()
    clock = clocks.clock()
    for _ in range(2):
        clocks.wall_ms -= 5_000
        clock.time_ms()
        clocks.wall_ms += 5_000
        clock.time_ms()
    assert len(messages(caplog)) == 2


def test_it_does_not_go_back_with_the_clock_that_should_not() -> None:
    clocks = Clocks()
    clock = clocks.clock(clocks.wall_ms + DAY_MS)
    before_ms = clock.time_ms()
    clocks.seconds -= 10
    assert clock.time_ms() == before_ms
