"""Our locks and kazoo's in one line, in processes that are killed, stopped and cut off under load.

What they did is judged by what they wrote down while they held something (`mixed_lines`).
"""

from __future__ import annotations

import asyncio
import json
import signal
from collections.abc import Awaitable, Callable, Sequence
from contextlib import AsyncExitStack
from typing import Final, TypeAlias

import pytest

from paddock import Client, connect
from paddock.recipes.common.retry import watch_signal
from paddock.testing import Direction, FaultProxy
from tests.support import mixed_lines
from tests.support.mixed_lines import KINDS, LEASES, LIBRARIES, Program, Record
from tests.support.server import Server

# On a busy machine.
DEADLINE_S: Final = 240.0
# How many records have to follow each trouble before the next one.
RECORDS: Final = 10


class Contest:
    """Programs of both libraries, each behind a proxy, and what they wrote down."""

    def __init__(self, server: Server, base: str, client: Client) -> None:
        self.programs: list[Program] = []
        self.proxies: list[FaultProxy] = []
        self._server = server
        self._base = base
        self._client = client

    async def begin(self, stack: AsyncExitStack) -> None:
        await self._client.create(f"{self._base}/records")
        for number, library in enumerate(LIBRARIES * 2):
            proxy = await stack.enter_async_context(FaultProxy(self._server.address))
            program = Program(library, proxy.hosts, self._base, number)
            stack.push_async_callback(program.kill)
            await program.start()
            self.proxies.append(proxy)
            self.programs.append(program)

    async def go_on(self) -> None:
        """Wait until some more has been written down, by whom it may be."""
        path = f"{self._base}/records"
        wanted = len(await self._client.children(path)) + RECORDS
        with watch_signal(self._client) as changed:
            while len(await self._client.children(path, watch=changed)) < wanted:
                await changed.wait()

    async def records(self) -> list[Record]:
        names = sorted(await self._client.children(f"{self._base}/records"))
        found = [(await self._client.get(f"{self._base}/records/{name}")).data for name in names]
        return [Record(**json.loads(data)) for data in found]

    async def wait_until_empty(self, path: str) -> None:
        """Wait until the sessions of the dead are over, and with them all their nodes."""
        with watch_signal(self._client) as changed:
            while await self._client.children(path, watch=changed):
                await changed.wait()


Trouble: TypeAlias = Callable[[Contest, int], Awaitable[None]]


async def killed(contest: Contest, number: int) -> None:
    program = contest.programs[number]
    await program.kill()
    await contest.go_on()
    await program.start()


async def stopped(contest: Contest, number: int) -> None:
    contest.programs[number].signal(signal.SIGSTOP)
    await contest.go_on()
    contest.programs[number].signal(signal.SIGCONT)


async def cut(contest: Contest, number: int) -> None:
    contest.proxies[number].cut()
    await contest.go_on()


async def cut_off(contest: Contest, number: int) -> None:
    contest.proxies[number].refuse()
    contest.proxies[number].cut()
    await contest.go_on()
    contest.proxies[number].heal()


async def silent(contest: Contest, number: int) -> None:
    contest.proxies[number].blackhole(*Direction)
    await contest.go_on()
    contest.proxies[number].heal()


SOME: Final = (killed, stopped, cut_off)
ALL: Final = (*SOME, cut, silent)


def play(
    server: Server, base: str, troubles: Sequence[Trouble], victims: Sequence[int]
) -> list[Record]:
    async def main() -> list[Record]:
        async with (
            asyncio.timeout(DEADLINE_S),
            connect(f"{server.host}:{server.port}", session_timeout=30) as client,
        ):
            contest = Contest(server, base, client)
            async with AsyncExitStack() as stack:
                await contest.begin(stack)
                await contest.go_on()
                for trouble in troubles:
                    for number in victims:
                        await trouble(contest, number)
                        await contest.go_on()
            for name in ("lock", "both", "semaphore", "semaphore-__lock__"):
                await contest.wait_until_empty(f"{base}/{name}")
            return await contest.records()

    return asyncio.run(main())


def check(records: list[Record]) -> None:
    mixed_lines.judge(records)
    seen = {(one.library, one.kind) for one in records if one.is_end}
    assert seen == {(library, kind) for library in LIBRARIES for kind in KINDS}


def test_they_exclude_each_other_while_some_die_and_some_are_cut_off(
    server: Server, base: str
) -> None:
    # One of each library.
    check(play(server, base, SOME, range(2)))


@pytest.mark.long
def test_they_exclude_each_other_in_every_trouble_and_again(server: Server, base: str) -> None:
    check(play(server, base, ALL * 4, range(4)))


def record(number: int, kind: str = "lock", is_end: bool = False) -> Record:
    part = "__rlock__" if kind == "read" else "__lock__"
    return Record("kazoo", kind, f"{number:032x}{part}{number:010d}", is_end)


@pytest.mark.parametrize(
    "records",
    [
        [record(1), record(2), record(1, is_end=True)],
        [record(2), record(1)],
        [record(1, "read"), record(2, "write"), record(1, "read", True)],
        [record(2, "write"), record(1, "read")],
        [
            *(record(number, "lease") for number in range(LEASES + 1)),
            *(record(number, "lease", True) for number in range(LEASES + 1)),
        ],
    ],
)
def test_the_judge_knows_who_was_not_excluded(records: list[Record]) -> None:
    with pytest.raises(AssertionError):
        mixed_lines.judge(records)


def test_the_judge_allows_what_locks_do() -> None:
    mixed_lines.judge(
        [
            *(record(1), record(1, is_end=True), record(3), record(7), record(7, is_end=True)),
            *(record(2, "read"), record(1, "read"), record(2, "read", True)),
            *(record(1, "read", True), record(3, "write"), record(3, "write", True)),
            *(record(3, "read"), record(4, "read"), record(3, "read", True)),
            *(record(1, "lease"), record(2, "lease"), record(1, "lease", True)),
            *(record(3, "lease"), record(3, "lease", True), record(2, "lease", True)),
        ]
    )
