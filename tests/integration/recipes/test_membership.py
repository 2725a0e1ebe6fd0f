"""Membership: everybody knows who is there, and hears of all who come and go, once."""

from __future__ import annotations

import asyncio
from contextlib import aclosing
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.errors import (
    GrantLostError,
    InvalidArgumentError,
    LockStateError,
    SessionExpiredError,
)
from paddock.recipes import Member, Membership, MembershipChange
from tests.support.apis import lose_connection, recipe
from tests.support.recipes import clients, expire, run, until
from tests.support.server import Service

PRESENT, JOINED, UPDATED, LEFT = MembershipChange


def membership_of(client: Client, path: str, **settings: Any) -> Any:
    return recipe(Membership)(client, path, **settings)


def names_of(members: list[Member]) -> list[str]:
    return [one.name for one in members]


class Heard:
    """The names that a member is told of."""

    def __init__(self) -> None:
        self.connected: list[str] = []
        self.disconnected: list[str] = []

    def listeners(self) -> dict[str, Any]:
        return {
            "on_connect": lambda member: self.connected.append(member.name),
            "on_disconnect": lambda member: self.disconnected.append(member.name),
        }

    async def has(self, connected: list[str], disconnected: list[str]) -> bool:
        return (self.connected, self.disconnected) == (connected, disconnected)


@pytest.mark.everywhere
def test_four_servers_register_one_after_another_and_leave(service: Service, path: str) -> None:
    async def scenario() -> None:
        names = ["one", "two", "three", "four"]
        async with clients(service, 4) as all_of_them:
            members = [membership_of(client, path) for client in all_of_them]
            heard = [Heard() for _ in names]
            for number, name in enumerate(names):
                mates = await members[number].join(name, **heard[number].listeners())
                assert names_of(mates) == names[:number]
            for number, one in enumerate(heard):
                later = names[number + 1 :]
                await until(lambda one=one, later=later: one.has(later, []))  # type: ignore[misc]
            for number, member in enumerate(members):
                await member.leave()
                for other in range(number + 1, 4):
                    # The next one leaves only then, and so everybody is told by itself.
                    gone = names[: number + 1]
                    await until(lambda n=other, g=gone: heard[n].has(names[n + 1 :], g))  # type: ignore[misc]
            for number, one in enumerate(heard):
                assert one.connected == names[number + 1 :]
                assert one.disconnected == names[:number]
            assert await members[0].members() == []

    run(scenario)


def test_who_crashes_has_left(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            heard = Heard()
            await membership_of(one, path).join("one", **heard.listeners())
            crashed = membership_of(two, path)
            await crashed.join("two")
            await until(lambda: heard.has(["two"], []))
            await expire(service, two)
            await until(lambda: heard.has(["two"], ["two"]))
            await crashed.wait_left()
            assert not crashed.is_member

    run(scenario)


def test_members_say_something_about_themselves(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            first, second = membership_of(one, path), membership_of(two, path)
            assert await first.members() == []
            await first.join("b", b"first")
            async with second.joined("a", b"second") as mates:
                assert [(mate.name, mate.payload) for mate in mates] == [("b", b"first")]
                await first.update(b"other")
                await first.update(b"")
                await first.update(b"another")
                [mine, theirs] = await second.members()
                assert (mine.name, mine.payload, mine.version) == ("b", b"another", 3)
                assert (mine.session_id, theirs.session_id) == (one.session_id, two.session_id)
                assert mine.token < theirs.token
            assert names_of(await second.members()) == ["b"]
            await first.leave()

    run(scenario)


@pytest.mark.everywhere
def test_events_are_those_present_and_then_every_change(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            first, second = membership_of(one, path), membership_of(two, path)
            await first.join("one", b"1")
            async with aclosing(membership_of(two, path).events()) as events:

                async def told() -> tuple[MembershipChange, str, bytes]:
                    event = await anext(events)
                    return event.change, event.member.name, event.member.payload

                assert await told() == (PRESENT, "one", b"1")
                await second.join("two", b"2")
                assert await told() == (JOINED, "two", b"2")
                await first.update(b"1.1")
                assert await told() == (UPDATED, "one", b"1.1")
                await first.leave()
                assert await told() == (LEFT, "one", b"1.1")
                # Nobody looks meanwhile.
                await second.leave()
                await first.join("two", b"another")
                assert await told() == (LEFT, "two", b"2")
                assert await told() == (JOINED, "two", b"another")
                await first.leave()
                assert await told() == (LEFT, "two", b"another")

    run(scenario)


def test_events_begin_before_there_is_anything(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            async with aclosing(membership_of(two, path).events()) as events:
                first = asyncio.ensure_future(anext(events))
                member = membership_of(one, path)
                # The node above it goes with its last child, and comes again.
                for _ in range(2):
                    await member.join("one")
                    event = await first
                    assert (event.change, event.member.name) in [(PRESENT, "one"), (JOINED, "one")]
                    await member.leave()
                    event = await anext(events)
                    assert (event.change, event.member.name) == (LEFT, "one")
                    await until(lambda: _is_gone(one, path))
                    first = asyncio.ensure_future(anext(events))
                await member.join("one")
                await first

    run(scenario)


async def _is_gone(client: Client, path: str) -> bool:
    return await client.exists(path) is None


def test_nothing_is_missed_while_the_connection_is_lost(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            heard = Heard()
            await membership_of(one, path).join("one", **heard.listeners())
            stays, comes = membership_of(two, path), membership_of(two, path)
            await stays.join("stays")
            await until(lambda: heard.has(["stays"], []))
            lose_connection(one)
            await stays.leave()
            await comes.join("comes")
            await until(lambda: heard.has(["stays", "comes"], ["stays"]))

    run(scenario)


def test_events_end_when_the_session_is_over(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            membership = membership_of(client, path)
            await membership.join("one")
            events = membership.events()
            assert (await anext(events)).change is PRESENT
            await expire(service, client)
            with pytest.raises(SessionExpiredError):
                assert [event async for event in events] == []
            with pytest.raises(SessionExpiredError):
                await membership.join("two")

    run(scenario)


def test_a_name_that_an_older_session_of_ours_has_is_waited_for(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [older, newer, observer]:
            # A process that comes back under its name before its old session is over.
            await membership_of(older, path).join("worker", b"older")
            membership = membership_of(newer, path)
            joining = asyncio.create_task(membership.join("worker", b"newer"))
            look = membership_of(observer, path)
            [member] = await look.members()
            assert member.session_id == older.session_id
            assert not membership.is_member
            await expire(service, older)
            assert await joining == []
            [member] = await look.members()
            assert (member.session_id, member.payload) == (newer.session_id, b"newer")

    run(scenario)


def test_a_name_is_waited_for_within_one_client_as_well(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            first, second = membership_of(client, path), membership_of(client, path)
            await first.join("name", b"first")
            waiting = asyncio.create_task(second.join("name", b"second"))
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await asyncio.shield(waiting)
            [member] = await second.members()
            await first.leave()
            await waiting
            [after] = await second.members()
            assert (member.payload, after.payload) == (b"first", b"second")
            with pytest.raises(LockStateError, match="we have not joined"):
                await first.leave()
            assert second.is_member

    run(scenario)


def test_who_is_cancelled_does_not_join(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            first, second = membership_of(one, path), membership_of(two, path)
            await first.join("name")
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await second.join("name")
            [member] = await second.members()
            assert member.session_id == one.session_id
            # It may try again.
            await first.leave()
            await second.join("name")
            assert second.is_member

    run(scenario)


def test_a_deleted_node_ends_the_scope(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, operator]:
            membership = membership_of(one, path)

            async def be_there() -> None:
                async with membership.joined("one"):
                    await operator.delete(f"{path}/one")
                    await membership.wait_left()
                    assert not membership.is_member
                    with pytest.raises(GrantLostError):
                        await membership.update(b"too late")

            with pytest.raises(GrantLostError, match="held no more"):
                await be_there()
            # While the session lives, one may join again.
            assert await membership.join("one") == []

    run(scenario)


def test_what_another_one_says_is_left_alone(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            first, second = membership_of(one, path), membership_of(two, path)
            await first.join("name", b"first")
            await first.update(b"first again")
            await two.delete(f"{path}/name")
            await second.join("name", b"second")
            with pytest.raises(GrantLostError):
                await first.update(b"overwritten")
            await first.leave()
            assert [one.payload for one in await second.members()] == [b"second"]

    run(scenario)


def test_what_others_write_into_our_node_does_not_keep_us_from_it(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, operator]:
            membership = membership_of(client, path)
            await membership.join("name", b"ours")
            await operator.set(f"{path}/name", b"theirs")
            await membership.update(b"ours again")
            assert [one.payload for one in await membership.members()] == [b"ours again"]

    run(scenario)


def test_a_node_of_our_session_that_is_no_member_is_left_alone(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(f"{path}/name", ephemeral=True, make_parents=True)
            membership = membership_of(client, path)
            with pytest.raises(TimeoutError):
                async with asyncio.timeout(0.2):
                    await membership.join("name")
            await membership_of(client, path).join("other")
            assert await client.exists(f"{path}/name") is not None
            await client.delete(f"{path}/name")
            await membership.join("name")
            assert membership.is_member

    run(scenario)


def test_what_is_no_member_is_of_no_matter(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(path)
            await client.create(f"{path}/node")
            await client.create(f"{path}/container", container=True)
            await client.create(f"{path}/container/child")
            membership = membership_of(client, path)
            assert await membership.join("one") == []
            assert names_of(await membership.members()) == ["one"]

    run(scenario)


def test_misuse_is_told(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            membership = membership_of(client, path)
            for act in (membership.leave, lambda: membership.update(b"")):
                with pytest.raises(LockStateError, match="we have not joined"):
                    await act()
            await membership.wait_left()
            await membership.join("one")
            with pytest.raises(LockStateError, match="we have joined already; make another one"):
                await membership.join("two")
            await membership.leave()
            with pytest.raises(LockStateError, match="we have not joined"):
                await membership.update(b"")

    run(scenario)


def test_bad_arguments_are_named(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(InvalidArgumentError, match="path: "):
                membership_of(client, "no slash")
            with pytest.raises(InvalidArgumentError, match="acl: "):
                membership_of(client, path, acl=[])
            membership = membership_of(client, path)
            for name in ("", "a/b", "..", 7):
                with pytest.raises(InvalidArgumentError, match="name: "):
                    await membership.join(name)
            with pytest.raises(InvalidArgumentError, match="payload: expected bytes, not str"):
                await membership.join("one", "text")
            with pytest.raises(InvalidArgumentError, match="payload: "):
                await membership.update(None)
            assert not membership.is_member

    run(scenario)
