"""Requests to let go: they reach the holder they were meant for, whenever they come."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from random import Random
from typing import Any

import pytest

from paddock import Client, connect
from paddock.errors import InvalidArgumentError, NoAuthError, UsageError
from paddock.layouts import REQUESTS_MAX, REVOKE
from paddock.protocol.acl import ACL, ANYONE, CREATE, DELETE, READ
from paddock.recipes import (
    Contender,
    GrantEvent,
    Lock,
    MultiLock,
    ReadWriteLock,
    ReleaseRequest,
)
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.support.recipes import stand_in_line, until


@asynccontextmanager
async def two() -> AsyncIterator[tuple[FaultProxy, Client, Client]]:
    """Connect a holder, behind a proxy, and somebody who asks."""
    async with (
        EmbeddedServer() as server,
        FaultProxy(server.address) as proxy,
        connect(proxy.hosts, random=Random(1)) as holder,
        connect(server.hosts, random=Random(2)) as asker,
    ):
        yield proxy, holder, asker


def play(main: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Play a scene in virtual time, and fail it if somebody waits for what never comes."""

    async def within_a_minute() -> None:
        async with asyncio.timeout(60):
            await main()

    run_virtually(within_a_minute())


def who(request: ReleaseRequest) -> tuple[bytes, int]:
    return request.data, request.session_id


def test_a_holder_learns_who_asks_and_holds_it_as_before() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            grant = await Lock(holder, "/lock", data=b"holder").acquire()
            heard: list[GrantEvent] = []
            grant.add_listener(heard.append)
            asked = await Lock(asker, "/lock", data=b"asker").ask_to_release()
            assert asked == [Contender(grant.path, b"holder", holder.session_id, grant.token)]
            assert await grant.wait_asked() == (ReleaseRequest(b"asker", asker.session_id),)
            assert heard == [GrantEvent.ASKED]
            assert grant.is_held
            # What a holder says about itself is not lost by it.
            assert (await Lock(asker, "/lock").contenders())[0].data == b"holder"
            async with grant.guard() as transaction:
                transaction.create("/still-mine")
            await grant.release()

    play(main)


def test_every_asker_is_heard_once_and_in_order() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            grant = await Lock(holder, "/lock").acquire()
            askers = [Lock(asker, "/lock", data=b"%d" % number) for number in range(20)]
            await asyncio.gather(*(one.ask_to_release() for one in askers))
            await until(lambda: len(grant.asked) == len(askers))
            assert {one.data for one in grant.asked} == {one._line.data for one in askers}
            await askers[7].ask_to_release()
            await until(lambda: len(grant.asked) == len(askers) + 1)
            assert grant.asked[-1].data == b"7"

    play(main)


def test_only_the_latest_of_very_many_requests_are_kept() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            grant = await Lock(holder, "/lock", data=b"holder").acquire()
            for number in range(REQUESTS_MAX + 3):
                await Lock(asker, "/lock", data=b"%d" % number).ask_to_release()
            await until(lambda: b"102" in [one.data for one in grant.asked])
            assert [int(one.data) for one in grant.asked] == list(range(3, REQUESTS_MAX + 3))
            assert (await Lock(asker, "/lock").contenders())[0].data == b"holder"

    play(main)


def test_what_an_asker_says_is_any_bytes_and_not_too_many() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            grant = await Lock(holder, "/lock", data=b"\xff\n\x00").acquire()
            await Lock(asker, "/lock", data=b"\xfe\n" * 600).ask_to_release()
            [asked] = await grant.wait_asked()
            assert asked.data == b"\xfe\n" * 500
            assert (await Lock(asker, "/lock").contenders())[0].data == b"\xff\n\x00"

    play(main)


def test_a_request_that_comes_before_the_turn_of_a_contender_is_heard_with_it() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            first = await Lock(asker, "/lock").acquire()
            heard: list[GrantEvent] = []
            second = Lock(holder, "/lock")
            second.add_listener(heard.append)
            waiting = asyncio.ensure_future(second.acquire())
            await until(lambda: stand_in_line(asker, "/lock", 2))
            # As Curator's Revoker does it, to whom it likes.
            path = (await second.contenders())[1].path
            await asker.set(path, REVOKE)
            await first.release()
            grant = await waiting
            assert [who(one) for one in await grant.wait_asked()] == [(b"", 0)]
            assert heard == [GrantEvent.ACQUIRED, GrantEvent.ASKED]

    play(main)


def test_a_request_that_comes_while_the_holder_is_cut_off_is_heard_when_it_is_back() -> None:
    async def main() -> None:
        async with two() as (proxy, holder, asker):
            grant = await Lock(holder, "/lock").acquire()
            await holder.sync()
            proxy.refuse()
            proxy.cut()
            await Lock(asker, "/lock", data=b"asker").ask_to_release()
            assert grant.asked == ()
            proxy.heal()
            [asked] = await grant.wait_asked()
            assert asked.data == b"asker"
            assert grant.is_held

    play(main)


def test_a_holder_hears_of_it_though_its_connection_is_lost_with_every_look() -> None:
    async def main() -> None:
        async with two() as (proxy, holder, asker):
            grant = await Lock(holder, "/lock").acquire()
            await holder.sync()
            # More often than the client tries by itself.
            lost = proxy.when(operation="exists", times=12).cut_after()
            await Lock(asker, "/lock", data=b"asker").ask_to_release()
            [asked] = await grant.wait_asked()
            assert asked.data == b"asker"
            assert len(lost.hits) == 12

    play(main)


def test_the_next_holder_hears_nothing_of_a_request_to_the_last() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            lock, other = Lock(holder, "/lock"), Lock(asker, "/lock")
            grant = await lock.acquire()
            waiting = asyncio.ensure_future(other.acquire())
            await until(lambda: stand_in_line(asker, "/lock", 2))
            asked = await other.ask_to_release()
            assert [one.path for one in asked] == [grant.path]
            await grant.wait_asked()
            await grant.release()
            later = await waiting
            # Its own look at its node has been answered.
            for _ in range(3):
                await asker.sync()
            assert later.asked == ()
            # Nobody else holds it, and nobody asks itself.
            assert await other.ask_to_release() == []
            await later.release()
            assert await other.ask_to_release() == []
            assert await asker.children("/lock") == []

    play(main)


def test_a_wait_for_requests_ends_with_the_grant() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            for end in (lambda grant: grant.release(), lambda grant: asker.delete(grant.path)):
                grant = await Lock(holder, "/lock").acquire()
                waiting = asyncio.ensure_future(grant.wait_asked())
                await asyncio.sleep(0)
                await end(grant)
                assert await waiting == ()
                assert await grant.wait_asked() == ()

    play(main)


def test_a_holder_that_leaves_while_it_is_asked_is_not_among_those_who_were() -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(server.hosts) as holder,
            connect(proxy.hosts) as asker,
        ):
            for operation in ("get", "set"):
                grant = await Lock(holder, "/lock").acquire()
                late = proxy.when(operation=operation).delay(1.0)
                asking = asyncio.ensure_future(Lock(asker, "/lock").ask_to_release())
                await until(lambda late=late: bool(late.hits))  # type: ignore[misc]
                await grant.release()
                assert await asking == []

    play(main)


def test_a_writer_asks_all_readers_and_a_reader_asks_the_writer() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            locks = [ReadWriteLock(holder, "/lock") for _ in range(3)]
            reading = [await one.read.acquire() for one in locks]
            lock = locks[0]
            other = ReadWriteLock(asker, "/lock", data=b"asker")
            # Readers do not keep each other out.
            assert await other.read.ask_to_release() == []
            waiting = asyncio.ensure_future(other.write.acquire())
            await until(lambda: stand_in_line(asker, "/lock", 4))
            asked = await other.write.ask_to_release()
            assert [one.path for one in asked] == [grant.path for grant in reading]
            for grant in reading:
                assert [one.data for one in await grant.wait_asked()] == [b"asker"]
                await grant.release()
            writing = await waiting
            assert await other.write.ask_to_release() == []
            for side in (lock.read, lock.write):
                assert [one.path for one in await side.ask_to_release()] == [writing.path]
            # Whom a writer keeps out is not asked, though it stands in the line.
            behind = asyncio.ensure_future(lock.read.acquire())
            await until(lambda: stand_in_line(asker, "/lock", 2))
            third = ReadWriteLock(asker, "/lock").write
            assert [one.path for one in await third.ask_to_release()] == [writing.path]
            await writing.release()
            await (await behind).release()

    play(main)


def test_a_writer_that_reads_as_well_is_asked_for_both() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            lock = ReadWriteLock(holder, "/lock")
            writing = await lock.write.acquire()
            reading = await lock.read.acquire()
            other = ReadWriteLock(asker, "/lock")
            asked = {one.path for one in await other.write.ask_to_release()}
            assert asked == {writing.path, reading.path}
            assert len(await reading.wait_asked()) == len(await writing.wait_asked()) == 1
            await writing.release()
            assert await other.read.ask_to_release() == []
            assert [one.path for one in await other.write.ask_to_release()] == [reading.path]

    play(main)


def test_one_lock_of_many_is_asked_for() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            blocked = await Lock(asker, "/b").acquire()
            both = MultiLock([Lock(holder, "/a"), Lock(holder, "/b")])
            heard: list[GrantEvent] = []
            both.add_listener(heard.append)
            waiting = asyncio.ensure_future(both.acquire())
            await until(lambda: stand_in_line(asker, "/b", 2))
            await Lock(asker, "/a", data=b"early").ask_to_release()
            await holder.sync()
            await holder.sync()
            await blocked.release()
            grant = await waiting
            assert [one.data for one in grant.asked] == [b"early"]
            await Lock(asker, "/b", data=b"late").ask_to_release()
            await until(lambda: len(grant.asked) == 2)
            assert [one.data for one in grant.asked] == [b"early", b"late"]
            assert heard == [GrantEvent.ACQUIRED, GrantEvent.ASKED, GrantEvent.ASKED]
            assert grant.is_held

    play(main)


def test_who_may_not_ask_is_told_so_and_the_holder_is_not() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            acl = [ACL(READ | CREATE | DELETE, ANYONE)]
            grant = await Lock(holder, "/lock", acl=acl).acquire()
            with pytest.raises(NoAuthError):
                await Lock(asker, "/lock").ask_to_release()
            await holder.sync()
            assert grant.asked == ()

    play(main)


def test_a_holder_that_is_not_ours_is_asked_as_curator_asks_it() -> None:
    async def main() -> None:
        async with two() as (_, holder, asker):
            uuid = "f311e146-b032-4918-a013-25462fe11a43"
            for name in (f"_c_{uuid}-lock-", "lock-"):
                path = await holder.create(
                    f"/lock/{name}", b"theirs", sequential=True, make_parents=True
                )
                [asked] = await Lock(asker, "/lock", data=b"asker").ask_to_release()
                assert (asked.path, asked.data) == (path, b"theirs")
                assert (await holder.get(path)).data == REVOKE
                await holder.delete(path)

    play(main)


def test_what_would_be_taken_for_a_request_is_refused() -> None:
    async def main() -> None:
        async with two() as (_, holder, _):
            for make in (Lock, ReadWriteLock):
                with pytest.raises(InvalidArgumentError, match="data: "):
                    make(holder, "/lock", data=REVOKE + b" me")
            # kazoo's holders do not listen.
            with pytest.raises(UsageError, match="kazoo does not listen"):
                await Lock(holder, "/lock", layout="kazoo").ask_to_release()

    play(main)
