"""Requests of an exact session that lose their connection: what is answered, and sent again."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from paddock.client.requests import decoding
from paddock.client.requests.in_flight import InFlight
from paddock.client.requests.pending_request import Failure, PendingRequest
from paddock.errors import (
    BAD_VERSION,
    OK,
    BadVersionError,
    ConnectionLostError,
    ReplyLostError,
    SessionExpiredError,
)
from paddock.protocol import opcodes
from paddock.protocol.exact import ExactTerms, KeptReply
from tests.unit.state.driver import encode

WINDOW = 4


@pytest.fixture
def loop() -> Iterator[asyncio.AbstractEventLoop]:
    made = asyncio.new_event_loop()
    yield made
    made.close()


class Stage:
    """The requests of a session, and the terms of its connections."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self.requests = InFlight(10)
        self.begin(1)

    def begin(
        self,
        generation: int,
        kept: int = 0,
        replies: tuple[bytes, ...] = (),
        confirmed: int = 0,
        zxid: int = 0x100000005,
    ) -> None:
        """Begin a connection, and answer what it settles."""
        data = b"".join(replies)
        terms = ExactTerms(WINDOW, generation, zxid, kept, confirmed, len(replies), data)
        self.requests.begin(terms)
        self.requests.deliver()

    def lose(self) -> None:
        self.requests.lose_connection(was_of_use=True)

    def read(self) -> PendingRequest[None]:
        return self._put(opcodes.SYNC, is_repeatable=True)

    def write(self) -> PendingRequest[None]:
        return self._put(opcodes.DELETE, is_repeatable=False)

    def made(
        self, operation: int = opcodes.DELETE, *, is_repeatable: bool = False
    ) -> PendingRequest[None]:
        future: asyncio.Future[None] = self._loop.create_future()
        return PendingRequest(operation, b"", "/a", decoding.nothing, future, is_repeatable)

    def _put(self, operation: int, *, is_repeatable: bool) -> PendingRequest[None]:
        request = self.made(operation, is_repeatable=is_repeatable)
        self.requests.unsent.append(request)
        return request

    def is_held(self) -> bool:
        return self.requests.is_held

    def send(self) -> int:
        """Send what may be sent; return how many requests are in flight."""
        while self.requests.take(0):
            pass
        return len(self.requests.sent)


@pytest.fixture
def stage(loop: asyncio.AbstractEventLoop) -> Stage:
    return Stage(loop)


def reply(xid: int, error: int = OK, body: bytes | None = b"") -> bytes:
    return encode(KeptReply(xid, 3, error, body))


def test_what_was_applied_is_answered_and_the_rest_is_sent_again_in_order(stage: Stage) -> None:
    first, read, second, third = stage.write(), stage.read(), stage.write(), stage.write()
    stage.send()
    waiting = stage.write()
    stage.lose()
    assert not any(one.future.done() for one in (first, read, second, third, waiting))
    stage.begin(2, 1, (reply(11), reply(13, BAD_VERSION)))
    assert first.future.result() is None
    assert isinstance(second.future.exception(), BadVersionError)
    assert [*stage.requests.unsent] == [read, third, waiting]
    stage.send()
    # Never a number that was used before.
    assert [one.xid for one in stage.requests.sent] == [15, 16, 17]


def test_terms_of_an_older_generation_say_that_nothing_was_applied(stage: Stage) -> None:
    stage.lose()
    stage.begin(3)
    write = stage.write()
    stage.send()
    assert write.xid == 11
    stage.lose()
    # What has the number 11 there was another write.
    stage.begin(4, 1, (reply(11, BAD_VERSION),), confirmed=99)
    assert [*stage.requests.unsent] == [write]
    assert not write.future.done()


def test_a_lost_answer_to_the_handshake_changes_nothing(stage: Stage) -> None:
    applied, other = stage.write(), stage.write()
    stage.send()
    stage.lose()
    # The attachment of generation 2 was never heard of.
    stage.begin(3, 1, (reply(11),))
    assert applied.future.done()
    assert [*stage.requests.unsent] == [other]


@pytest.mark.parametrize(
    "terms",
    [
        # Another client has written in the session.
        {"generation": 4, "kept": 2, "replies": (reply(11),)},
        # The service was restored: the epoch is another one, or the generation does not fit.
        {"generation": 2, "kept": 1, "replies": (reply(11),), "zxid": 0x200000000},
        {"generation": 1, "kept": 1, "replies": (reply(11),)},
        # More writes were in flight than are kept.
        {"generation": 2, "kept": 1, "replies": (reply(12),), "confirmed": 11},
    ],
)
def test_terms_that_cannot_tell_leave_the_outcome_unknown(
    stage: Stage, terms: dict[str, object]
) -> None:
    write, read = stage.write(), stage.read()
    stage.send()
    stage.lose()
    stage.begin(**terms)  # type: ignore[arg-type]
    error = write.future.exception()
    assert type(error) is ConnectionLostError
    assert "unknown" in str(error)
    assert [*stage.requests.unsent] == [read]


def test_what_is_listed_is_known_though_numbers_have_begun_again(stage: Stage) -> None:
    """Numbers go up to the largest and begin with 1: the confirmed one may be larger."""
    write = stage.write()
    stage.send()
    stage.lose()
    stage.begin(2, 1, (reply(11),), confirmed=2**31 - 5)
    assert write.future.exception() is None


def test_a_reply_that_was_not_kept_has_an_error_of_its_own(stage: Stage) -> None:
    large, refused = stage.write(), stage.write()
    stage.send()
    stage.lose()
    stage.begin(2, 1, (reply(11, body=None), reply(12, BAD_VERSION, None)))
    error = large.future.exception()
    assert isinstance(error, ReplyLostError)
    assert str(error).startswith("delete /a: the write was applied")
    assert isinstance(refused.future.exception(), BadVersionError)


def test_a_refused_transaction_is_answered_with_a_reply_like_its_own(stage: Stage) -> None:
    told, absurd = stage.write(), stage.write()
    told.body = b"several operations"
    bodies: list[bytes] = []
    told.decode = lambda reader: bodies.append(reader.rest())
    stage.send()
    stage.lose()
    refusal = KeptReply(11, 3, BAD_VERSION, None, failed=1)
    stage.begin(2, 1, (encode(refusal), encode(KeptReply(12, 3, BAD_VERSION, None, 1_000))))
    # Its reply has the code OK.
    assert told.future.exception() is None
    assert bodies == [refusal.refusal()]
    # So many operations it never had.
    assert isinstance(absurd.future.exception(), BadVersionError)


def test_a_patient_write_waits_for_its_outcome_while_the_session_may_be_over(
    stage: Stage,
) -> None:
    done, undone, never_sent = stage.write(), stage.write(), stage.write()
    hasty = stage.write()
    for request in (done, undone, never_sent):
        request.is_patient = True
    stage.requests.unsent.remove(never_sent)
    stage.send()
    stage.lose()
    stage.requests.unsent.append(never_sent)
    stage.requests.fail(
        Failure(ConnectionLostError), Failure(ConnectionLostError), also_patient=False
    )
    assert isinstance(hasty.future.exception(), ConnectionLostError)
    assert not any(one.future.done() for one in (done, undone, never_sent))
    stage.begin(2, 1, (reply(11),))
    assert done.future.result() is None
    assert [*stage.requests.unsent] == [undone, never_sent]
    stage.requests.fail(Failure(SessionExpiredError), Failure(SessionExpiredError))
    assert isinstance(undone.future.exception(), SessionExpiredError)
    assert isinstance(never_sent.future.exception(), SessionExpiredError)


def test_a_read_only_server_decides_on_no_write(stage: Stage) -> None:
    write, read = stage.write(), stage.read()
    stage.send()
    stage.lose()
    stage.requests.begin(None, is_read_only=True)
    assert [*stage.requests.unsent] == [read]
    stage.send()
    stage.lose()
    assert not write.future.done()
    stage.begin(2, 1, (reply(11),))
    assert write.future.done()
    assert [*stage.requests.unsent] == [read]


def test_without_terms_where_there_should_be_some_nobody_knows(stage: Stage) -> None:
    write = stage.write()
    stage.send()
    stage.lose()
    stage.requests.begin(None)
    assert type(write.future.exception()) is ConnectionLostError


def test_no_more_writes_are_in_flight_than_the_window_has(stage: Stage) -> None:
    requests = stage.requests
    writes = [stage.write() for _ in range(WINDOW)]
    read, late, behind = stage.read(), stage.write(), stage.read()
    assert stage.send() == WINDOW + 1
    assert stage.is_held()
    assert [*requests.sent] == [*writes, read]
    # As the dispatcher does it for a reply.
    requests.sent.popleft()
    requests.writes -= 1
    assert stage.send() == WINDOW + 2
    assert not stage.is_held()
    assert [*requests.sent][-2:] == [late, behind]
    stage.write()
    requests.open_window(True)
    assert requests.take(0)
    assert requests.writes == WINDOW + 1
    # What follows waits again.
    requests.open_window(False)
    stage.write()
    assert not requests.take(0)
    assert stage.is_held()


def test_the_window_is_that_of_the_connection(stage: Stage) -> None:
    for _ in range(WINDOW + 3):
        stage.write()
    assert stage.send() == WINDOW
    stage.lose()
    assert stage.requests.writes == 0
    stage.begin(2)
    assert stage.send() == WINDOW
    stage.lose()
    # Elsewhere there is none.
    stage.requests.begin(None, is_read_only=True)
    assert stage.send() == 3


def test_a_write_to_a_read_only_server_had_no_effect_and_is_sent_again(stage: Stage) -> None:
    undecided = stage.write()
    stage.send()
    stage.lose()
    stage.requests.begin(None, is_read_only=True)
    write = stage.write()
    assert stage.send() == 1
    stage.lose()
    stage.begin(2)
    assert [*stage.requests.unsent] == [undecided, write]
    assert write.xid == 0


def test_what_was_cancelled_does_not_pile_up_without_a_connection(stage: Stage) -> None:
    stage.lose()
    waiting = [stage.made() for _ in range(3)]
    for one in waiting:
        stage.requests.wait(one)
    for _ in range(1000):
        given_up = stage.made()
        stage.requests.wait(given_up)
        given_up.future.cancel()
    assert len(stage.requests.unsent) < 100
    assert [one for one in stage.requests.unsent if not one.future.cancelled()] == waiting


def test_a_write_that_is_lost_each_time_is_given_up_and_known_to_have_no_effect(
    stage: Stage,
) -> None:
    write = stage.write()
    for generation in range(2, 11):
        stage.send()
        stage.lose()
        stage.begin(generation)
        assert not write.future.done()
    stage.send()
    stage.lose()
    stage.begin(11)
    error = write.future.exception()
    assert isinstance(error, ConnectionLostError)
    assert "it had no effect: 10 connections were lost with it" in str(error)


def test_a_write_that_was_cancelled_is_not_sent_again(stage: Stage) -> None:
    cancelled, other = stage.write(), stage.write()
    stage.send()
    cancelled.future.cancel()
    stage.lose()
    stage.begin(2)
    stage.send()
    assert [*stage.requests.sent] == [other]


def test_when_all_fail_what_is_settled_has_its_outcome(stage: Stage) -> None:
    applied, not_applied, undecided = stage.write(), stage.write(), stage.write()
    stage.send()
    stage.lose()
    terms = ExactTerms(WINDOW, 2, 0x100000005, 1, 0, 1, reply(11))
    stage.requests.begin(terms)
    assert not applied.future.done(), "its watches are being set again"
    stage.lose()
    stage.requests.fail(
        Failure(SessionExpiredError), Failure(ConnectionLostError, "it was not sent")
    )
    assert applied.future.result() is None
    for one in (not_applied, undecided):
        assert str(one.future.exception()) == "delete /a: it was not sent"


def test_what_is_undecided_fails_with_the_session(stage: Stage) -> None:
    write = stage.write()
    stage.send()
    stage.lose()
    assert stage.requests.may_set_watch("/a") is False
    stage.requests.fail(Failure(SessionExpiredError), Failure(ConnectionLostError))
    assert isinstance(write.future.exception(), SessionExpiredError)
