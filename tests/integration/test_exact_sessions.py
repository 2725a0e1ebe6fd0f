"""Exact sessions over sockets: outcomes outlive the process, and others notice nothing."""

from __future__ import annotations

from paddock.protocol.exact import ASKS_EXACT, TERMS_VERSION, ExactTerms
from paddock.protocol.jute import Reader
from tests.support import requests as rq
from tests.support.paddock_server import PaddockServer
from tests.support.wire import Client, Connection, connect, connect_body, decode_connect

TERMS_AT = 37


def ask(connection: Connection, body: bytes) -> tuple[int, bytes, ExactTerms]:
    """Shake hands; return the session, its password and the terms."""
    connection.send_frame(body)
    payload = connection.read_frame()
    reply = decode_connect(payload[:TERMS_AT])
    return reply.session_id, reply.password, ExactTerms.read(Reader(payload[TERMS_AT:]))


def test_the_outcomes_are_there_after_the_server_was_killed() -> None:
    with PaddockServer() as server:
        with Connection(server.address) as first:
            session, password, terms = ask(first, connect_body(password=ASKS_EXACT))
            assert (terms.generation, terms.replies()) == (1, [])
            for xid in (1, 2):
                body = rq.create("/exact").body
                first.send_frame(xid.to_bytes(4, "big") + (1).to_bytes(4, "big") + body)
            first.read_frame()
            first.read_frame()
        server.kill()
        server.start()
        with Connection(server.address) as second:
            body = connect_body(session_id=session, password=password, protocol=TERMS_VERSION)
            again, _, terms = ask(second, body)
        assert again == session
        assert (terms.generation, terms.kept_generation) == (2, 1)
        assert [(one.xid, one.error, one.body) for one in terms.replies()] == [
            (1, 0, b"\0\0\0\6/exact"),
            (2, -110, b""),
        ]
        # As the C client does, which reads 41 bytes whatever comes.
        plain = Client(server.address, connect_body(session_id=session, password=password))
        assert (plain.session_id, plain.handshake.length) == (session, TERMS_AT)
        assert plain.call(rq.exists("/exact")).err == 0
        plain.close()
        other = connect(server.address)
        assert other.handshake.length == TERMS_AT
        other.close()
