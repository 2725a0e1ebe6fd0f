"""Several reads in one request."""

from __future__ import annotations

import asyncio

import pytest

from paddock import (
    Client,
    InvalidArgumentError,
    LocalProtocolError,
    NoAuthError,
    NoNodeError,
    Permission,
    world_acl,
)
from paddock.testing import FaultProxy
from tests.integration.test_client import DEADLINE_S, path, run, server
from tests.integration.test_client_lost_replies import client_through
from tests.support.apis import api, asyncio_only
from tests.support.server import Service

__all__ = ["api", "path", "server"]


def test_each_read_has_a_result_or_an_error_of_its_own(server: Service, path: str) -> None:
    async def prepare(client: Client) -> None:
        await client.create(f"{path}/a", b"data", make_parents=True)
        await client.create(f"{path}/a/child")
        await client.create(f"{path}/secret", acl=[world_acl(Permission.ADMIN)])

    async def scenario(client: Client) -> None:
        async with client.multi_read() as reads:
            data = reads.get("/a")
            missing = reads.get("/none")
            secret = reads.children("/secret")
            names = reads.children("/a")
            with pytest.raises(LocalProtocolError, match="get /a: not read yet"):
                data.result()
        assert data.result() == await client.get("/a")
        assert names.result() == ["child"]
        assert isinstance(missing.error, NoNodeError)
        with pytest.raises(NoNodeError, match="get /none: no such node"):
            missing.result()
        with pytest.raises(NoAuthError, match="children /secret: "):
            secret.result()

    run(server, prepare)
    run(server, scenario, path)


@asyncio_only
def test_what_is_added_while_others_are_read_is_read_with_the_next(server: Service) -> None:
    async def scenario(client: Client) -> None:
        reads = client.multi_read()
        first = reads.get("/")
        committing = asyncio.ensure_future(reads.commit())
        await asyncio.sleep(0)
        second = reads.get("/")
        await committing
        assert (first.is_done, second.is_done) == (True, False)
        await reads.commit()
        assert second.result() == first.result()

    run(server, scenario)


def test_as_many_as_one_likes_also_none(server: Service) -> None:
    async def scenario(client: Client) -> None:
        await client.multi_read().commit()
        reads = client.multi_read()
        many = [reads.children("/") for _ in range(200)]
        await reads.commit()
        assert all("zookeeper" in one.result() for one in many)
        with pytest.raises(InvalidArgumentError, match="path: "):
            client.multi_read().get("relative")

    run(server, scenario)


def test_reads_are_repeated_after_a_lost_reply(server: Service) -> None:
    async def main() -> None:
        async with (
            asyncio.timeout(DEADLINE_S),
            FaultProxy(server.address) as proxy,
            client_through(proxy) as client,
        ):
            fault = proxy.when(operation="multi_read").cut_after()
            async with client.multi_read() as reads:
                names = reads.children("/")
            assert "zookeeper" in names.result()
            assert len(fault.hits) == 1

    asyncio.run(main())


def test_a_scope_that_is_left_with_an_error_reads_nothing(server: Service) -> None:
    async def scenario(client: Client) -> None:
        reads = client.multi_read()
        names = reads.children("/")
        with pytest.raises(KeyError):
            async with reads:
                raise KeyError
        with pytest.raises(LocalProtocolError, match="children /: not read yet"):
            names.result()

    run(server, scenario)
