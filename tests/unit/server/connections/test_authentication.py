"""How a client says who it is: what is answered, in which order, and who it is then."""

from __future__ import annotations

import asyncio
import struct
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from paddock.errors import AUTH_FAILED, NOT_READ_ONLY, OK, SESSION_CLOSED_REQUIRE_SASL
from paddock.protocol.acl import SUPER, Identity
from paddock.protocol.jute import Reader
from paddock.server.connections.authentication import Authentication
from paddock.server.sasl.conversation import Offer
from paddock.server.sasl.digest_md5 import DigestMd5
from paddock.server.sasl.jaas import LoginModule
from paddock.server.sasl.users import Users
from paddock.server.sessions.authentication import IDENTITIES_BYTES_MAX, Authenticator
from paddock.state.access import Identities
from paddock.storage import events
from tests.support import requests as rq
from tests.support.records import Request
from tests.support.sasl import answer
from tests.unit.server.harness import FakeClient, Harness, RecordedEvents, encoded, run
from tests.unit.server.sasl.test_conversation import Script

NO_TOKEN = b"\xff\xff\xff\xff"
HOME = Identity("ip", "127.0.0.1")
BOB = Identity("sasl", "bob")
FILE = Path("jaas.conf")


def harness(offer: Offer | None = None, **settings: Any) -> Harness:
    made = Harness(jaas_file=FILE, **settings)
    if offer is None:
        users = Users()
        users.read_modules(FILE, [LoginModule("DigestLoginModule", {"user_bob": "bobs-secret"})])
        offer = Offer((DigestMd5(users, bytes),), frozenset(made.service.config.sasl_super_users))
    made.service.credentials.sasl = offer
    return made


def token(data: bytes) -> bytes:
    return struct.pack(">i", len(data)) + data


def challenge_of(client: FakeClient) -> bytes:
    client.send(rq.sasl(b""))
    ((_, error, body),) = client.replies()
    assert error == OK
    assert body == token(body[4:])
    return body[4:]


def test_a_proof_adds_an_identity_and_is_written_down() -> None:
    async def scenario() -> None:
        made = harness()
        recorded = RecordedEvents(made)
        client = await made.client()
        client.send(rq.sasl(answer(challenge_of(client))))
        ((_, error, body),) = client.replies()
        assert (error, body[4:12]) == (OK, b"rspauth=")
        assert client.watcher.identities.entries == (HOME, BOB)
        kind, named = recorded.identities[-1]
        assert (kind, named.entries) == (events.AUTHENTICATED, (BOB,))
        assert client.transport.is_open

    run(scenario)


def test_a_superuser_is_super_as_well() -> None:
    async def scenario() -> None:
        client = await harness(sasl_super_users=frozenset({"bob"})).client()
        client.send(rq.sasl(answer(challenge_of(client))))
        assert client.watcher.identities.entries == (HOME, BOB, SUPER)

    run(scenario)


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({}, AUTH_FAILED),
        ({"require_sasl": True}, SESSION_CLOSED_REQUIRE_SASL),
        ({"enforce_authentication": True}, SESSION_CLOSED_REQUIRE_SASL),
    ],
)
def test_a_failure_is_answered_without_a_reason_and_closes(
    settings: dict[str, Any], code: int, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario() -> None:
        made = harness(**settings)
        recorded = RecordedEvents(made)
        client = await made.client()
        client.send(rq.sasl(b""))
        await made.settle()
        ((_, _, challenge),) = client.replies()
        client.send(rq.sasl(answer(challenge[4:], password="a guess")), rq.exists("/"))
        await made.settle()
        assert client.replies() == [(1, code, NO_TOKEN)]
        assert client.watcher.identities.entries == (HOME,)
        assert not client.transport.is_open
        assert (events.CONNECTION_ENDED, events.AUTHENTICATION) in recorded.take()

    run(scenario)
    assert "authentication failed from 127.0.0.1, SASL DIGEST-MD5: 'bob': unknown" in caplog.text


def test_nothing_is_served_before_a_required_proof_and_everything_after_it() -> None:
    async def scenario() -> None:
        made = harness(require_sasl=True)
        client = await made.client()
        client.send(rq.sasl(b""))
        await made.settle()
        ((_, _, challenge),) = client.replies()
        # In one read: the proof counts for what is behind it.
        client.send(rq.sasl(answer(challenge[4:])), rq.create("/a"), rq.exists("/a"))
        await made.settle()
        assert [(xid, error) for xid, error, _ in client.replies()] == [(1, OK), (2, OK), (3, OK)]
        stranger = await made.client()
        stranger.send(rq.exists("/a"))
        await made.settle()
        assert stranger.replies() == [(1, SESSION_CLOSED_REQUIRE_SASL, b"")]
        assert not stranger.transport.is_open

    run(scenario)


def test_a_read_only_session_has_to_prove_who_it_is_as_well() -> None:
    async def scenario() -> None:
        made = harness(require_sasl=True)
        await made.client()
        made.service.is_open, made.service.is_read_only = False, True
        stranger, bob = FakeClient(made), FakeClient(made)
        for one in (stranger, bob):
            one.send_handshake(0, read_only=True)
            assert one.take_handshake().read_only
        stranger.send(rq.exists("/"))
        await made.settle()
        assert [error for _, error, _ in stranger.replies()] == [SESSION_CLOSED_REQUIRE_SASL]
        bob.send(rq.sasl(b""))
        await made.settle()
        ((_, _, challenge),) = bob.replies()
        bob.send(rq.sasl(answer(challenge[4:])), rq.exists("/"), rq.create("/a"))
        await made.settle()
        assert [error for _, error, _ in bob.replies()] == [OK, OK, NOT_READ_ONLY]

    run(scenario)


def test_a_scheme_of_one_packet_is_not_enough_where_sasl_is_required() -> None:
    async def scenario() -> None:
        made = harness(require_sasl=True)
        client = await made.client()
        client.send(rq.auth("digest", b"bob:secret"), rq.exists("/"))
        await made.settle()
        codes = [error for _, error, _ in client.replies()]
        assert codes == [OK, SESSION_CLOSED_REQUIRE_SASL]

    run(scenario)


def test_replies_keep_their_order_behind_writes() -> None:
    async def scenario() -> None:
        made = harness()
        client = await made.client()
        proof = answer(challenge_of(client))
        client.send(rq.create("/a"), rq.sasl(proof), rq.create("/b"), rq.exists("/a"))
        assert client.replies() == []
        # The write behind the proof is already one of the user.
        await made.settle()
        assert [(xid, error) for xid, error, _ in client.replies()] == [
            *((1, OK), (2, OK), (3, OK), (4, OK)),
        ]

    run(scenario)


def test_a_failure_waits_for_the_writes_before_it() -> None:
    async def scenario() -> None:
        made = harness()
        client = await made.client()
        challenge_of(client)
        client.send(rq.create("/a"), rq.sasl(b"wrong"), rq.create("/b"))
        assert client.transport.is_open
        await made.settle()
        assert [(xid, error) for xid, error, _ in client.replies()] == [(1, OK), (2, AUTH_FAILED)]
        assert not client.transport.is_open

    run(scenario)


@pytest.mark.parametrize("body", [b"", b"\x00\x00", b"\x00\x00\x00\x05abc", NO_TOKEN])
def test_what_cannot_be_decoded_closes(body: bytes) -> None:
    async def scenario() -> None:
        client = await harness().client()
        client.send(Request(102, body))
        assert client.replies() == []
        assert not client.transport.is_open

    run(scenario)


def test_a_token_before_the_handshake_closes() -> None:
    async def scenario() -> None:
        made = harness()
        client = FakeClient(made)
        client.receive(encoded(1, rq.sasl(b"")))
        await made.settle()
        assert client.replies() == []
        assert not client.transport.is_open

    run(scenario)


def test_a_token_that_comes_with_the_handshake_waits_for_the_session() -> None:
    async def scenario() -> None:
        made = harness()
        client = FakeClient(made)
        client.send_handshake()
        client.receive(encoded(1, rq.sasl(b"")))
        assert client.transport.frames() == []
        await made.settle()
        assert len(client.transport.frames()) == 2

    run(scenario)


def test_without_an_offer_every_token_is_answered_with_none() -> None:
    async def scenario() -> None:
        client = await Harness().client()
        client.send(rq.sasl(b""), rq.sasl(b"x"))
        assert client.replies() == [(1, OK, NO_TOKEN), (2, OK, NO_TOKEN)]

    run(scenario)


def test_who_fails_may_stay_if_the_settings_say_so() -> None:
    async def scenario() -> None:
        client = await harness(Offer((Script(),), allows_failed=True)).client()
        client.send(rq.sasl(b"wrong"), rq.exists("/"))
        assert [(xid, error) for xid, error, _ in client.replies()] == [(1, OK), (2, OK)]
        assert client.watcher.identities.entries == (HOME,)

    run(scenario)


def test_an_identity_too_many_fails() -> None:
    authentication = Authentication(
        Authenticator("127.0.0.1", None), Offer((Script(),)), requires_sasl=False
    )
    many = tuple(Identity("digest", f"{number:02}:{'x' * 51}") for number in range(30))
    known = Identities(many)
    assert IDENTITIES_BYTES_MAX - 10 < len(known.wire) <= IDENTITIES_BYTES_MAX
    given = authentication.receive(102, Reader(token(b"done")), known, lambda _: None)
    assert given is not None
    assert (given.error, given.identities, given.body) == (AUTH_FAILED, known, NO_TOKEN)
    assert (given.failure, given.is_final) == ("SASL: too many identities", True)


def in_threads() -> tuple[Script, Offer]:
    script = Script(blocks=True)
    return script, Offer((script,), executor=ThreadPoolExecutor(1))


def let_go(script: Script, client: FakeClient) -> asyncio.Event:
    """Let the thread go on; return what is set when something is sent to the client."""
    written = asyncio.Event()
    client.transport.on_write = written.set
    script.gate.set()
    return written


def test_nothing_overtakes_a_step_in_a_thread() -> None:
    script, offer = in_threads()

    async def main() -> None:
        made = harness(offer)
        client = await made.client()
        client.receive(
            b"".join(
                encoded(xid, one)
                for xid, one in enumerate(
                    (rq.create("/a"), rq.sasl(b"done"), rq.ping(), rq.create("/b"), rq.exists("/")),
                    1,
                )
            )
        )
        await made.settle()
        # The write before it is answered, and nothing behind it is begun.
        assert [(xid, error) for xid, error, _ in client.replies()] == [(1, OK)]
        assert len(made.log.proposals) == 2
        assert not client.transport.is_reading_now
        # What comes meanwhile, and turns that others give it, change nothing.
        client.handler.wake()
        client.receive(encoded(6, rq.exists("/")))
        await made.settle()
        assert client.replies() == []
        await let_go(script, client).wait()
        await made.settle()
        answered = [(xid, error) for xid, error, _ in client.replies()]
        assert answered == [(2, OK), (-2, OK), (4, OK), (5, OK), (6, OK)]
        assert client.watcher.identities.entries == (HOME, BOB)
        assert client.transport.is_reading_now

    asyncio.run(asyncio.wait_for(main(), 30))
    offer.close()


def test_a_step_in_a_thread_lifts_the_policy_for_what_was_held() -> None:
    script, offer = in_threads()

    async def main() -> None:
        made = harness(offer, require_sasl=True)
        client = await made.client()
        client.send(rq.sasl(b"a"), rq.sasl(b"done"), rq.exists("/"))
        answered: list[tuple[int, int]] = []
        while len(answered) < 3:
            await let_go(script, client).wait()
            answered += [(xid, error) for xid, error, _ in client.replies()]
        assert answered == [(1, OK), (2, OK), (3, OK)]

    asyncio.run(asyncio.wait_for(main(), 30))
    offer.close()


def test_a_session_whose_end_is_proposed_during_a_step_goes_on_if_it_lives() -> None:
    script, offer = in_threads()

    async def main() -> None:
        made = harness(offer)
        client = await made.client()
        client.send(rq.sasl(b"done"), rq.exists("/"))
        client.handler.suspend()
        await let_go(script, client).wait()
        await made.settle()
        # The token is answered, and what is behind it is held as everything is.
        assert [xid for xid, _, _ in client.replies()] == [1]
        client.handler.resume()
        await made.settle()
        assert [xid for xid, _, _ in client.replies()] == [2]

    asyncio.run(asyncio.wait_for(main(), 30))
    offer.close()


def test_who_waits_for_a_step_is_served_when_it_is_over() -> None:
    script, offer = in_threads()

    async def main() -> None:
        client = await harness(offer).client()
        client.send(rq.sasl(b"done"))
        await let_go(script, client).wait()
        client.send(rq.exists("/"))
        assert [error for _, error, _ in client.replies()] == [OK, OK]

    asyncio.run(asyncio.wait_for(main(), 30))
    offer.close()


@pytest.mark.parametrize("last", [b"done", b"a"])
def test_a_connection_that_closes_during_a_step_is_not_answered(last: bytes) -> None:
    script, offer = in_threads()

    async def main() -> None:
        made = harness(offer)
        client = await made.client()
        client.send(rq.sasl(last), rq.exists("/"))
        client.connection.connection_lost(None)
        closed = asyncio.Event()
        script.on_close = closed.set
        script.gate.set()
        await closed.wait()
        await made.settle()
        assert client.replies() == []
        assert client.watcher.identities.entries == (HOME,)
        assert script.closed == 1

    asyncio.run(asyncio.wait_for(main(), 30))
    offer.close()
