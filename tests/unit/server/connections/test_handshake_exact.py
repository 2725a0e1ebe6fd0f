"""Exact sessions: who gets one, and what an attachment says of the writes before it."""

from __future__ import annotations

import pytest

from paddock.errors import NODE_EXISTS, OK, SYSTEM_ERROR
from paddock.protocol.exact import ASKS_EXACT, CHANGES, EXACT, TERMS_VERSION, ExactTerms
from paddock.protocol.jute import Reader
from paddock.state.kept_replies import WINDOW
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.support.records import Request
from tests.unit.server.harness import FakeClient, Harness, encoded, run


class ExactClient(FakeClient):
    """A client that asks for an exact session, and numbers its requests as ours does."""

    async def open(self) -> ExactTerms:
        await self.attach(0, ASKS_EXACT)
        return self.terms()

    async def attach_again(self, former: FakeClient) -> ExactTerms:
        self.send_handshake(former.session, former.password, version=TERMS_VERSION)
        await self._harness.settle()
        self.take_handshake()
        return self.terms()

    def terms(self) -> ExactTerms:
        reader = Reader(self.rest)
        terms = ExactTerms.read(reader)
        assert reader.rest() == b""
        return terms

    def write(self, xid: int, request: Request) -> None:
        self.receive(encoded(xid, request))


def listed(terms: ExactTerms) -> list[tuple[int, int, bytes | None]]:
    return [(one.xid, one.error, one.body) for one in terms.replies()]


def test_who_asks_for_an_exact_session_gets_terms() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = ExactClient(harness)
        terms = await client.open()
        assert (terms.flags, terms.window, terms.generation) == (EXACT | CHANGES, WINDOW, 1)
        assert (terms.zxid, terms.kept_generation, terms.confirmed) == (1, 0, 0)
        assert terms.replies() == []
        assert client.password not in (ASKS_EXACT, bytes(16))

    run(scenario)


@pytest.mark.parametrize("password", [b"", bytes(16), b"p" * 16, ASKS_EXACT[:-1]])
def test_anybody_else_reads_what_it_always_read(password: bytes) -> None:
    async def scenario() -> None:
        harness = Harness()
        client = FakeClient(harness)
        await client.attach(0, password)
        assert client.rest == b""
        assert harness.machine.sessions.by_id[client.session].kept is None
        again = FakeClient(harness)
        # Nor are there terms for a session that is not exact.
        again.send_handshake(client.session, client.password, version=TERMS_VERSION)
        await harness.settle()
        assert again.take_handshake().session_id == client.session
        assert again.rest == b""

    run(scenario)


def test_an_old_client_gets_no_terms_whatever_its_password_is() -> None:
    async def scenario() -> None:
        harness = Harness()
        client = FakeClient(harness)
        client.send_handshake(0, ASKS_EXACT, read_only=None)
        await harness.settle()
        assert client.take_handshake().read_only is None
        assert client.rest == b""
        assert harness.machine.sessions.by_id[client.session].kept is None

    run(scenario)


def test_another_client_with_the_id_and_the_password_of_an_exact_session_reads_no_terms() -> None:
    async def scenario() -> None:
        harness = Harness()
        first = ExactClient(harness)
        await first.open()
        other = FakeClient(harness)
        reply = await other.attach(first.session, first.password)
        assert (reply.session_id, other.rest) == (first.session, b"")

    run(scenario)


def test_writes_whose_replies_were_lost_are_listed_with_them() -> None:
    async def scenario() -> None:
        harness = Harness()
        first = ExactClient(harness)
        await first.open()
        for xid in (5, 6):
            first.write(xid, rq.create("/n"))
        first.write(7, rq.exists("/n"))
        first.connection.connection_lost(None)
        await harness.settle()
        second = ExactClient(harness)
        terms = await second.attach_again(first)
        assert (terms.generation, terms.kept_generation, terms.confirmed) == (2, 1, 0)
        assert listed(terms) == [(5, OK, b"\0\0\0\2/n"), (6, NODE_EXISTS, b"")]
        assert terms.zxid == harness.machine.zxid

    run(scenario)


def test_a_write_that_is_proposed_before_the_fence_and_applied_after_it_is_not_listed() -> None:
    async def scenario() -> None:
        harness = Harness()
        first, second = ExactClient(harness), ExactClient(harness)
        await first.open()
        first.write(1, rq.create("/before"))
        second.send_handshake(first.session, first.password, version=TERMS_VERSION)
        first.write(2, rq.create("/late"))
        await harness.settle()
        second.take_handshake()
        assert [xid for xid, _, _ in listed(second.terms())] == [1]
        assert b"/before" in harness.machine.tree.nodes
        assert b"/late" not in harness.machine.tree.nodes
        assert [error for _, error, _ in first.replies()] == [OK]
        assert not first.transport.is_open

    run(scenario)


def test_a_write_that_was_refused_before_the_log_is_not_listed() -> None:
    async def scenario() -> None:
        harness = Harness()
        first = ExactClient(harness)
        await first.open()
        first.write(1, rq.create("/one"))
        await harness.settle(Durability.NOT_WRITTEN)
        first.write(2, rq.create("/two"))
        await harness.settle()
        assert [error for _, error, _ in first.replies()] == [SYSTEM_ERROR, OK]
        second = ExactClient(harness)
        assert [xid for xid, _, _ in listed(await second.attach_again(first))] == [2]

    run(scenario)


def test_what_a_lost_answer_has_listed_is_listed_again_until_the_client_writes() -> None:
    async def scenario() -> None:
        harness = Harness()
        first = ExactClient(harness)
        await first.open()
        first.write(1, rq.create("/one"))
        await harness.settle()
        lost, second, third = (ExactClient(harness) for _ in range(3))
        await lost.attach_again(first)
        terms = await second.attach_again(first)
        assert (terms.generation, [xid for xid, _, _ in listed(terms)]) == (3, [1])
        second.write(2, rq.create("/two"))
        await harness.settle()
        terms = await third.attach_again(first)
        assert (terms.generation, terms.kept_generation) == (4, 3)
        assert [xid for xid, _, _ in listed(terms)] == [2]

    run(scenario)


def test_of_two_attachments_that_race_each_says_what_was_applied_before_it() -> None:
    async def scenario() -> None:
        harness = Harness()
        first, second, third = (ExactClient(harness) for _ in range(3))
        await first.open()
        first.write(1, rq.create("/one"))
        second.send_handshake(first.session, first.password, version=TERMS_VERSION)
        third.send_handshake(first.session, first.password, version=TERMS_VERSION)
        await harness.settle()
        for client, generation in ((second, 2), (third, 3)):
            client.take_handshake()
            assert client.terms().generation == generation
            assert [xid for xid, _, _ in listed(client.terms())] == [1]
        assert not second.transport.is_open
        assert third.transport.is_open

    run(scenario)


def test_a_session_that_is_over_and_a_wrong_password_bring_no_terms() -> None:
    async def scenario() -> None:
        harness = Harness()
        first, thief, late = ExactClient(harness), ExactClient(harness), ExactClient(harness)
        await first.open()
        thief.send_handshake(first.session, b"wrong", version=TERMS_VERSION)
        await harness.settle()
        assert thief.take_handshake().session_id == 0
        first.write(1, rq.close_session())
        await harness.settle()
        late.send_handshake(first.session, first.password, version=TERMS_VERSION)
        await harness.settle()
        assert late.take_handshake().session_id == 0
        assert (thief.rest, late.rest) == (b"", b"")

    run(scenario)


def test_a_server_in_read_only_mode_says_what_it_can_and_nothing_of_writes() -> None:
    async def scenario() -> None:
        harness = Harness()
        first, second = ExactClient(harness), ExactClient(harness)
        await first.open()
        harness.service.is_open = False
        harness.service.is_read_only = True
        second.send_handshake(first.session, first.password, read_only=True, version=TERMS_VERSION)
        reply = second.take_handshake()
        assert (reply.session_id, reply.read_only) == (first.session, True)
        terms = second.terms()
        assert (terms.flags, terms.window, terms.generation, terms.count) == (CHANGES, 0, 0, 0)
        third = FakeClient(harness)
        third.send_handshake(0, read_only=True)
        assert third.take_handshake().read_only
        assert third.rest == b""

    run(scenario)
