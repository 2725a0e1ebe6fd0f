"""Several locks as one in every trouble: all or none, nobody waits in a circle, nothing is left."""

from __future__ import annotations

import asyncio
from random import Random
from typing import Final

import pytest

from paddock.api import connect
from paddock.recipes import Lock, MultiLock
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.fault.stage.recipe_players import Fenced, Player
from tests.fault.stage.recipe_stage import Part, Story, everybody_held
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

# Longer than a session lives that nobody hears of: a holder that is cut off has to be told.
LONG_S: Final = 12.0
# Of these the log of grants takes down who holds the one that everybody wants.
WANTED: Final = "b"


def contender(names: str, after_s: float = 0.0, for_s: float = 2.0) -> Part:
    """Return a client that requests locks after `after_s` and holds them for `for_s` seconds."""

    async def contend(me: Player) -> None:
        await asyncio.sleep(after_s)
        locks = [Lock(me.client, f"/recipe/{name}") for name in names]
        async with MultiLock(locks) as grant:
            wanted = Fenced(grant.tokens[names.index(WANTED)], grant.guard)
            with me.holds(wanted.token):
                await me.write(wanted)
                await asyncio.sleep(for_s)
                await me.write(wanted)

    return contend


# The subject has the first when it waits for the second; two wait for one of its locks each. Whose
# node of the first is deleted then begins again, and has both all the same, so that takes its time.
IN_THE_MIDDLE: Final = Story(
    subject=contender("ba", 1.0, LONG_S),
    rivals=(contender("b", 0.0, 4.0), contender("bc", 1.5), contender("ab", 1.6)),
    remains=("/recipe/a", "/recipe/b", "/recipe/c"),
    judge=everybody_held,
)


# Each of the locks is in every trouble elsewhere.
@pytest.mark.parametrize("trouble", [*BRIEF, "a slow network", "its nodes deleted"])
def test_several_locks_in_trouble(trouble: str) -> None:
    assert {**TROUBLES, **BRIEF}[trouble](IN_THE_MIDDLE) > 1


def test_what_was_taken_is_given_back_once_also_if_that_is_cancelled() -> None:
    """Or a lock that was held before, and taken once more, would be released for good."""

    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(proxy.hosts, random=Random(1)) as client,
            connect(server.hosts, random=Random(2)) as other,
        ):
            ours = Lock(client, "/a", reentrant=True)
            async with Lock(other, "/c"), ours as grant:
                all_of_them = MultiLock([ours, Lock(client, "/b"), Lock(client, "/c")])
                # The first is that of the one that could not be had.
                given_back = proxy.when(operation="delete", nth=2).delay_reply(1.0)
                trying = asyncio.create_task(all_of_them.try_acquire())
                await given_back.happened()
                trying.cancel()
                await asyncio.wait([trying])
                assert trying.cancelled()
                await client.sync()
                assert grant.is_held
                assert await other.children("/b") == []
            await ours.acquire()

    run_virtually(main())
