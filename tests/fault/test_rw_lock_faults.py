"""A read-write lock in every trouble: many readers or one writer, and nothing is left behind."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from random import Random
from typing import Final

import pytest

from paddock.api import connect
from paddock.recipes import ReadWriteLock
from paddock.testing import Direction, EmbeddedServer, FaultProxy, run_virtually
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Story, everybody_held
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

# Longer than a session lives that nobody hears of: a holder that is cut off has to be told.
LONG_S: Final = 12.0
# More than there are readers.
MANY: Final = 100


def reader(after_s: float = 0.0, for_s: float = 2.0) -> Part:
    """Return a reader that requests the lock after `after_s` and holds it for `for_s` seconds."""

    async def read(me: Player) -> None:
        await asyncio.sleep(after_s)
        async with ReadWriteLock(me.client, "/recipe").read as grant:
            with me.holds(grant.token, share=1):
                await me.write(grant)
                await asyncio.sleep(for_s)
                await me.write(grant)

    return read


def writer(after_s: float = 0.0, for_s: float = 2.0) -> Part:
    """Return a writer that requests the lock after `after_s` and holds it for `for_s` seconds."""

    async def write(me: Player) -> None:
        await asyncio.sleep(after_s)
        async with ReadWriteLock(me.client, "/recipe").write as grant:
            with me.holds(grant.token):
                await me.write(grant)
                await asyncio.sleep(for_s)
                await me.write(grant)

    return write


def writer_then_reader(after_s: float, for_s: float, then_for_s: float) -> Part:
    """Return a writer that holds the lock for `for_s` seconds and then downgrades to reading."""

    async def write_and_read(me: Player) -> None:
        await asyncio.sleep(after_s)
        lock = ReadWriteLock(me.client, "/recipe")
        async with lock.write as writing:
            with ExitStack() as holding:
                hold = holding.enter_context(me.holds(writing.token))
                await me.write(writing)
                await asyncio.sleep(for_s)
                async with lock.read as reading:
                    with holding.pop_all():
                        # For the others from the moment at which the service hears of it.
                        hold.share = 1
                        await writing.release()
                        await me.write(reading)
                        await asyncio.sleep(then_for_s)
                        await me.write(reading)

    return write_and_read


# A reader is before it; a writer and a reader come while it waits or writes.
FROM_WRITING_TO_READING: Final = Story(
    subject=writer_then_reader(1.0, 2.0, LONG_S),
    rivals=(reader(), writer(1.5), reader(2.5)),
    capacity=MANY,
    judge=everybody_held,
)
READING: Final = Story(
    subject=reader(1.0, LONG_S),
    rivals=(writer(), reader(1.5), writer(2.0)),
    capacity=MANY,
    judge=everybody_held,
)


# Of two cuts not all: there are three times as many requests as a lock has.
@pytest.mark.parametrize("trouble", [one for one in TROUBLES if one != "every two cuts"])
def test_a_writer_that_goes_on_as_a_reader_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](FROM_WRITING_TO_READING) > 1


@pytest.mark.parametrize("trouble", BRIEF)
def test_a_reader_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](READING) > 1


def test_a_writer_that_does_not_know_yet_that_it_is_none_does_not_go_on_as_a_reader() -> None:
    """Its node has gone, another one writes, and no word of that has come through."""

    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(proxy.hosts, random=Random(1)) as client,
            connect(server.hosts, random=Random(2)) as other,
        ):
            lock = ReadWriteLock(client, "/lock")
            writing = await lock.write.acquire()
            await client.sync()
            proxy.blackhole(Direction.TO_CLIENT)
            await other.delete(writing.path)
            async with ReadWriteLock(other, "/lock").write as later:
                asked = proxy.when(operation="multi").delay(0.0)
                reading = asyncio.create_task(lock.read.acquire())
                await asked.happened()
                await asyncio.sleep(1.0)
                assert writing.is_held
                assert await other.children("/lock") == [later.path.rpartition("/")[2]]
                reading.cancel()
                await asyncio.wait([reading])
            proxy.heal()

    run_virtually(main())
