"""Requests that are not answered: their order, their numbers, and a connection lost with them."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Iterator

import pytest

from paddock.client.requests import decoding
from paddock.client.requests.in_flight import InFlight
from paddock.client.requests.pending_request import Failure, PendingRequest
from paddock.errors import ConnectionLostError, SessionExpiredError
from paddock.protocol import opcodes


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


def call(
    loop: asyncio.AbstractEventLoop, body: bytes = b"", *, repeatable: bool = True
) -> PendingRequest[None]:
    return PendingRequest(
        opcodes.SYNC, body, "/a", decoding.nothing, loop.create_future(), repeatable
    )


def numbers_of(frames: bytes) -> list[int]:
    """Return the xid of each request that is sent."""
    found = []
    while frames:
        length, xid, operation = struct.unpack_from(">iii", frames)
        assert operation == opcodes.SYNC
        found.append(xid)
        frames = frames[4 + length :]
    return found


def test_requests_are_numbered_as_they_are_sent_and_nobody_who_gave_up_has_a_number(
    loop: asyncio.AbstractEventLoop,
) -> None:
    requests = InFlight()
    first, given_up, second = (call(loop, b"body") for _ in range(3))
    requests.unsent.extend([first, given_up, second])
    given_up.future.cancel()
    assert numbers_of(requests.take(1.5)) == [1, 2]
    assert [*requests.sent] == [first, second]
    assert (first.sent_at, second.sent_at, given_up.xid) == (1.5, 1.5, 0)
    assert requests.take(1.5) == b""


def test_after_the_last_number_comes_the_first(loop: asyncio.AbstractEventLoop) -> None:
    last = 2**31 - 1
    requests = InFlight(last - 2)
    requests.unsent.extend(call(loop) for _ in range(3))
    assert numbers_of(requests.take(0)) == [last - 1, last, 1]


def test_one_write_takes_no_more_than_it_is_for(loop: asyncio.AbstractEventLoop) -> None:
    requests = InFlight()
    requests.unsent.extend(call(loop, bytes(100_000)) for _ in range(5))
    assert [numbers_of(requests.take(0)) for _ in range(3)] == [[1, 2, 3], [4, 5], []]


def test_what_may_be_repeated_is_sent_again_before_what_was_not_sent(
    loop: asyncio.AbstractEventLoop,
) -> None:
    requests = InFlight()
    read, write, waiting = call(loop), call(loop, repeatable=False), call(loop, repeatable=False)
    requests.unsent.extend([read, write])
    requests.take(0)
    requests.unsent.append(waiting)
    requests.lose_connection(was_of_use=True)
    assert [*requests.unsent] == [read, waiting]
    assert not requests.sent
    assert isinstance(write.future.exception(), ConnectionLostError)
    assert (read.losses, waiting.losses) == (1, 0)


def test_what_only_waits_for_a_server_that_drops_us_is_given_up_in_the_end(
    loop: asyncio.AbstractEventLoop,
) -> None:
    requests = InFlight()
    waiting = call(loop, repeatable=False)
    requests.unsent.append(waiting)
    for _ in range(100):
        requests.lose_connection(was_of_use=True)
    for _ in range(9):
        requests.lose_connection(was_of_use=False)
    assert [*requests.unsent] == [waiting]
    requests.lose_connection(was_of_use=False)
    assert not requests.unsent
    error = waiting.future.exception()
    assert isinstance(error, ConnectionLostError)
    assert "it was not sent" in str(error)
    assert not error.may_be_applied


def test_of_what_was_never_sent_more_is_known(loop: asyncio.AbstractEventLoop) -> None:
    requests = InFlight()
    sent_once, never_sent = call(loop), call(loop)
    requests.unsent.append(sent_once)
    requests.take(0)
    requests.lose_connection(was_of_use=True)
    requests.unsent.append(never_sent)
    requests.fail(Failure(SessionExpiredError), Failure(ConnectionLostError, "it was not sent"))
    assert isinstance(sent_once.future.exception(), SessionExpiredError)
    assert str(never_sent.future.exception()) == "sync /a: it was not sent"
    assert not requests.unsent
