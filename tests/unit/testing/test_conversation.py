"""What is made of the frames of a connection."""

from __future__ import annotations

import struct

import pytest

from paddock.errors import OK, SESSION_EXPIRED
from paddock.protocol import events, opcodes
from paddock.testing.conversation import Conversation, History, SeenEvent, SeenReply
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Request


def sent(request: Request, xid: int) -> bytes:
    return (
        struct.pack(">ii", xid if request.xid is None else request.xid, request.op) + request.body
    )


def reply(xid: int, error: int = OK, zxid: int = 7) -> bytes:
    return struct.pack(">iqi", xid, zxid, error)


def handshake_reply(session: int) -> bytes:
    return struct.pack(">iiqi", 0, 4000 if session else 0, session, 16) + bytes(17)


def begun(history: History | None = None) -> Conversation:
    conversation = Conversation(1, history or History())
    conversation.request(wire.connect_body())
    conversation.answer(handshake_reply(1))
    return conversation


@pytest.mark.parametrize(("session", "error"), [(9, OK), (0, SESSION_EXPIRED)])
def test_the_handshake_is_the_first_request(session: int, error: int) -> None:
    conversation = Conversation(1, History())
    request = conversation.request(wire.connect_body())
    assert (request.number, request.name, request.paths) == (1, "create_session", ())
    answer = conversation.answer(handshake_reply(session))
    assert isinstance(answer, SeenReply)
    assert (answer.request, answer.error) == (request, error)


@pytest.mark.parametrize(
    ("request_", "paths"),
    [
        (rq.create("/a"), ("/a",)),
        (rq.get_data("/a/b"), ("/a/b",)),
        (rq.sync("/"), ("/",)),
        (rq.who_am_i(), ()),
        (rq.set_watches(0, ["/a"]), ()),
        (rq.auth("digest", b"me:secret"), ()),
        (rq.multi(rq.create("/a"), rq.set_data("/b", b""), rq.check("/c")), ("/a", "/b", "/c")),
        (rq.multi_read(rq.get_data("/a"), rq.get_children("/b")), ("/a", "/b")),
        # What cannot be understood has the paths before that.
        (Request(opcodes.CREATE, b"\0\0\0\x09/a"), ()),
        (Request(opcodes.MULTI, rq.multi(rq.delete("/a")).body[:-9]), ("/a",)),
        (rq.get_data(None), ()),
    ],
)
def test_the_paths_of_a_request_are_found(request_: Request, paths: tuple[str, ...]) -> None:
    assert begun().request(sent(request_, 1)).paths == paths


def test_a_reply_belongs_to_the_request_with_its_xid() -> None:
    conversation = begun()
    first = conversation.request(sent(rq.create("/a"), 1))
    second = conversation.request(sent(rq.get_data("/a"), 2))
    answers = [conversation.answer(reply(2)), conversation.answer(reply(1, error=-110))]
    assert [(one.request, one.error) for one in answers if isinstance(one, SeenReply)] == [
        (second, OK),
        (first, -110),
    ]


def test_requests_that_share_an_xid_are_answered_in_order() -> None:
    conversation = begun()
    pings = [conversation.request(sent(rq.ping(), 0)) for _ in range(3)]
    answers = [conversation.answer(reply(-2)) for _ in range(3)]
    assert [one.request for one in answers if isinstance(one, SeenReply)] == pings


def test_pings_are_not_counted() -> None:
    conversation = begun()
    numbers = [
        conversation.request(sent(request, 1)).number
        for request in (rq.ping(), rq.exists("/"), rq.ping(), rq.exists("/"))
    ]
    assert numbers == [0, 2, 0, 3]


def test_an_event_is_no_reply() -> None:
    conversation = begun()
    event = conversation.answer(events.notification(events.NODE_CREATED, b"/a", 7)[4:])
    assert isinstance(event, SeenEvent)
    assert (event.kind, event.path) == (events.NODE_CREATED, "/a")


@pytest.mark.parametrize("payload", [b"", b"\0\0", reply(77)])
def test_a_frame_that_answers_nothing_is_none(payload: bytes) -> None:
    history = History()
    conversation = begun(history)
    before = len(history.messages)
    assert conversation.answer(payload) is None
    assert len(history.messages) == before


def test_connections_are_counted_together() -> None:
    history = History()
    first, second = Conversation(1, history), Conversation(2, history)
    numbers = [one.request(wire.connect_body()).number for one in (first, second)]
    numbers += [one.request(sent(rq.exists("/"), 1)).number for one in (second, first)]
    assert numbers == [1, 2, 3, 4]
    assert [one.connection for one in history.messages if not isinstance(one, SeenReply)] == [
        1,
        2,
        2,
        1,
    ]
