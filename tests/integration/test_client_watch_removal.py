"""Watches removed: all on a path, those of a kind, those of one watcher; and lost replies."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddock import (
    Client,
    Event,
    EventType,
    InvalidArgumentError,
    NoWatcherError,
    WatchKind,
)
from paddock.testing import FaultProxy
from tests.integration.test_client import DEADLINE_S, client_of, path, run, server
from tests.integration.test_client_lost_replies import client_through
from tests.support.apis import api, asyncio_only
from tests.support.server import Service

__all__ = ["api", "path", "server"]

Events = asyncio.Queue[Event]


async def has_server_watch(client: Client, path: str) -> bool:
    """Ask the server, behind the client's back, by having it remove what it has."""
    watches = client._session.watches
    kept = watches.persistent.get(path.encode()), watches.data.get(path.encode())
    assert kept == (None, None), "the client has watches of its own there"
    try:
        await client.remove_watches(path)
    except NoWatcherError:
        return False
    return True


def test_one_of_several_watchers_goes_and_the_others_stay(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        mine, yours = Events(), Events()
        for events in (mine, yours):
            await client.get(path, watch=events.put_nowait)
            await client.add_watch(path, events.put_nowait)
        await client.remove_watches(path, watcher=mine.put_nowait)
        await client.set(path, b"1")
        await client.set(path, b"2")
        assert [(await yours.get()).type for _ in range(2)] == [EventType.CHANGED] * 2
        assert mine.empty()
        with pytest.raises(NoWatcherError, match=f"watches {path}: there is no such watch"):
            await client.remove_watches(path, watcher=mine.put_nowait)
        # With the last one of ours the server's watch goes, too.
        await client.remove_watches(path, watcher=yours.put_nowait)
        assert not await has_server_watch(client, path)

    run(server, scenario)


def test_a_kind_goes_and_a_persistent_watch_keeps_both_its_halves(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        once, lasting = Events(), Events()
        await client.children(path, watch=once.put_nowait)
        await client.add_watch(path, lasting.put_nowait)
        await client.remove_watches(path, WatchKind.CHILDREN)
        with pytest.raises(NoWatcherError):
            await client.remove_watches(path, WatchKind.DATA, watcher=once.put_nowait)
        await client.create(f"{path}/child")
        await client.set(path, b"1")
        seen = [(await lasting.get()).type for _ in range(2)]
        assert seen == [EventType.CHILDREN_CHANGED, EventType.CHANGED]
        assert once.empty()

    run(server, scenario)


def test_a_watch_that_is_on_its_way_is_removed_in_its_turn(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        mine, yours = Events(), Events()
        await asyncio.gather(
            client.get(path, watch=mine.put_nowait),
            client.get(path, watch=yours.put_nowait),
            client.remove_watches(path, watcher=mine.put_nowait),
            client.set(path, b"1"),
        )
        assert (await yours.get()).type is EventType.CHANGED
        assert mine.empty()
        reading = client.get(path, watch=mine.put_nowait)
        removing = client.remove_watches(path)
        await asyncio.gather(reading, removing)
        await client.set(path, b"2")
        await client.sync()
        assert mine.empty()

    run(server, scenario)


def test_a_watcher_that_watches_already_and_is_just_being_set_once_more_goes_altogether(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        mine, yours = Events(), Events()
        for events in (mine, yours):
            await client.add_watch(path, events.put_nowait)
        reading = client.get(path, watch=mine.put_nowait)
        removing = client.remove_watches(path, watcher=mine.put_nowait)
        await asyncio.gather(reading, removing)
        await client.set(path, b"1")
        assert (await yours.get()).type is EventType.CHANGED
        assert mine.empty()

    run(server, scenario)


@pytest.mark.parametrize("changes_meanwhile", [True, False])
def test_a_removal_whose_reply_is_lost_is_done(
    server: Service, path: str, changes_meanwhile: bool
) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(DEADLINE_S),
            FaultProxy(server.address) as proxy,
            client_of(server) as direct,
            client_through(proxy) as client,
        ):
            events = Events()
            await client.create(path)
            await client.get(path, watch=events.put_nowait)
            fault = proxy.when(operation="remove_watches").cut_after(stay_away=True)
            removing = client.remove_watches(path)
            await fault.happened()
            if changes_meanwhile:
                # Set again after the reconnect, it fires at once, and there is none any more.
                await direct.set(path, b"1")
            proxy.heal()
            await removing
            with pytest.raises(NoWatcherError):
                await client.remove_watches(path)

    asyncio.run(main())


def test_without_a_connection_watches_are_removed_at_once_and_not_set_again(
    server: Service, path: str
) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(DEADLINE_S),
            FaultProxy(server.address) as proxy,
            client_through(proxy) as client,
        ):
            events = Events()
            await client.create(path)
            await client.add_watch(path, events.put_nowait)
            proxy.refuse()
            assert not (await events.get()).state.is_connected
            await client.remove_watches(path)
            proxy.heal()
            assert not await has_server_watch(client, path)
            assert events.empty()

    asyncio.run(main())


def test_a_stream_that_is_left_takes_its_watch_along(server: Service, path: str) -> None:
    async def scenario(client: Client) -> None:
        stream = client.watch(path, recursive=True)
        await client.create(path)
        async for change in stream:
            assert change.path == path
            break
        await stream.aclose()
        assert not await has_server_watch(client, path)

    run(server, scenario)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({"kind": 3}, "kind: expected a WatchKind"),
        ({"watcher": "print"}, "watcher: 'print' cannot be called"),
        ({"path": "a"}, "path: "),
    ],
)
def test_a_removal_that_makes_no_sense_is_refused(
    server: Service, arguments: dict[str, Any], named: str
) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(InvalidArgumentError, match=named):
            await client.remove_watches(**{"path": "/a", **arguments})

    run(server, scenario)


@asyncio_only
def test_a_lasting_watch_that_was_given_up_does_not_stay_on_the_server(
    server: Service, path: str
) -> None:
    async def scenario(client: Client) -> None:
        await client.create(path)
        adding = client.add_watch(path, print, recursive=True)
        # Now it is sent, and nobody can call it back.
        await asyncio.sleep(0)
        adding.cancel()
        await client.sync()
        assert not await has_server_watch(client, path)

    run(server, scenario)
