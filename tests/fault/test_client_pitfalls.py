"""What has gone wrong in other clients: each of these is the one test that says it does not here.

`tests/unit/test_pitfalls.py` says which is for what.
"""

from __future__ import annotations

import asyncio
import logging
import traceback
from random import Random
from typing import Any

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.client.states import Event, EventType, SessionState
from paddock.errors import (
    AuthenticationError,
    ConnectionLostError,
    NoAuthError,
    SessionExpiredError,
)
from paddock.protocol import opcodes
from paddock.protocol.acl import CREATOR_ALL
from paddock.protocol.jute import Reader
from paddock.protocol.requests import SetWatchesRequest
from paddock.testing import EmbeddedServer, FaultProxy, expire_session, run_virtually
from tests.fault.stage.playing import TIMEOUT_S, play

# What Apache ZooKeeper takes if nobody tells it otherwise.
FRAME_BYTES_MAX = 0xFFFFF


def test_ten_thousand_watches_with_long_paths_survive_a_reconnect() -> None:
    """They are set again in pieces that a server takes, and every one of them fires, once."""
    count = 10_000

    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        paths = [f"/{number:05}-{'long' * 50}" for number in range(count)]
        fired: dict[str, list[EventType]] = {path: [] for path in paths}

        def watcher(event: Event) -> None:
            if event.path is not None:
                fired[event.path].append(event.type)

        # Of all kinds: nodes that are there, that are not, and children.
        await asyncio.gather(*(bystander.create(path) for path in paths[::2]))
        calls: list[asyncio.Future[Any]] = [client.get(p, watch=watcher) for p in paths[::4]]
        calls += [client.children(path, watch=watcher) for path in paths[2::4]]
        calls += [client.exists(path, watch=watcher) for path in paths[1::2]]
        await asyncio.gather(*calls)
        before = len(proxy.requests)
        proxy.refuse(1.0)

        async def touch(path: str) -> None:
            number = int(path[1:6])
            if number % 2:
                await bystander.create(path)
            elif number % 4:
                await bystander.create(f"{path}/child")
            else:
                await bystander.set(path, b"")

        # A half while nobody can be reached, the others when the watches are set again.
        await asyncio.gather(*(touch(path) for path in paths[: count // 2]))
        await client.sync()
        await asyncio.gather(*(touch(path) for path in paths[count // 2 :]))
        await client.sync()
        assert [path for path, events in fired.items() if len(events) != 1] == []
        again = [
            request
            for request in proxy.requests[before:]
            if request.operation == opcodes.SET_WATCHES2
        ]
        assert len(again) > 2
        assert max(len(request.payload) for request in again) <= FRAME_BYTES_MAX
        set_again: list[bytes] = []
        for request in again:
            asked = SetWatchesRequest.read(Reader(request.payload, 8))
            set_again += [*asked.data, *asked.exists, *asked.child]
        assert sorted(set_again) == sorted(path.encode() for path in paths)

    play(story)


def test_only_unfired_watches_are_set_again_with_the_last_zxid_that_was_seen() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        told: list[Event] = []
        for path in ("/fired", "/unfired"):
            await client.create(path)
            await client.get(path, watch=told.append)
        await client.exists("/none", watch=told.append)
        stat = await client.set("/fired", b"")
        await client.create("/last")
        last = await client.exists("/last")
        assert last is not None
        proxy.cut()
        await client.sync()
        (request,) = [one for one in proxy.requests if one.operation == opcodes.SET_WATCHES2]
        asked = SetWatchesRequest.read(Reader(request.payload, 8))
        assert (asked.data, asked.exists, asked.child) == ([b"/unfired"], [b"/none"], [])
        assert asked.relative_zxid == last.czxid > stat.mzxid

    play(story)


def test_a_watch_whose_reply_is_lost_is_set_once_and_fires_once() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        await bystander.create("/n")
        told: list[EventType] = []
        is_told = asyncio.Event()

        def watcher(event: Event) -> None:
            if event.type is not EventType.NONE:
                told.append(event.type)
                is_told.set()

        for operation in ("get", "exists", "get_children", "add_watch"):
            fault = proxy.when(operation=operation).cut_after()
            if operation == "get":
                await client.get("/n", watch=watcher)
            elif operation == "exists":
                await client.exists("/n", watch=watcher)
            elif operation == "get_children":
                await client.children("/n", watch=watcher)
            else:
                await client.add_watch("/n", watcher)
            assert fault.hits
            await bystander.delete("/n")
            await is_told.wait()
            await client.sync()
            assert told == [EventType.DELETED], operation
            told.clear()
            is_told.clear()
            await bystander.create("/n")
            await client.sync()
        assert told == [EventType.CREATED]

    play(story)


def test_a_protected_create_finds_its_own_node_among_strangers() -> None:
    """Names of other clients are left alone, also those with a mark."""

    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        await bystander.create("/box")
        strangers = ["_c_", "_c_-n-0000000000", "n-0000000000", "n--2147483648", "x", "n-"]
        for name in strangers:
            await bystander.create(f"/box/{name}")
        other = await bystander.create("/box/n-", sequential=True, protected=True)
        for _ in range(3):
            proxy.when(operation="create2").cut_after()
            mine = await client.create("/box/n-", sequential=True, protected=True)
            stat = await bystander.exists(mine)
            assert stat is not None
            assert mine != other
        names = await bystander.children("/box")
        assert len(names) == len(strangers) + 1 + 3

    play(story)


def test_a_node_of_a_session_that_is_over_is_never_taken_for_ours() -> None:
    """The reply to a create is lost, and the session with its node before we can look."""

    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        fault = proxy.when(operation="create2").cut_after(stay_away=True)
        creating = client.create("/mine", ephemeral=True, protected=True)
        await fault.happened()
        assert len(await bystander.children("/")) == 2
        await expire_session(proxy.server_address, client.session_id, client.session_password)
        proxy.heal()
        with pytest.raises(SessionExpiredError):
            await creating
        assert client.state is SessionState.EXPIRED
        assert await bystander.children("/") == ["zookeeper"]
        # A new session begins without anything of the old one.
        async with connect(proxy.hosts, random=Random(2)) as following:
            assert await following.ephemerals() == []
            await following.create("/mine", ephemeral=True, protected=True)

    play(story)


async def get_again_and_again(client: Client) -> None:
    while True:
        await client.get("/")


def test_errors_name_what_was_asked_where_and_with_which_code() -> None:
    async def story(client: Client, proxy: FaultProxy, bystander: Client) -> None:
        proxy.when(operation="set").cut_after()
        with pytest.raises(ConnectionLostError) as lost:
            await client.set("/n", b"")
        assert (lost.value.operation, lost.value.path, lost.value.code) == ("set", "/n", -4)
        await expire_session(proxy.server_address, client.session_id, client.session_password)
        with pytest.raises(SessionExpiredError) as expired:
            await get_again_and_again(client)
        assert (expired.value.path, expired.value.code) == ("/", -112)
        with pytest.raises(SessionExpiredError, match="delete /n: "):
            await client.delete("/n")

    play(story, exact=False)


SECRET = "correct-horse-battery-staple"


def test_no_secret_is_in_a_log_or_a_message(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    said: list[str] = []

    async def use(client: Client, proxy: FaultProxy) -> None:
        introducing = client.add_auth("digest", f"somebody:{SECRET}".encode())
        said.append(repr(introducing))
        await introducing
        await client.create("/secret", acl=CREATOR_ALL)
        proxy.when(operation="auth").cut_before()
        proxy.when(operation="get").cut_after()
        await client.get("/secret")
        proxy.cut(reset=True)
        await client.get("/secret")
        said.extend([repr(client), repr(client._session), repr(client._session.auth)])
        refused = client.add_auth("nonsense", SECRET.encode())
        try:
            await refused
        except AuthenticationError as error:
            said.extend(
                [str(error), repr(error), repr(refused), *traceback.format_exception(error)]
            )
        else:
            raise AssertionError("it was accepted")

    async def main() -> None:
        loop = asyncio.get_running_loop()
        loop.set_debug(True)
        # Everything is slow, so that the loop writes down everything that it calls.
        loop.slow_callback_duration = 0.0
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, session_timeout=TIMEOUT_S, random=Random(2)) as client:
                await use(client, proxy)
                password = client.session_password
            async with connect(server.hosts, random=Random(1)) as stranger:
                with pytest.raises(NoAuthError):
                    await stranger.get("/secret")
        said.append(password.hex())

    run_virtually(main())
    password = said.pop()
    ours = [one for one in caplog.records if one.name.startswith(("paddock.client", "asyncio"))]
    assert any(one.name.startswith("paddock.client") for one in ours)
    written = "\n".join([*said, *(one.getMessage() for one in ours), caplog.text])
    assert SECRET not in written
    assert repr(bytes.fromhex(password)) not in written
    assert password not in written
