"""The list of servers in /zookeeper/config, as clients see it."""

import asyncio

import paddock
from paddock.storage.events import FAULT
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import connect, staged


@in_virtual_time
async def test_a_server_that_joins_fires_watches_on_the_list_through_all_servers() -> None:
    async with staged() as stage:
        await stage.start("a", advertise="a.example:2181")
        await stage.start("b")
        async with connect(stage, "b") as client:
            first = await client.get_config()
            assert first.data == b"server.1=a.example:0:1:participant;a.example:2181\nversion=1"
            events: list[paddock.Event] = []
            await client.get_config(watch=events.append)
            await stage.start("c", advertise="c.example:2181")
            await client.sync("/")
            assert [event.path for event in events] == ["/zookeeper/config"]
            second = await client.get_config()
            added = b"server.2=c.example:0:1:participant;c.example:2181"
            assert second.data.splitlines()[1] == added
            assert second.stat.mzxid > first.stat.mzxid
            assert second.stat.version == -1
        await stage.settle()


@in_virtual_time
async def test_a_client_that_was_away_hears_of_a_new_server_when_it_is_back() -> None:
    async with staged() as stage:
        await stage.start("a", advertise="a.example:2181")
        async with connect(stage, "a", timeout=30) as client:
            heard = asyncio.Event()
            events: list[paddock.Event] = []

            def hear(event: paddock.Event) -> None:
                if event.path is not None:
                    events.append(event)
                    heard.set()

            await client.get_config(watch=hear)
            core = stage.core(stage.servers["a"])
            core.is_open = False
            for connection in list(core.connections):
                connection.abort(FAULT)
            await stage.start("b", advertise="b.example:2181")
            core.is_open = True
            await heard.wait()
            assert [event.path for event in events] == ["/zookeeper/config"]


@in_virtual_time
async def test_a_server_that_has_left_stays_listed() -> None:
    async with staged() as stage:
        await stage.start("a", advertise="a.example:2181")
        await stage.start("b", advertise="b.example:2181")
        async with connect(stage, "a") as client:
            await client.sync("/")
            before = await client.get_config()
            await stage.servers.pop("b").stop()
            await client.sync("/")
            assert await client.get_config() == before
