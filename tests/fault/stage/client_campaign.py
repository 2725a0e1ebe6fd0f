"""A campaign against a client: blows at the server it sits on, while it watches and writes.

Two clients write; one of them also has a thousand watches and some streams, on what the other one
changes. Then a blow falls, for instance a kill of its server; when the client is back, everything
is compared with what is there, and the next round begins.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from random import Random
from typing import Final, TypeAlias

import paddock
from paddock import Client, SessionState
from tests.fault.stage.client_watches import Streams, Watches
from tests.fault.stage.client_writes import (
    Counts,
    Creates,
    Progress,
    Reads,
    Sets,
    Transactions,
    Writer,
)

#: Does something to the server that a client sits on; the client is back when it returns.
Blow: TypeAlias = Callable[[Client], Awaitable[None]]

#: For one round, and for what comes before and after all of them.
DEADLINE_S: Final = 180.0
#: So many writes are to be acknowledged before a blow, and after it.
_WRITES: Final = 100
_WATCHES_CHANGED: Final = 250
_EPHEMERALS: Final = 10


async def campaign(
    hosts: str,
    folder: str,
    blow: Blow,
    rounds: int,
    *,
    session_timeout: float,
    seed: int,
    exact: bool = False,
) -> None:
    """Run so many rounds below a new node, and check everything after each.

    In exact sessions no write may be in doubt. In others a blow has to hit one: there are more
    rounds until it has, at most ten times as many.
    """
    connect = partial(
        paddock.connect, hosts, session_timeout=session_timeout, random=Random(seed), exact=exact
    )
    random = Random(seed)
    async with connect() as client, connect() as other:
        assert client.is_exact == other.is_exact == exact
        async with asyncio.timeout(DEADLINE_S):
            await other.create(folder)
            field = _Field(client, other, folder, random)
            await field.prepare()
        async with asyncio.TaskGroup() as tasks:
            following = [tasks.create_task(one.follow()) for one in field.streams.streams]
            for number in range(1, 10 * rounds + 1):
                async with asyncio.timeout(DEADLINE_S):
                    await field.fight(blow)
                print(f"round {number}: {field.report()}")
                if number >= rounds and (exact or field.unknown > 0):
                    break
            for task in following:
                task.cancel()
        async with asyncio.timeout(DEADLINE_S):
            await field.conclude(hosts)
        print(field.report())


class _Field:
    """Where a campaign takes place: two clients, and all that they do."""

    def __init__(self, client: Client, other: Client, folder: str, random: Random) -> None:
        self._client = client
        self._session_ids = (client.session_id, other.session_id)
        self._other = other
        self._folder = folder
        self._progress = Progress()
        self.watches = Watches(client, other, f"{folder}/watched", random)
        self.streams = Streams(client, other, f"{folder}/streams", random)
        self.writers: list[Writer] = []
        counts: list[Counts] = []
        for name, one in (("client", client), ("other", other)):
            place = f"{folder}/{name}"
            progress = self._progress
            self.writers += [
                Sets(one, f"{place}-set", progress, is_conditional=False),
                Sets(one, f"{place}-set-if", progress, is_conditional=True),
                Counts(one, f"{folder}/count", progress, counts),
                Creates(one, f"{place}-create", progress, is_protected=False),
                Creates(one, f"{place}-create-protected", progress, is_protected=True),
                Transactions(one, f"{place}-transaction", progress),
            ]
        self.writers += [
            Reads(client, f"{folder}/other-set", self._progress),
            Reads(other, f"{folder}/client-set", self._progress),
        ]

    def report(self) -> str:
        acknowledged = sum(one.acknowledged for one in self.writers)
        unknown = sum(one.unknown for one in self.writers)
        return (
            f"{acknowledged} calls answered, {unknown} writes in doubt,"
            f" {self.watches.fired} watches fired and set again"
        )

    async def prepare(self) -> None:
        for writer in self.writers:
            await writer.prepare()
        await self.streams.prepare()
        await self.watches.set()
        for number in range(_EPHEMERALS):
            await self._client.create(f"{self._folder}/e{number}", ephemeral=True)
        assert len(self.watches) == 1000

    async def fight(self, blow: Blow) -> None:
        """Let one blow fall, with everything under way, and check all that can be checked then."""
        over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            for writer in self.writers:
                tasks.create_task(writer.run(over))
            tasks.create_task(self.watches.change_some(_WATCHES_CHANGED, over))
            tasks.create_task(self.streams.change(over))
            await self._progress.wait_more(_WRITES)
            await blow(self._client)
            await self._progress.wait_more(_WRITES)
            over.set()
        # From here on nothing is under way any more.
        assert self._session_ids == (self._client.session_id, self._other.session_id)
        await self.streams.check()
        await self.watches.check()
        await self._check_ephemerals()

    @property
    def unknown(self) -> int:
        """How many writes have been in doubt."""
        return sum(writer.unknown for writer in self.writers)

    async def conclude(self, hosts: str) -> None:
        """See that every watch was still set, and every write is as it must be."""
        await self.watches.change_all()
        await self.watches.check()
        await self._check_ephemerals()
        assert self._client.state is SessionState.CONNECTED
        if self._client.is_exact:
            assert self.unknown == 0
        else:
            assert self.unknown > 0, "no blow has hit anything"
        async with paddock.connect(hosts, session_timeout=20) as judge:
            await judge.sync()
            for writer in self.writers:
                await writer.check(judge)

    async def _check_ephemerals(self) -> None:
        expected = sorted(f"{self._folder}/e{number}" for number in range(_EPHEMERALS))
        assert sorted(await self._client.ephemerals(self._folder)) == expected
