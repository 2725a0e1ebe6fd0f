"""The configuration of an ensemble: read and changed through the client."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddock import (
    BadVersionError,
    Client,
    Event,
    EventType,
    InvalidArgumentError,
    ReconfigDisabledError,
)
from tests.integration.test_client import DEADLINE_S, client_of, path, run, server
from tests.support.apis import api
from tests.support.ensemble import ApacheEnsemble
from tests.support.server import SUPER_CREDENTIALS, Options, ServerMissingError, Service

__all__ = ["api", "path", "server"]


def test_the_configuration_is_outside_the_chroot(server: Service, path: str) -> None:
    async def prepare(client: Client) -> None:
        await client.create(path)

    async def scenario(client: Client) -> None:
        data, stat = await client.get_config()
        # A standalone server has none.
        assert (b"server.1=" in data) == (server.name in ("ensemble", "cluster"))
        assert stat.data_length == len(data)

    run(server, prepare)
    run(server, scenario, path)


def test_a_service_that_cannot_be_reconfigured_says_so(server: Service) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(ReconfigDisabledError, match="reconfig /zookeeper/config: "):
            await client.reconfig(leaving="1")

    run(server, scenario)


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ({}, "joining, leaving, members: nothing"),
        ({"joining": 4}, "joining: expected text"),
        ({"leaving": ["1", 2]}, "leaving: expected text"),
        ({"members": b"server.1="}, "members: expected text"),
        ({"leaving": "1", "version": -2}, "version: -2"),
        ({"leaving": "1", "version": 2**63}, "version: "),
        ({"leaving": "1", "version": True}, "version: True"),
    ],
)
def test_a_change_that_is_none_is_refused(
    server: Service, arguments: dict[str, Any], named: str
) -> None:
    async def scenario(client: Client) -> None:
        with pytest.raises(InvalidArgumentError, match=named):
            await client.reconfig(**arguments)

    run(server, scenario)


@pytest.mark.judge
def test_a_member_leaves_and_joins_again() -> None:
    async def scenario(ensemble: ApacheEnsemble) -> None:
        events: asyncio.Queue[Event] = asyncio.Queue()
        # A member that leaves drops its clients.
        leader, follower = ensemble.leader(), ensemble.followers()[0]
        leaving = follower.number
        async with asyncio.timeout(DEADLINE_S), client_of(leader) as admin:
            await admin.add_auth("digest", SUPER_CREDENTIALS)
            await admin.create("/app")
            async with client_of(leader, "/app") as client:
                before = (await client.get_config(watch=events.put_nowait)).data.decode()
                lines = before.splitlines()
                one = next(line for line in lines if line.startswith(f"server.{leaving}="))
                version = int(lines[-1].removeprefix("version="), 16)
                with pytest.raises(BadVersionError):
                    await admin.reconfig(leaving=str(leaving), version=version + 1)
                after, stat = await admin.reconfig(leaving=[str(leaving)], version=version)
                assert one not in after.decode()
                assert stat.data_length == len(after)
                event = await events.get()
                assert (event.type, event.path) == (EventType.CHANGED, "/zookeeper/config")
                await client.sync()
                assert (await client.get_config()).data == after
            again, _ = await admin.reconfig(joining=f"{one};{follower.port}")
            assert one in again.decode()

    try:
        ensemble = ApacheEnsemble(Options(durable=False, extra=(("reconfigEnabled", "true"),)))
        with ensemble:
            asyncio.run(scenario(ensemble))
    except ServerMissingError as missing:
        pytest.skip(str(missing))
