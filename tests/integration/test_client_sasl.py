"""Authentication by SASL on Paddock and Apache ZooKeeper, and what happens where there is none."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from random import Random
from typing import Any

import pytest
from kazoo.client import KazooClient

import paddock
from paddock import (
    ACL,
    AuthenticationError,
    Client,
    Identity,
    InvalidArgumentError,
    NoAuthError,
    Permission,
    SaslCredentials,
    SessionState,
)
from paddock.protocol import opcodes
from paddock.testing import EmbeddedServer, FaultProxy
from tests.support import sasl as users
from tests.support.judges import skipped_where_missing
from tests.support.sasl import JAAS, SASL_SERVERS, SaslServer

DEADLINE_S = 60.0
ALICE, BOB = SaslCredentials(*users.ALICE), SaslCredentials(*users.BOB)
KINDS = [
    "paddock",
    pytest.param("apache", marks=[pytest.mark.judge, pytest.mark.foreign]),
    pytest.param("apache-3.9", marks=[pytest.mark.judge, pytest.mark.foreign, pytest.mark.long]),
]


@pytest.fixture(scope="module", params=KINDS)
def server(request: pytest.FixtureRequest) -> Iterator[SaslServer]:
    with skipped_where_missing(), SASL_SERVERS[request.param]() as server:
        yield server


def connect(address: tuple[str, int], sasl: SaslCredentials, **settings: Any) -> Client:
    return paddock.connect(f"{address[0]}:{address[1]}", sasl=sasl, random=Random(1), **settings)


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with asyncio.timeout(DEADLINE_S):
            await scenario()

    asyncio.run(main(), debug=True)


async def asking_until_it_fails(client: Client) -> None:
    while True:
        await client.get("/")


def test_a_user_is_known_and_alone_has_what_is_his(server: SaslServer) -> None:
    async def scenario() -> None:
        seen: list[SessionState] = []
        own = [ACL(Permission.ALL, Identity("sasl", "alice"))]
        alice, bob = connect(server.address, ALICE), connect(server.address, BOB)
        alice.add_listener(seen.append)
        async with alice, bob:
            assert seen == [SessionState.CONNECTED, SessionState.SASL_AUTHENTICATED]
            assert alice.state.is_connected
            assert ("sasl", "alice") in await alice.who_am_i()
            await alice.create("/hers", b"1", acl=own)
            assert (await alice.get("/hers")).data == b"1"
            with pytest.raises(NoAuthError):
                await bob.get("/hers")
            await alice.delete("/hers")

    run(scenario)


def test_after_a_reconnect_it_is_proved_again_before_anything_is_asked(server: SaslServer) -> None:
    async def scenario() -> None:
        async with FaultProxy(server.address) as proxy, connect(proxy.address, ALICE) as client:
            own = [ACL(Permission.ALL, Identity("sasl", "alice"))]
            await client.create("/after", b"1", acl=own)
            before = len(proxy.requests)
            proxy.when(operation="get").cut_before()
            # It waits for the next connection, where nobody else may read it.
            assert (await client.get("/after")).data == b"1"
            asked = [request.operation for request in proxy.requests[before:]]
            proof = [opcodes.SASL, opcodes.SASL]
            assert asked == [
                opcodes.GET_DATA,
                opcodes.CREATE_SESSION,
                *proof,
                opcodes.GET_DATA,
            ]
            await client.delete("/after")

    run(scenario)


@pytest.mark.parametrize(
    "wrong",
    [SaslCredentials("alice", "guessed"), SaslCredentials("carol", "bobs-secret")],
    ids=["password", "user"],
)
def test_what_is_wrong_is_an_error_that_says_so(server: SaslServer, wrong: SaslCredentials) -> None:
    async def scenario() -> None:
        client = connect(server.address, wrong)
        expected = f"SASL as '{wrong.user}': the server did not accept user and password"

        async def open_it() -> None:
            with pytest.raises(AuthenticationError, match=f"connect: {expected}"):
                await client.start()

        async def ask_meanwhile() -> None:
            with pytest.raises(AuthenticationError, match=f"get /: {expected}"):
                await client.get("/")

        await asyncio.gather(open_it(), ask_meanwhile())
        assert client.state is SessionState.AUTH_FAILED
        with pytest.raises(AuthenticationError, match=f"exists /: {expected}"):
            await client.exists("/")
        await client.close()

    run(scenario)


@pytest.mark.parametrize("kind", KINDS)
def test_a_password_that_is_changed_meanwhile_ends_the_session(kind: str) -> None:
    with skipped_where_missing(), SASL_SERVERS[kind]() as server:

        async def scenario() -> None:
            async with connect(server.address, BOB, session_timeout=60) as client:
                await client.get("/")
                server.jaas = JAAS.replace("bobs-secret", "another")
                await asyncio.to_thread(server.restart)
                with pytest.raises(AuthenticationError, match="SASL as 'bob'"):
                    await asking_until_it_fails(client)
                assert client.state is SessionState.AUTH_FAILED

        run(scenario)


def test_kazoo_and_we_are_the_same_user(server: SaslServer) -> None:
    options = {"mechanism": "DIGEST-MD5", "username": "bob", "password": "bobs-secret"}
    kazoo = KazooClient(f"{server.host}:{server.port}", sasl_options=options)
    kazoo.start()
    try:

        async def scenario() -> None:
            async with connect(server.address, BOB) as client:
                acl = [ACL(Permission.ALL, Identity("sasl", "bob"))]
                await client.create("/shared", b"ours", acl=acl)
                assert kazoo.get("/shared")[0] == b"ours"
                await client.delete("/shared")

        run(scenario)
    finally:
        kazoo.stop()
        kazoo.close()


def test_a_server_without_sasl_is_an_error_that_says_so() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            with pytest.raises(
                AuthenticationError, match="connect: SASL as 'bob': the server does not offer SASL"
            ):
                await connect(server.address, BOB).start()

    run(scenario)


def test_a_password_is_shown_nowhere(server: SaslServer, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    assert "bobs-secret" not in f"{BOB!r} {BOB}"
    with pytest.raises(InvalidArgumentError) as caught:
        SaslCredentials("bob", b"bobs-secret")  # type: ignore[arg-type]
    assert "bobs-secret" not in str(caught.value)

    async def scenario() -> None:
        async with connect(server.address, BOB):
            pass
        wrong = connect(server.address, SaslCredentials("alice", "bobs-secret"))
        with pytest.raises(AuthenticationError) as refused:
            await wrong.start()
        assert "bobs-secret" not in str(refused.value)

    run(scenario)
    assert "bobs-secret" not in caplog.text
