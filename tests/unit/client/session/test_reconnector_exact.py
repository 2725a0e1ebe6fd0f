"""Who is asked for an exact session, and what becomes of a refusal."""

from __future__ import annotations

import struct
from collections.abc import Callable
from random import Random

import pytest

from paddock import Client, ConnectionLostError, connect
from paddock.errors import AUTH_FAILED
from paddock.protocol.exact import ASKS_EXACT
from paddock.protocol.jute import Reader
from paddock.protocol.records import ConnectRequest
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.support.scripted import ScriptedServer, Talk, handshake_reply

PLAIN = bytes(16)

Refuse = Callable[[Talk], None]


def exact(hosts: str, seed: int = 1, session_timeout: float = 4) -> Client:
    return connect(hosts, random=Random(seed), exact=True, session_timeout=session_timeout)


def end(talk: Talk) -> None:
    """Say nothing; the connection ends."""


def say_expired(talk: Talk) -> None:
    talk.say(handshake_reply(0, 0, PLAIN))


def say_error(talk: Talk) -> None:
    talk.say(struct.pack(">iqi", 0, 0, AUTH_FAILED))


def say_nonsense(talk: Talk) -> None:
    talk.say(b"nonsense")


class OtherKind:
    """A server that opens sessions, but refuses every password of a new one but zeros."""

    def __init__(self, refuse: Refuse = end) -> None:
        self._refuse = refuse
        self.passwords: list[bytes | None] = []

    async def __call__(self, talk: Talk) -> None:
        request = ConnectRequest.read(Reader(await talk.hear()))
        self.passwords.append(request.password)
        if request.session_id == 0 and request.password != PLAIN:
            self._refuse(talk)
            return
        session = request.session_id or 100 + talk.number
        talk.say(handshake_reply(session, 10_000, b"p" * 16))
        await talk.serve()


@pytest.mark.parametrize("refuse", [end, say_expired, say_error, say_nonsense])
def test_a_service_that_refuses_exact_sessions_gives_an_ordinary_one(refuse: Refuse) -> None:
    async def main() -> None:
        lead = OtherKind(refuse)
        async with ScriptedServer(lead) as server, exact(server.hosts) as client:
            assert not client.is_exact
            assert client.session_id == 104
            assert lead.passwords == [ASKS_EXACT, ASKS_EXACT, PLAIN, ASKS_EXACT, PLAIN]
            assert (await client.set("/", b"")).version == 0

    run_virtually(main())


def test_a_session_that_has_become_an_ordinary_one_is_attached_again_as_such() -> None:
    async def main() -> None:
        lead = OtherKind()
        async with ScriptedServer(lead) as server, exact(server.hosts) as client:
            session = client.session_id
            transport = client._session.dispatcher.transport
            assert transport is not None
            transport.abort()
            await transport.lost
            assert await client.exists("/") is not None
            assert (client.session_id, client.is_exact) == (session, False)
            assert lead.passwords[5:] == [b"p" * 16]

    run_virtually(main())


def test_every_new_session_is_asked_for_as_an_exact_one() -> None:
    async def main() -> None:
        lead = OtherKind()
        async with ScriptedServer(lead) as server:
            for _ in range(2):
                async with exact(server.hosts):
                    pass
            assert lead.passwords[5] == ASKS_EXACT

    run_virtually(main())


@pytest.mark.parametrize("seed", [1, 2, 3, 4])
def test_one_host_that_refuses_does_not_decide_for_another(seed: int) -> None:
    async def main() -> None:
        async with EmbeddedServer() as ours, ScriptedServer(OtherKind()) as other:
            async with exact(f"{ours.hosts},{other.hosts}", seed) as client:
                assert client.is_exact

        async def grant(talk: Talk) -> None:
            await talk.grant()
            await talk.serve()

        async with ScriptedServer(grant) as apache, ScriptedServer(OtherKind()) as other:
            async with exact(f"{apache.hosts},{other.hosts}", seed) as client:
                assert (client.session_id, client.is_exact) == (7, False)

    run_virtually(main())


@pytest.mark.parametrize("times", [1, 2, 3, 5])
@pytest.mark.parametrize("is_lost", [True, False])
def test_a_service_that_was_out_of_service_gives_an_exact_session(
    times: int, is_lost: bool
) -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            meant = proxy.when(operation="create_session", times=times)
            fault = meant.cut_after() if is_lost else meant.cut_before()
            async with exact(proxy.hosts, session_timeout=60) as client:
                assert client.is_exact
                assert len(fault.hits) == times
                assert (await client.set("/", b"")).version == 1

    run_virtually(main())


def test_a_service_that_has_room_for_one_connection_gives_an_exact_session() -> None:
    async def main() -> None:
        config = ServerConfig(port=0, max_connections_per_address=1)
        async with EmbeddedServer(config=config) as server, FaultProxy(server.address) as proxy:
            # It has none when the client asks first.
            proxy.when(operation="create_session", times=2).cut_before()
            async with exact(proxy.hosts) as client:
                assert client.is_exact

    run_virtually(main())


def test_who_refuses_everything_is_named() -> None:
    async def main() -> None:
        async def lead(talk: Talk) -> None:
            await talk.hear()

        async with ScriptedServer(lead) as server:
            with pytest.raises(ConnectionLostError, match="closed the connection"):
                await exact(server.hosts).start()
            assert server.talks > 3

    run_virtually(main())
