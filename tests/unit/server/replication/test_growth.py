"""What is refused while a shared log has no room, and what goes on."""

import pytest

from paddock.protocol import opcodes
from paddock.server.replication.growth import grows
from paddock.state.entry import ATTACH, EXPIRE, JOIN, REAP, SYNC, Entry
from tests.support import requests as rq
from tests.support.records import Request


@pytest.mark.parametrize(
    "request_",
    [
        rq.create("/a"),
        rq.create2("/a"),
        rq.set_data("/a", b"data"),
        rq.set_acl("/a", None),
        rq.multi(rq.delete("/a"), rq.create("/b")),
        rq.multi(rq.check("/a", 1), rq.set_data("/b", b"")),
    ],
    ids=["create", "create2", "set_data", "set_acl", "multi", "multi-set"],
)
def test_what_makes_the_state_larger_grows(request_: Request) -> None:
    assert grows(Entry(request_.op, request_.body))


@pytest.mark.parametrize(
    "request_",
    [rq.delete("/a"), rq.multi(rq.check("/a", 1), rq.delete("/a"))],
    ids=["delete", "multi"],
)
def test_deletes_do_not(request_: Request) -> None:
    assert not grows(Entry(request_.op, request_.body))


@pytest.mark.parametrize(
    "operation",
    [
        *(opcodes.CREATE_SESSION, opcodes.CLOSE_SESSION, opcodes.DELETE_CONTAINER),
        *(ATTACH, EXPIRE, REAP, JOIN, SYNC),
    ],
)
def test_what_sessions_and_servers_need_does_not(operation: int) -> None:
    assert not grows(Entry(operation, b""))


def test_a_transaction_that_cannot_be_read_is_left_to_the_state() -> None:
    assert not grows(Entry(opcodes.MULTI, b"\0\0"))
