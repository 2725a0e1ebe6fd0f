"""A start while etcd does not answer."""

import asyncio
import logging

import pytest

from paddock.log.etcd.statuses import UntrustedError
from paddock.log.etcd.store import Read, StoreError, StoreForbiddenError
from paddock.server.cluster.connection import ANSWER_SECONDS
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import staged


def warnings_of(caplog: pytest.LogCaptureFixture) -> list[str]:
    name = "paddock.server.cluster.connection"
    return [one.getMessage() for one in caplog.records if one.name == name]


@in_virtual_time
async def test_an_etcd_that_does_not_answer_is_said_soon_and_waited_for(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.WARNING)
    async with staged() as stage:
        stage.etcd.link("a").cut()
        start = asyncio.ensure_future(stage.start("a"))
        await asyncio.sleep(2)
        assert warnings_of(caplog) == [
            "etcd does not answer, and is asked again for 59 s: a: the connection broke"
        ]
        await asyncio.sleep(ANSWER_SECONDS / 2)
        stage.etcd.link("a").heal()
        await start
        assert stage.is_serving("a")
    assert len(warnings_of(caplog)) == 1


@in_virtual_time
async def test_an_etcd_that_never_answers_ends_the_start() -> None:
    async with staged() as stage:
        stage.etcd.link("a").cut()
        start = asyncio.ensure_future(stage.start("a"))
        await asyncio.sleep(ANSWER_SECONDS - 1)
        assert not start.done()
        with pytest.raises(StoreError):
            await start


@in_virtual_time
async def test_a_short_election_is_not_told_of(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with staged() as stage:
        stage.etcd.elect(0.5)
        await stage.start("a")
    assert warnings_of(caplog) == []


@pytest.mark.parametrize("error", [UntrustedError("ca.pem"), StoreForbiddenError("no")])
@in_virtual_time
async def test_what_does_not_pass_ends_the_start_at_once(error: StoreError) -> None:
    async with staged() as stage:
        server = stage.make("a", stage.config())
        asked: list[bytes] = []

        async def read(*keys: bytes) -> Read:
            asked.extend(keys)
            raise error

        assert server._store is not None
        server._store.read = read  # type: ignore[method-assign]
        with pytest.raises(type(error)):
            await server.start()
        assert asked == [stage.etcd.keys.id]
