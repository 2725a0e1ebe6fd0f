"""A server that is broken or hostile: the client goes on, and says what was wrong.

Whatever a server sends, nothing hangs, nothing spins, nothing reaches the event loop's exception
handler, and what callers get is an error of ours. In virtual time, on a server with a script.
"""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from random import Random
from typing import Any, TypeAlias

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import (
    AuthenticationError,
    ConnectionLostError,
    PaddockError,
    RemoteProtocolError,
    RequestError,
    SessionExpiredError,
    UnknownCodeError,
)
from paddock.protocol import opcodes
from paddock.testing import run_virtually
from tests.fault.stage.cutting import in_real_time
from tests.support.scripted import (
    SESSION_ID,
    Asked,
    ScriptedServer,
    Talk,
    buffer,
    event,
    good_body,
    handshake_reply,
    reply,
    stat,
)

TIMEOUT_S = 10.0

Script: TypeAlias = Callable[[Talk], Awaitable[None]]


@pytest.fixture(autouse=True)
def no_spinning() -> Iterator[None]:
    with in_real_time(60):
        yield


def play(
    script: Script,
    story: Callable[[Client, ScriptedServer], Coroutine[Any, Any, None]],
    **settings: Any,
) -> None:
    """Play a story of a client, which is not open yet, against a script."""

    async def main() -> list[str]:
        problems: list[str] = []
        asyncio.get_running_loop().set_exception_handler(
            lambda _, context: problems.append(f"{context['message']} {context.get('exception')}")
        )
        async with asyncio.timeout(600), ScriptedServer(script) as server:
            client = connect(server.hosts, session_timeout=TIMEOUT_S, random=Random(1), **settings)
            await story(client, server)
            await client.close()
        return problems

    assert run_virtually(main()) == []


# What a server says in place of the reply to a request.
NONSENSE: dict[str, Callable[[Asked], bytes]] = {
    "nothing that is a frame": lambda asked: b"HTTP/1.1 400 Bad Request\r\n\r\n",
    "a length below zero": lambda asked: struct.pack(">i", -1),
    "the least length": lambda asked: struct.pack(">i", -(2**31)),
    "the largest length": lambda asked: struct.pack(">i", 2**31 - 1) + b"x",
    "an empty frame": lambda asked: bytes(4),
    "half a header": lambda asked: buffer(bytes(8)),
    "a reply to what was not asked": lambda asked: buffer(reply(asked.xid + 1)),
    "a reply to what was asked long ago": lambda asked: buffer(reply(asked.xid - 1)),
    "a reply to request 0": lambda asked: buffer(reply(0)),
    "a reply to request -100": lambda asked: buffer(reply(-100)),
    "a pong without a ping": lambda asked: buffer(reply(-2)),
    "a word on credentials that were not given": lambda asked: buffer(reply(-4)),
    "an event of an unknown type": lambda asked: buffer(event(4711, b"/n")),
    "an event that ends early": lambda asked: buffer(event(3, b"/n")[:-1]),
    "an event without a path": lambda asked: buffer(reply(-1, struct.pack(">iii", 3, 3, -1))),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_costs_the_connection_and_nothing_else(name: str) -> None:
    async def script(talk: Talk) -> None:
        await talk.grant()
        if talk.number == 0:
            talk.writer.write(NONSENSE[name](await talk.request()))
            await talk.wait_left()
        await talk.serve()

    async def story(client: Client, server: ScriptedServer) -> None:
        async with client:
            # Sent together: the read is repeated, of the write nobody knows.
            reading, writing = client.get("/n"), client.set("/n", b"")
            assert (await reading).data == b"data"
            with pytest.raises(ConnectionLostError, match="set /n"):
                await writing
            await client.set("/n", b"")
        assert server.talks == 2

    play(script, story)


async def read_as_one(client: Client, path: str) -> None:
    async with client.multi_read() as reads:
        reads.get(path)


# Calls, and bodies that are no answers to them.
BROKEN: dict[str, tuple[Callable[[Client], Awaitable[Any]], bytes]] = {
    "get: nothing": (lambda client: client.get("/n"), b""),
    "get: data past the end": (lambda client: client.get("/n"), struct.pack(">i", 99) + b"x"),
    "get: a length below zero": (lambda client: client.get("/n"), struct.pack(">i", -7) + stat()),
    "get: half a stat": (lambda client: client.get("/n"), buffer(b"data") + stat()[:40]),
    "exists: half a stat": (lambda client: client.exists("/n"), stat()[:-1]),
    "set: nothing": (lambda client: client.set("/n", b""), b""),
    "create: no path": (lambda client: client.create("/n"), struct.pack(">i", -1)),
    "children: a name that is no text": (
        lambda client: client.children("/n"),
        struct.pack(">i", 1) + buffer(b"\xff\xfe"),
    ),
    "children: more than there are": (
        lambda client: client.children("/n"),
        struct.pack(">i", 2**31 - 1) + buffer(b"x"),
    ),
    "a transaction: an end without results": (
        lambda client: client.transaction().set("/n", b"").commit(),
        struct.pack(">ibi", -1, 1, -1),
    ),
    "reads as one: an answer to something else": (
        lambda client: read_as_one(client, "/n"),
        struct.pack(">ibi", opcodes.DELETE, 0, 0),
    ),
    "a transaction: nothing": (
        lambda client: client.transaction().set("/n", b"").commit(),
        b"",
    ),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_reply_that_cannot_be_understood_is_an_error_of_the_server(name: str) -> None:
    call, body = BROKEN[name]

    async def script(talk: Talk) -> None:
        await talk.grant()
        if talk.number == 0:
            talk.answer((await talk.request()).xid, body)
            await talk.wait_left()
        await talk.serve()

    async def story(client: Client, server: ScriptedServer) -> None:
        async with client:
            with pytest.raises(RemoteProtocolError):
                await call(client)
            assert (await client.get("/n")).data == b"data"

    play(script, story)


def test_an_unknown_code_is_a_plain_refusal_and_the_session_goes_on() -> None:
    async def script(talk: Talk) -> None:
        await talk.grant()
        talk.answer((await talk.request()).xid, code=-4711)
        await talk.serve()

    async def story(client: Client, server: ScriptedServer) -> None:
        async with client:
            with pytest.raises(UnknownCodeError, match=r"get /n: .*\(code -4711\)") as caught:
                await client.get("/n")
            error = caught.value
            assert isinstance(error, RequestError)
            assert (error.operation, error.path, error.number) == ("get", "/n", -4711)
            assert (await client.get("/n")).data == b"data"
            assert server.talks == 1

    play(script, story)


def test_an_event_on_an_odd_path_reaches_nobody_and_does_no_harm() -> None:
    async def script(talk: Talk) -> None:
        await talk.grant()
        watching, asked = await talk.request(), await talk.request()
        talk.answer(watching.xid)
        for path in (b"", b"no-slash", b"//", b"/\xff", b"/x/"):
            for kind in (1, 2, 3, 4, 5, 6, 7):
                talk.say(event(kind, path))
        talk.answer(asked.xid, good_body(asked.operation))
        await talk.serve()

    async def story(client: Client, server: ScriptedServer) -> None:
        async with client:
            told: list[Event] = []
            watching = client.add_watch("/n", told.append, recursive=True)
            reading = client.get("/n")
            await watching
            await reading
            assert [one for one in told if one.type is not EventType.NONE] == []
            assert server.talks == 1

    play(script, story)


# What a server says to a handshake, before it closes or waits.
HANDSHAKES: dict[str, bytes] = {
    "nothing": b"",
    "no frame": b"SSH-2.0-OpenSSH_9.2\r\n",
    "an empty frame": bytes(4),
    "half of it": buffer(handshake_reply(SESSION_ID, 9000, None)[:9]),
    "a frame that never ends": struct.pack(">i", 1 << 20) + bytes(100),
}


@pytest.mark.parametrize("closes", [True, False], ids=["and closes", "and waits"])
@pytest.mark.parametrize("name", HANDSHAKES)
def test_a_handshake_that_is_none_is_tried_again_with_pauses(name: str, closes: bool) -> None:
    async def script(talk: Talk) -> None:
        await talk.hear()
        talk.writer.write(HANDSHAKES[name])
        if not closes:
            await talk.wait_left()

    async def story(client: Client, server: ScriptedServer) -> None:
        with pytest.raises(ConnectionLostError, match="connect"):
            await client.start()
        assert client.state is SessionState.CLOSED
        assert 2 <= server.talks <= 30

    play(script, story)


@pytest.mark.parametrize("answers", [0, 1])
def test_a_server_that_closes_again_and_again_is_not_asked_all_the_time(answers: int) -> None:
    """Also one that takes the session each time, or even answers a request."""

    async def script(talk: Talk) -> None:
        await talk.grant()
        if talk.number == 0:
            talk.answer((await talk.request()).xid, good_body(opcodes.GET_DATA))
        for _ in range(answers):
            asked = await talk.request()
            talk.answer(asked.xid, good_body(asked.operation))

    async def story(client: Client, server: ScriptedServer) -> None:
        await client.start()
        await client.get("/n")
        before = server.talks
        began = asyncio.get_running_loop().time()
        reads = 0
        while asyncio.get_running_loop().time() < began + 60:
            async with asyncio.timeout(60):
                try:
                    await client.get("/n")
                    reads += 1
                except ConnectionLostError:
                    await asyncio.sleep(1)
        # Each connection that was of use may be followed by another one at once.
        assert server.talks - before <= 200 + reads

    play(script, story)


@pytest.mark.parametrize("timeout_ms", [0, -1])
def test_a_session_without_time_is_none(timeout_ms: int) -> None:
    async def script(talk: Talk) -> None:
        await talk.grant(timeout_ms=timeout_ms, session_id=0)
        await talk.wait_left()

    async def story(client: Client, server: ScriptedServer) -> None:
        with pytest.raises(PaddockError):
            await client.start()
        assert client.state.is_final

    play(script, story)


@pytest.mark.parametrize("session_id", [SESSION_ID + 1, 0])
def test_another_session_than_ours_is_none(session_id: int) -> None:
    """A server that has lost our session and gives us a new one: our ephemeral nodes are gone."""

    async def script(talk: Talk) -> None:
        await talk.grant(session_id=SESSION_ID if talk.number == 0 else session_id)
        if talk.number == 0:
            await talk.request()
            return
        await talk.serve()

    async def story(client: Client, server: ScriptedServer) -> None:
        async with client:
            with pytest.raises(SessionExpiredError):
                await client.get("/n")
            assert client.state is SessionState.EXPIRED

    play(script, story)


def test_credentials_that_are_refused_end_the_session() -> None:
    async def script(talk: Talk) -> None:
        await talk.grant()
        await talk.request()
        talk.say(reply(-4, code=-115))
        await talk.wait_left()

    async def story(client: Client, server: ScriptedServer) -> None:
        async with client:
            introducing, reading = client.add_auth("digest", b"a:b"), client.get("/n")
            with pytest.raises(AuthenticationError):
                await introducing
            with pytest.raises(AuthenticationError):
                await reading
            assert client.state is SessionState.AUTH_FAILED

    play(script, story)


def test_a_reply_that_comes_in_small_pieces_is_waited_for() -> None:
    """A long list over a slow line is no silence."""

    async def script(talk: Talk) -> None:
        await talk.grant()
        asked = await talk.request()
        whole = buffer(reply(asked.xid, buffer(bytes(100)) + stat()))
        for one in whole:
            talk.writer.write(bytes([one]))
            await asyncio.sleep(TIMEOUT_S / len(whole) * 0.9)
        await talk.serve()

    async def story(client: Client, server: ScriptedServer) -> None:
        async with client:
            assert (await client.get("/n")).data == bytes(100)
            assert server.talks == 1

    play(script, story)
