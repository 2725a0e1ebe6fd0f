"""What signals do to a process that waits, and that runs a command."""

import asyncio
import os
import signal

import pytest

from paddock.cli.run_under.signals import Signals, run_with_signals


class Command:
    """One that takes down what it gets, and says when that is enough."""

    def __init__(self, last: int) -> None:
        self.got: list[int] = []
        self.over = asyncio.Event()
        self._last = last

    def pass_on(self, number: int) -> None:
        self.got.append(number)
        if number == self._last:
            self.over.set()


def passed_on(*numbers: int, shares_terminal: bool) -> tuple[list[int], int | None]:
    """Send ourselves signals while a command runs; give what it got, and the one that ends us."""

    async def work(signals: Signals) -> int:
        command = Command(numbers[-1])
        with signals.passed_on_to(command, shares_terminal=shares_terminal):
            for number in numbers:
                os.kill(os.getpid(), number)
            await command.over.wait()
        found.extend(command.got)
        return signals.asked_to_end or 0

    found: list[int] = []
    asked = asyncio.run(run_with_signals(work))
    return found, asked or None


def test_a_command_gets_what_we_get() -> None:
    numbers = [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM, signal.SIGUSR1]
    got, asked = passed_on(*numbers, shares_terminal=False)
    assert got == numbers
    assert asked == signal.SIGINT


def test_what_the_terminal_sends_to_both_is_not_passed_on() -> None:
    numbers = [signal.SIGINT, signal.SIGQUIT, signal.SIGTERM]
    got, asked = passed_on(*numbers, shares_terminal=True)
    assert got == [signal.SIGTERM]
    # SIGINT counts as a request to end all the same.
    assert asked == signal.SIGINT


def test_what_does_not_end_a_process_asks_for_no_end() -> None:
    assert passed_on(signal.SIGUSR1, shares_terminal=False) == ([signal.SIGUSR1], None)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGUSR2])
def test_without_a_command_a_signal_ends_us_in_good_order(number: int) -> None:
    cleaned_up = []

    async def work(signals: Signals) -> int:
        os.kill(os.getpid(), number)
        try:
            await asyncio.Event().wait()
        finally:
            cleaned_up.append(True)
        return 0

    assert asyncio.run(run_with_signals(work)) == 128 + number
    assert cleaned_up == [True]


def test_what_is_cancelled_by_somebody_else_is_cancelled() -> None:
    async def work(signals: Signals) -> int:
        raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(run_with_signals(work))
