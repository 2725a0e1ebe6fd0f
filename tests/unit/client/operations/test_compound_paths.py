"""Whole paths are created while others delete them, and while connections are lost."""

from __future__ import annotations

from random import Random

import pytest

from paddock import ConnectionLostError, NoNodeError, connect
from paddock.client.client import Client
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually


def test_a_path_is_ensured_whatever_is_lost() -> None:
    async def story(client: Client) -> None:
        await client.ensure_path("/a/b/c")
        assert await client.children("/a/b") == ["c"]

    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            for exact in (False, True):
                for nth in range(1, 8):
                    for is_after in (False, True):
                        fault = proxy.when(nth=nth)
                        _ = fault.cut_after() if is_after else fault.cut_before()
                        async with connect(
                            f"{proxy.hosts}/{exact}{nth}{is_after}", random=Random(nth), exact=exact
                        ) as client:
                            await story(client)
                        proxy.heal()

    run_virtually(scenario())


@pytest.mark.parametrize("deletions", [3, 100])
def test_a_race_with_those_who_delete_ends(deletions: int) -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, connect(server.hosts, random=Random(1)) as client:
            left = deletions
            create = client.create

            def create_and_delete(path: str, **named: object) -> object:
                nonlocal left
                made = create(path, **named)  # type: ignore[arg-type]
                if path == "/a" and left:
                    left -= 1
                    client.delete("/a").add_done_callback(lambda one: one.exception())
                return made

            client.create = create_and_delete  # type: ignore[assignment, method-assign]
            if deletions < 10:
                await client.ensure_path("/a/b")
                assert await client.exists("/a/b") is not None
            else:
                with pytest.raises(NoNodeError, match="create /a/b"):
                    await client.ensure_path("/a/b")
                assert left == deletions - 10

    run_virtually(scenario())


def test_of_a_call_whose_first_request_failed_nobody_says_that_it_had_no_effect() -> None:
    async def scenario() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts, random=Random(1)) as client:
                # The parent is created, and then nothing can be sent.
                proxy.when(operation="create2", nth=2).cut_after(stay_away=True)
                with pytest.raises(
                    ConnectionLostError, match="exists /a: it was not sent"
                ) as error:
                    await client.create("/a/b", make_parents=True)
                assert error.value.may_be_applied
                with pytest.raises(ConnectionLostError) as unsent:
                    await client.create("/c/d", make_parents=True)
                assert not unsent.value.may_be_applied
                with pytest.raises(ConnectionLostError) as unsent:
                    await client.ensure_path("/e")
                assert not unsent.value.may_be_applied
                proxy.heal()

    run_virtually(scenario())
