"""A change feed against a server that does what the test says: wake-ups, other servers, lies."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import Awaitable, Callable, Coroutine
from random import Random
from typing import Any

import pytest
from librt.strings import BytesWriter

from paddock import Client, connect
from paddock.client.states import FeedKind
from paddock.errors import HistoryGoneError, RemoteProtocolError, UnimplementedError
from paddock.protocol import opcodes
from paddock.protocol.changes import (
    END,
    FROM_NOW,
    GONE,
    MORE,
    WAITS,
    ChangesReply,
    ChangesRequest,
    wake_up,
)
from paddock.protocol.exact import CHANGES, EXACT, ExactTerms
from paddock.protocol.jute import Reader
from paddock.protocol.records import ConnectRequest
from paddock.testing import run_virtually
from tests.support.scripted import SESSION_ID, Asked, ScriptedServer, Talk, handshake_reply


def deleted(zxid: int, path: str) -> bytes:
    return struct.pack(">iqi", 2, zxid, len(path)) + path.encode()


def body(state: int, until: int, *changes: bytes) -> bytes:
    writer = BytesWriter()
    ChangesReply(state, until, b"".join(changes)).write(writer)
    return writer.getvalue()


async def shake_hands(talk: Talk, flags: int = EXACT | CHANGES, *, read_only: bool = False) -> None:
    request = ConnectRequest.read(Reader(await talk.hear()))
    generation = talk.number + 1 if flags & EXACT else 0
    window = 8 if flags & EXACT else 0
    writer = BytesWriter()
    ExactTerms(window, generation, 1, 0, 0, 0, b"", flags).write(writer)
    granted = handshake_reply(
        request.session_id or SESSION_ID, 10_000, b"p" * 16, read_only=read_only
    )
    talk.say(granted + writer.getvalue())


async def pull(talk: Talk) -> tuple[int, ChangesRequest]:
    asked: Asked = await talk.request()
    assert asked.operation == opcodes.CHANGES
    return asked.xid, ChangesRequest.read(Reader(asked.body))


def play(
    lead: Callable[[Talk], Awaitable[None]],
    scenario: Callable[[Client], Coroutine[Any, Any, None]],
    **settings: Any,
) -> None:
    async def main() -> None:
        async with ScriptedServer(lead) as server:
            client = connect(server.hosts, random=Random(1), **settings)
            await client.start()
            try:
                await scenario(client)
            finally:
                await client._session.abandon()

    run_virtually(main())


def test_a_wake_up_right_behind_its_reply_is_heard() -> None:
    pulled: list[int] = []

    async def lead(talk: Talk) -> None:
        await shake_hands(talk)
        for zxid in (5, 6, 7):
            xid, request = await pull(talk)
            pulled.append(request.since)
            talk.say(
                struct.pack(">iqi", xid, zxid, 0) + body(WAITS, zxid, deleted(zxid, f"/{zxid}"))
            )
            talk.writer.write(wake_up(request.feed, zxid + 1))
        await talk.wait_left()

    async def scenario(client: Client) -> None:
        feed = client.changes("/")
        assert [(await anext(feed)).zxid for _ in range(3)] == [5, 6, 7]
        assert pulled == [FROM_NOW, 5, 6]
        assert client.last_zxid == 8
        await feed.aclose()

    play(lead, scenario)


def test_one_reply_is_asked_for_ahead_and_no_more() -> None:
    pulled: list[int] = []

    async def lead(talk: Talk) -> None:
        await shake_hands(talk)
        while True:
            xid, request = await pull(talk)
            if request.since == END:
                talk.answer(xid, body(WAITS, 0))
                await talk.wait_left()
                return
            pulled.append(request.since)
            zxid = request.since + 1
            talk.answer(xid, body(MORE, zxid, deleted(zxid, "/a"), deleted(zxid, "/b")))

    async def scenario(client: Client) -> None:
        feed = client.changes("/", since=1)
        first = await anext(feed)
        assert (first.zxid, first.is_last) == (2, False)
        await asyncio.sleep(60)
        assert pulled == [1, 2]
        assert (await anext(feed)).is_last
        assert (await anext(feed)).zxid == 3
        await asyncio.sleep(60)
        assert pulled == [1, 2, 3]
        await feed.aclose()

    play(lead, scenario)


def test_progress_says_how_far_nothing_else_was_found() -> None:
    async def lead(talk: Talk) -> None:
        await shake_hands(talk)
        for reply in (
            body(MORE, 5),
            body(MORE, 7, deleted(6, "/a")),
            body(MORE, 8, deleted(8, "/b")),
            body(WAITS, 9),
        ):
            xid, _ = await pull(talk)
            talk.answer(xid, reply)
        await talk.wait_left()

    async def scenario(client: Client) -> None:
        feed = client.changes("/app", since=1, progress=True)
        found = [await anext(feed) for _ in range(5)]
        assert [(change.kind, change.path, change.zxid) for change in found] == [
            (FeedKind.PROGRESS, "/app", 5),
            (FeedKind.DELETED, "/a", 6),
            (FeedKind.PROGRESS, "/app", 7),
            (FeedKind.DELETED, "/b", 8),
            (FeedKind.PROGRESS, "/app", 9),
        ]
        await feed.aclose()

    play(lead, scenario)


def test_another_connection_is_asked_again_from_where_the_last_one_was() -> None:
    async def lead(talk: Talk) -> None:
        await shake_hands(talk)
        xid, request = await pull(talk)
        if talk.number == 0:
            assert request.since == 1
            talk.answer(xid, body(WAITS, 4))
            # It ends, and the wake-up with it.
        else:
            assert request.since == 4
            talk.answer(xid, body(WAITS, 5, deleted(5, "/a")))
            await talk.wait_left()

    async def scenario(client: Client) -> None:
        feed = client.changes("/", since=1)
        assert (await anext(feed)).zxid == 5
        await feed.aclose()

    play(lead, scenario)


def test_a_server_without_feeds_is_not_sent_a_pull() -> None:
    heard: list[int] = []

    async def lead(talk: Talk) -> None:
        await shake_hands(talk, EXACT | CHANGES if talk.number == 0 else EXACT)
        if talk.number == 0:
            await pull(talk)
            return
        while True:
            asked = await talk.request()
            heard.append(asked.operation)
            talk.answer(asked.xid)

    async def scenario(client: Client) -> None:
        with pytest.raises(UnimplementedError, match="the server has no change feeds; best_effort"):
            await anext(client.changes("/", since=1))
        await client.sync()
        # Nor does a later one reach it.
        with pytest.raises(UnimplementedError):
            await anext(client.changes("/", since=1))
        assert heard == [opcodes.SYNC]

    play(lead, scenario)


def test_a_server_in_read_only_mode_has_feeds_without_an_exact_session() -> None:
    async def lead(talk: Talk) -> None:
        await shake_hands(talk, CHANGES, read_only=True)
        xid, _ = await pull(talk)
        talk.answer(xid, body(WAITS, 5, deleted(5, "/a")))
        await talk.wait_left()

    async def scenario(client: Client) -> None:
        assert not client.is_exact
        feed = client.changes("/", since=0)
        assert (await anext(feed)).zxid == 5
        await feed.aclose()

    play(lead, scenario, read_only=True)


def test_what_is_gone_names_the_oldest() -> None:
    async def lead(talk: Talk) -> None:
        await shake_hands(talk)
        xid, _ = await pull(talk)
        talk.answer(xid, body(GONE, 0x200))
        await talk.wait_left()

    async def scenario(client: Client) -> None:
        with pytest.raises(HistoryGoneError, match=r"no changes since 0x1 any more.* is 0x200$"):
            await anext(client.changes("/", since=1))

    play(lead, scenario)


def test_a_reply_that_cannot_be_decoded_is_told() -> None:
    async def lead(talk: Talk) -> None:
        await shake_hands(talk)
        xid, _ = await pull(talk)
        talk.answer(xid, body(WAITS, 5, deleted(5, "/a")[:-1]))
        await talk.wait_left()

    async def scenario(client: Client) -> None:
        with pytest.raises(RemoteProtocolError, match="changes: length past the end"):
            await anext(client.changes("/", since=1))

    play(lead, scenario)
