"""Answers of any length: their pieces, turns for others, and who does not take them."""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Iterator

import pytest

from paddock.server.connections.paced_writer import PacedWriter, in_pieces
from tests.unit.server.harness import FakeTransport, run, turn

TIMEOUT = 10.0


class Answer:
    """Pieces that are counted when they are made."""

    def __init__(self, count: int) -> None:
        self.made = 0
        self.transport = FakeTransport()
        self.is_done = False
        self.stream = PacedWriter(self.transport, self._pieces(count), TIMEOUT, self._done)

    def _pieces(self, count: int) -> Iterator[bytes]:
        for number in range(count):
            self.made += 1
            yield b"%d," % number

    def _done(self) -> None:
        self.is_done = True


def test_all_pieces_are_sent_in_order_and_then_it_is_done() -> None:
    async def scenario() -> None:
        answer = Answer(30)
        answer.stream.start()
        while not answer.is_done:
            await turn()
        assert answer.transport.written == b"".join(b"%d," % number for number in range(30))
        await asyncio.sleep(3 * TIMEOUT)
        assert answer.transport.is_open

    run(scenario)


def test_others_get_their_turn_between_two_pieces() -> None:
    async def scenario() -> None:
        answer = Answer(10)
        made: list[int] = []

        def look() -> None:
            made.append(answer.made)
            if not answer.is_done:
                asyncio.get_running_loop().call_soon(look)

        answer.stream.start()
        look()
        while not answer.is_done:
            await turn()
        assert made == sorted(made)
        assert max(later - earlier for earlier, later in itertools.pairwise(made)) == 1

    run(scenario)


def test_nothing_is_made_for_somebody_who_does_not_take_it() -> None:
    async def scenario() -> None:
        answer = Answer(1000)
        answer.transport.on_write = answer.stream.pause
        answer.stream.start()
        await turn()
        assert answer.made == 1
        answer.transport.on_write = None
        answer.stream.resume()
        while not answer.is_done:
            await turn()
        assert answer.made == 1000

    run(scenario)


def test_whoever_takes_nothing_is_disconnected() -> None:
    async def scenario() -> None:
        answer = Answer(1000)
        answer.stream.start()
        answer.stream.pause()
        answer.transport.waiting_bytes = len(answer.transport.written)
        await asyncio.sleep(TIMEOUT + 1)
        assert (answer.transport.is_open, answer.is_done) == (False, False)

    run(scenario)


def test_whoever_takes_a_little_may_go_on() -> None:
    async def scenario() -> None:
        answer = Answer(1000)
        answer.stream.start()
        for _ in range(50):
            await turn()
        answer.stream.pause()
        answer.transport.waiting_bytes = len(answer.transport.written)
        for _ in range(20):
            answer.transport.waiting_bytes -= 1
            await asyncio.sleep(TIMEOUT)
        still_open = answer.transport.is_open
        await asyncio.sleep(2 * TIMEOUT)
        assert (still_open, answer.transport.is_open) == (True, False)

    run(scenario)


def test_an_answer_that_cannot_be_made_ends_the_connection(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def pieces() -> Iterator[bytes]:
        yield b"so far"
        raise RuntimeError("no further")

    async def scenario() -> None:
        transport = FakeTransport()
        PacedWriter(transport, pieces(), TIMEOUT, lambda: None).start()
        await turn()
        assert transport.written == b"so far"
        assert not transport.is_open

    with caplog.at_level(logging.ERROR):
        run(scenario)
    assert "no further" in caplog.text


def test_after_a_stop_nothing_more_is_made() -> None:
    async def scenario() -> None:
        answer = Answer(1000)
        answer.stream.start()
        answer.stream.stop()
        answer.stream.resume()
        await turn()
        assert (answer.made, answer.is_done) == (1, False)

    run(scenario)


def test_short_texts_become_pieces_of_a_bounded_size() -> None:
    pieces = list(in_pieces("x" * 100 for _ in range(10_000)))
    assert b"".join(pieces) == b"x" * 1_000_000
    assert max(map(len, pieces)) < 20_000
    assert len(pieces) < 200


def test_making_nothing_for_long_gives_others_their_turn() -> None:
    assert len(list(in_pieces("" for _ in range(10_000)))) > 10
