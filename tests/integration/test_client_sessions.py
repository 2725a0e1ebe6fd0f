"""How a client's session begins and ends: failures at the start, TLS, credentials, closing."""

from __future__ import annotations

import asyncio
import gc
import ssl
from collections.abc import Callable, Coroutine, Iterator, Sequence
from pathlib import Path
from random import Random
from typing import Any

import pytest

from paddock import (
    ACL,
    AuthenticationError,
    ConnectionLostError,
    Identity,
    Permission,
    SessionExpiredError,
    SessionState,
    UsageError,
    connect,
)
from paddock.server.config.config import ServerConfig
from paddock.testing import EmbeddedServer, FaultProxy
from tests.conformance.conftest import ONE_SERVER_EACH, SERVERS
from tests.support.certificates import Authority, client_context, name
from tests.support.scripted import ScriptedServer, Talk
from tests.support.server import Options, Server

DEADLINE_S = 60.0


@pytest.fixture(scope="module", params=ONE_SERVER_EACH)
def server(request: pytest.FixtureRequest) -> Iterator[Server]:
    with SERVERS[request.param](Options()) as server:
        yield server


def hosts_of(server: Server) -> str:
    return f"{server.host}:{server.port}"


def run(scenario: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Run it, and see that nothing is left behind: no task, no error that nobody looked at."""

    async def main() -> None:
        problems: list[dict[str, Any]] = []
        loop = asyncio.get_running_loop()
        loop.set_exception_handler(lambda _, problem: problems.append(problem))
        async with asyncio.timeout(DEADLINE_S):
            await scenario()
        gc.collect()
        await asyncio.sleep(0)
        assert problems == []
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(main(), debug=True)


async def say_nothing(talk: Talk) -> None:
    await talk.reader.read()


# At the start.


async def failure_of(hosts: str, **settings: Any) -> str:
    """Return the error text of a client that cannot connect."""
    client = connect(hosts, session_timeout=1.5, random=Random(1), **settings)
    with pytest.raises(ConnectionLostError) as caught:
        await client.start()
    assert client.state is SessionState.CLOSED
    text = str(caught.value)
    assert text.startswith("connect: no server gave us a session within 1.5 s: ")
    return text


def test_where_nobody_listens_each_host_is_named() -> None:
    async def scenario() -> None:
        text = await failure_of("127.0.0.1:1,127.0.0.1:2")
        assert "127.0.0.1:1: Connection refused" in text
        assert "127.0.0.1:2: Connection refused" in text

    run(scenario)


def test_a_name_that_is_none_is_named() -> None:
    async def scenario() -> None:
        text = await failure_of("nowhere.invalid:2181")
        assert "nowhere.invalid:2181: the name cannot be resolved: " in text
        assert "a..b:2181: the name cannot be resolved: " in await failure_of("a..b:2181")

    run(scenario)


@pytest.mark.parametrize(
    "greeting", [b"HTTP/1.1 400 Bad Request\r\n\r\n", b"SSH-2.0-OpenSSH_9.2\r\n", b"\x15\x03\x01\0"]
)
def test_what_is_no_zookeeper_is_named(greeting: bytes) -> None:
    async def scenario() -> None:
        async def greet(talk: Talk) -> None:
            talk.writer.write(greeting)
            await talk.writer.drain()

        async with ScriptedServer(greet) as server:
            assert "it does not speak ZooKeeper's protocol" in await failure_of(server.hosts)

    run(scenario)


def test_somebody_who_says_nothing_is_named() -> None:
    async def scenario() -> None:
        async with ScriptedServer(say_nothing) as server:
            assert f"{server.hosts}: no answer in time" in await failure_of(server.hosts)

    run(scenario)


# TLS.


def secured(
    folder: Path, authority: Authority, hosts: Sequence[str] = ("127.0.0.1",)
) -> ServerConfig:
    store = authority.issue(name("CN=server"), hosts=hosts).write(folder / "server.pem")
    trusted = folder / "trusted.pem"
    trusted.write_bytes(authority.pem())
    return ServerConfig(
        port=0,
        secure_port=0,
        tls_key_store=store,
        tls_trust_store=trusted,
        tls_client_auth="want",
    )


def test_a_session_over_tls(tmp_path: Path) -> None:
    async def scenario() -> None:
        authority = Authority()
        context = client_context(authority.pem(), tmp_path, authority.issue(name("CN=client")))
        async with EmbeddedServer(config=secured(tmp_path, authority)) as server:
            host, port = server.secure_address
            async with connect(f"{host}:{port}", tls=context, random=Random(1)) as client:
                await client.create("/secured", b"1")
                assert (await client.get("/secured")).data == b"1"
                assert ("x509", "CN=client") in await client.who_am_i()

    run(scenario)


def test_a_certificate_that_is_not_trusted_is_an_error_that_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        authority = Authority()
        async with EmbeddedServer(config=secured(tmp_path, authority)) as server:
            host, port = server.secure_address
            stranger = client_context(Authority("Another").pem(), tmp_path)
            text = await failure_of(f"{host}:{port}", tls=stranger)
            assert f"{host}:{port}: its certificate is not accepted: " in text

    run(scenario)


def test_a_certificate_for_another_name_is_an_error_that_says_so(tmp_path: Path) -> None:
    async def scenario() -> None:
        authority = Authority()
        config = secured(tmp_path, authority, hosts=("elsewhere",))
        async with EmbeddedServer(config=config) as server:
            host, port = server.secure_address
            text = await failure_of(f"{host}:{port}", tls=client_context(authority.pem(), tmp_path))
            assert f"{host}:{port}: its certificate is not accepted: IP address mismatch" in text

    run(scenario)


def test_tls_and_no_tls_do_not_understand_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        authority = Authority()
        async with EmbeddedServer(config=secured(tmp_path, authority)) as server:
            plain, secure = server.address, server.secure_address
            context: ssl.SSLContext = client_context(authority.pem(), tmp_path)
            text = await failure_of(f"{plain[0]}:{plain[1]}", tls=context)
            assert f"{plain[0]}:{plain[1]}: it ends the TLS handshake" in text
            text = await failure_of(f"{secure[0]}:{secure[1]}")
            assert f"{secure[0]}:{secure[1]}: " in text

    run(scenario)


# Credentials.


def test_credentials_that_are_not_accepted_end_the_session(server: Server) -> None:
    async def scenario() -> None:
        async with connect(hosts_of(server), random=Random(1)) as client:
            states = client.states()
            assert await anext(states) is SessionState.CONNECTED
            refused = client.add_auth("nonsense", b"x")
            behind = client.get("/")
            reason = "the credentials of the scheme 'nonsense' were not accepted"
            with pytest.raises(AuthenticationError, match=f"add_auth: {reason}"):
                await refused
            with pytest.raises(AuthenticationError, match=f"get /: {reason}"):
                await behind
            with pytest.raises(AuthenticationError, match=f"exists /: {reason}"):
                await client.exists("/")
            with pytest.raises(AuthenticationError, match="add_auth: "):
                await client.add_auth("digest", b"a:b")
            assert [state async for state in states] == [SessionState.AUTH_FAILED]

    run(scenario)


def test_credentials_are_said_again_before_what_needs_them(server: Server) -> None:
    async def scenario() -> None:
        async with FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, random=Random(1)) as client:
                await client.add_auth("digest", b"user:secret")
                path = "/credentials-again"
                await client.create(path, acl=[ACL(Permission.ALL, Identity("auth", ""))])
                proxy.when(operation="get").cut_before()
                await client.get(path)
                await client.delete(path)

    run(scenario)


# The end.


def test_closing_twice_and_at_the_same_time(server: Server) -> None:
    async def scenario() -> None:
        async with connect(hosts_of(server), random=Random(1)) as client:
            await client.create("/closing", ephemeral=True)
            await asyncio.gather(*(client.close() for _ in range(5)))
            assert client.state is SessionState.CLOSED
            await client.close()
        # The session has really ended, for the service, too.
        async with connect(hosts_of(server), random=Random(1)) as other:
            assert await other.exists("/closing") is None

    run(scenario)


def test_closing_while_nobody_is_there() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            client = connect(proxy.hosts, session_timeout=1.5, random=Random(1))
            await client.start()
            proxy.refuse()
            waiting = client.get("/")
            await client.close()
            with pytest.raises(ConnectionLostError):
                await waiting
            assert client.state is SessionState.CLOSED

    run(scenario)


@pytest.mark.parametrize("behaviour", ["refuses", "silent"])
def test_closing_and_cancelling_while_it_connects(behaviour: str) -> None:
    async def scenario() -> None:
        async with ScriptedServer(say_nothing) as server:
            hosts = "127.0.0.1:1" if behaviour == "refuses" else server.hosts
            client = connect(hosts, session_timeout=30, random=Random(1))
            connecting = asyncio.create_task(client.start())
            await asyncio.sleep(0.01)
            await client.close()
            with pytest.raises(SessionExpiredError, match="connect: the client is closed"):
                await connecting
            another = connect(hosts, session_timeout=30, random=Random(1))
            connecting = asyncio.create_task(another.start())
            await asyncio.sleep(0.01)
            connecting.cancel()
            with pytest.raises(asyncio.CancelledError):
                await connecting
            assert another.state is SessionState.CLOSED
            await another.close()

    run(scenario)


def test_closing_what_was_never_opened() -> None:
    async def scenario() -> None:
        client = connect("127.0.0.1:1", random=Random(1))
        await client.close()
        assert client.state is SessionState.CLOSED

    run(scenario)


# Calls where there is nobody to answer them.


def test_what_is_asked_of_a_client_that_is_not_open_is_refused_and_does_not_hang() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server:
            client = connect(server.hosts, random=Random(1))
            calls = (
                lambda: client.get("/"),
                lambda: client.create("/early", make_parents=True),
                lambda: client.delete_tree("/early"),
                lambda: client.add_auth("digest", b"alice:secret"),
                lambda: client.transaction().delete("/early").commit(),
                lambda: anext(client.watch("/early")),
                client.wait_connected,
            )
            for call in calls:
                with pytest.raises(UsageError, match="the client is not open: enter its scope"):
                    await call()
            async with client:
                assert await client.exists("/early") is None

    run(scenario)


def test_opening_a_client_twice_is_refused_and_leaves_it_as_it_is() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, connect(server.hosts, random=Random(1)) as client:
            with pytest.raises(UsageError, match="a client is opened once"):
                await client.start()
            assert await client.exists("/") is not None
            await client.close()
            with pytest.raises(UsageError, match="a client is opened once"):
                await client.start()

    run(scenario)


def test_a_client_is_for_its_own_event_loop() -> None:
    with pytest.raises(UsageError, match=r"none runs here; use paddock\.sync\.connect"):
        connect("127.0.0.1")

    async def scenario() -> None:
        async with EmbeddedServer() as server, connect(server.hosts, random=Random(1)) as client:

            async def ask() -> None:
                await client.get("/")

            with pytest.raises(UsageError, match="a client is for the event loop on which"):
                await asyncio.to_thread(asyncio.run, ask())
            with pytest.raises(UsageError, match="a client is for the event loop on which"):
                await asyncio.to_thread(client.sync)
            assert await client.exists("/") is not None

    run(scenario)


def test_cancelling_the_close_leaves_nothing_behind() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            client = connect(proxy.hosts, random=Random(1))
            await client.start()
            proxy.blackhole()
            closing = asyncio.create_task(client.close())
            await asyncio.sleep(0.01)
            closing.cancel()
            with pytest.raises(asyncio.CancelledError):
                await closing
            assert client.state is SessionState.CLOSED

    run(scenario)


def test_a_body_that_fails_still_closes(server: Server) -> None:
    async def scenario() -> None:
        client = connect(hosts_of(server), random=Random(1))
        with pytest.raises(ZeroDivisionError):
            async with client:
                raise ZeroDivisionError
        assert client.state is SessionState.CLOSED

    run(scenario)


def test_the_answer_to_the_close_may_be_lost() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            seen: list[SessionState] = []
            async with connect(proxy.hosts, random=Random(1)) as client:
                client.add_listener(seen.append)
                proxy.when(operation="close_session").cut_after()
            assert seen[-1] is SessionState.CLOSED

    run(scenario)
