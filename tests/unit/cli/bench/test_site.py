"""The folder of a bench: it goes, whatever happens, and nobody else's does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest

import paddock
from paddock.cli.bench.site import CHILDREN, Site, furnished
from paddock.cli.output import CannotBeDone
from paddock.client.client import Client
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually

MARK = b"a mark of ours"


def on_a_server(
    scenario: Callable[[Client, FaultProxy], Awaitable[None]], *, exact: bool = True
) -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            paddock.connect(proxy.hosts, exact=exact) as client,
        ):
            await scenario(client, proxy)

    run_virtually(main())


def test_it_is_furnished_and_it_goes() -> None:
    async def scenario(client: Client, proxy: FaultProxy) -> None:
        site = Site("/bench", MARK)
        async with furnished(client, site, b"data"):
            assert (await client.get(site.node)).data == b"data"
            assert len(await client.children(site.parent)) == CHILDREN
            await client.create(f"{site.created}/1")
            await site.clear(client)
            assert await client.children(site.created) == ["kept"]
        assert await client.exists("/bench") is None

    on_a_server(scenario)


def test_what_is_left_by_one_who_is_killed_goes_with_the_session() -> None:
    async def scenario(client: Client, proxy: FaultProxy) -> None:
        async with client.another() as other:
            site = Site("/bench", MARK)
            await site.make(other)
            await site.furnish(other, b"data")
            gone = asyncio.Event()
            assert await client.exists("/bench", watch=lambda event: gone.set()) is not None
        # Containers go when they are empty, by and by.
        async with asyncio.timeout(3600):
            await gone.wait()
        assert await client.exists("/bench") is None

    on_a_server(scenario)


def test_it_goes_after_an_error_and_the_error_is_what_is_told() -> None:
    async def scenario(client: Client, proxy: FaultProxy) -> None:
        with pytest.raises(ZeroDivisionError):
            async with furnished(client, Site("/bench", MARK), b""):
                raise ZeroDivisionError
        assert await client.exists("/bench") is None

    on_a_server(scenario)


def test_one_that_was_made_though_the_reply_was_lost_goes() -> None:
    async def scenario(client: Client, proxy: FaultProxy) -> None:
        proxy.when(path="/bench").cut_after()
        with pytest.raises(paddock.ConnectionLostError):
            async with furnished(client, Site("/bench", MARK), b""):
                raise AssertionError("it does not begin")
        assert len([one for one in proxy.requests if "/bench" in one.paths]) > 1
        assert await client.exists("/bench") is None

    # In an exact session it would begin.
    on_a_server(scenario, exact=False)


def test_what_somebody_else_has_made_is_refused_and_stays() -> None:
    async def scenario(client: Client, proxy: FaultProxy) -> None:
        await client.create("/bench/theirs", make_parents=True)
        with pytest.raises(CannotBeDone, match="/bench: is there already"):
            async with furnished(client, Site("/bench", MARK), b""):
                raise AssertionError("it does not begin")
        assert await client.children("/bench") == ["theirs"]
        # Not even when it is told to.
        assert await Site("/bench", MARK).remove(client) is None
        assert await client.children("/bench") == ["theirs"]

    on_a_server(scenario)


@asynccontextmanager
async def cut_off(client: Client, proxy: FaultProxy) -> AsyncIterator[None]:
    async with furnished(client, Site("/bench", MARK), b""):
        proxy.refuse()
        yield


def test_if_no_server_can_be_reached_it_says_what_is_left() -> None:
    async def scenario(client: Client, proxy: FaultProxy) -> None:
        with pytest.raises(CannotBeDone, match="/bench: could not be removed, and may be left: "):
            async with cut_off(client, proxy):
                pass

    on_a_server(scenario)


def test_after_an_error_what_is_left_is_a_line_of_its_own(
    capsys: pytest.CaptureFixture[str],
) -> None:
    async def scenario(client: Client, proxy: FaultProxy) -> None:
        with pytest.raises(ZeroDivisionError):
            async with cut_off(client, proxy):
                raise ZeroDivisionError

    on_a_server(scenario)
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("paddock: /bench: could not be removed, and may be left: ")
