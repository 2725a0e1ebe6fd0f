"""A divided set: one member per item at a time, evenly, while members come and go."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.client.states import EventType
from paddock.errors import (
    GrantLostError,
    InvalidArgumentError,
    LockStateError,
    NoAuthError,
    TransactionFailedError,
)
from paddock.protocol.acl import READ_ONLY
from paddock.recipes import Partitioner, Share
from tests.support.apis import recipe
from tests.support.recipes import clients, expire, run, until
from tests.support.server import Service

ITEMS = [f"item {number}" for number in range(10)]


def partitioner_of(client: Client, path: str, items: Any = ITEMS, **settings: Any) -> Any:
    return recipe(Partitioner)(client, path, items, **settings)


@asynccontextmanager
async def working(partitioner: Any, owners: dict[str, object]) -> AsyncIterator[list[Share]]:
    """Take part, and see that nobody has what another one has."""
    shares: list[Share] = []

    async def work() -> None:
        async for share in partitioner.shares():
            for item in share.removed:
                assert owners.pop(item) is partitioner
            for item in share.gained:
                assert owners.setdefault(item, partitioner) is partitioner
            assert {one for one in owners if owners[one] is partitioner} == share.items
            shares.append(share)

    async with partitioner:
        task = asyncio.create_task(work())
        try:
            yield shares
        finally:
            task.cancel()
            await asyncio.wait([task])
            if not task.cancelled():
                await task
            for item in [one for one in owners if owners[one] is partitioner]:
                del owners[item]


@pytest.mark.everywhere
def test_whoever_comes_and_goes_each_item_has_one_owner(service: Service, path: str) -> None:
    async def scenario() -> None:
        owners: dict[str, object] = {}
        async with clients(service, 3) as all_of_them:
            one, two, three = (partitioner_of(client, path) for client in all_of_them)
            async with working(one, owners):
                await one.wait_settled()
                assert one.items == frozenset(ITEMS)
                async with working(two, owners):
                    await asyncio.gather(one.wait_settled(), two.wait_settled())
                    assert (len(one.items), len(two.items)) == (5, 5)
                    assert one.items | two.items == frozenset(ITEMS)
                    before = one.items, two.items
                    async with working(three, owners):
                        settled = (each.wait_settled() for each in (one, two, three))
                        await asyncio.gather(*settled)
                        sizes = sorted(len(each.items) for each in (one, two, three))
                        assert sizes == [3, 3, 4]
                        # The streams that tell of it may come a little later than the thing itself.
                        await until(lambda: sorted(owners) == ITEMS)
                        # Nothing changed hands between the two who were there before.
                        assert (one.items <= before[0], two.items <= before[1]) == (True, True)
                    await asyncio.gather(one.wait_settled(), two.wait_settled())
                    await until(lambda: sorted(owners) == ITEMS)
                await one.wait_settled()
                assert one.items == frozenset(ITEMS)
            assert await one.members() == []

    run(scenario)


def test_an_item_is_let_go_when_the_next_share_is_asked_for(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, observer]:
            async with partitioner_of(one, path, ["a", "b"], data=b"one") as first:
                async with aclosing(first.shares()) as firsts:
                    share = await anext(firsts)
                    assert (share.items, share.removed) == (frozenset("ab"), frozenset())
                    async with partitioner_of(two, path, ["a", "b"], data=b"two") as second:
                        async with aclosing(second.shares()) as seconds:
                            waiting = asyncio.ensure_future(anext(seconds))
                            share = await anext(firsts)
                            assert (share.items, share.removed) == (frozenset("a"), frozenset("b"))
                            # It is known to be going, and others wait for it.
                            assert (await observer.get(f"{path}/items/item-b")).data == b"one"
                            assert first.grant("b").is_held
                            asking = asyncio.ensure_future(anext(firsts))
                            share = await waiting
                            assert share.items == frozenset("b")
                            assert (await observer.get(f"{path}/items/item-b")).data == b"two"
                            await until(lambda: _is_not_ours(first, "b"))
                            assert second.grant("b").token > first.grant("a").token
                            assert [one.data for one in await first.members()] == [b"one", b"two"]
                    share = await asking
                    assert (share.items, share.gained) == (frozenset("ab"), frozenset("b"))

    run(scenario)


def test_who_leaves_lets_go_what_was_about_to_go(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two], AsyncExitStack() as later:
            async with partitioner_of(one, path, ["a", "b"]) as first:
                firsts = first.shares()
                assert (await anext(firsts)).items == frozenset("ab")
                second = await later.enter_async_context(partitioner_of(two, path, ["a", "b"]))
                assert (await anext(firsts)).removed == frozenset("b")
                # Nobody asks for the next one.
            owners: set[str] = set()
            async for share in second.shares():
                owners |= share.items
                if owners == {"a", "b"}:
                    break

    run(scenario)


def test_what_comes_too_late_is_given_on(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, operator]:
            # Another client holds it, so the member waits for it.
            await operator.create(f"{path}/items/item-d", ephemeral=True, make_parents=True)
            async with partitioner_of(one, path, ["c", "d"], data=b"one") as first:
                async with aclosing(first.shares()) as firsts:
                    assert (await anext(firsts)).items == frozenset("c")
                    # A busy member acquires it unaware that it is assigned to another by then.
                    await operator.delete(f"{path}/items/item-d")
                    await until(lambda: _is_of(operator, f"{path}/items/item-d", b"one"))
                    async with partitioner_of(two, path, ["c", "d"]) as second:
                        async with aclosing(second.shares()) as seconds:
                            waiting = asyncio.ensure_future(anext(seconds))
                            await until(lambda: _has_divided(operator, path, 2))
                            asking = asyncio.ensure_future(anext(firsts))
                            assert (await waiting).items == frozenset("d")
                            assert first.items == frozenset("c")
                    assert (await asking).items == frozenset("cd")

    run(scenario)


def test_who_is_to_have_it_no_more_does_not_wait_for_it(service: Service, path: str) -> None:
    async def scenario() -> None:
        seen: list[tuple[EventType, str | None]] = []
        item = f"{path}/items/item-d"
        async with clients(service, 3) as [one, two, operator]:
            await operator.create(item, ephemeral=True, make_parents=True)
            await operator.add_watch(item, lambda event: seen.append((event.type, event.path)))
            async with partitioner_of(one, path, ["c", "d"]) as first:
                async with aclosing(first.shares()) as firsts:
                    assert (await anext(firsts)).items == frozenset("c")
                    asking = asyncio.ensure_future(anext(firsts))
                    async with partitioner_of(two, path, ["c", "d"]) as second:
                        await first.wait_settled()
                        await operator.delete(item)
                        for _ in range(3):
                            # It would have asked for it by now.
                            await one.sync()
                        async with aclosing(second.shares()) as seconds:
                            assert (await anext(seconds)).items == frozenset("d")
                        await until(lambda: len(seen) >= 2)
                        await operator.sync()
                        assert seen == [(EventType.DELETED, item), (EventType.CREATED, item)]
                    await asking

    run(scenario)


def test_who_asks_anew_has_asked_for_the_next_one(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            async with partitioner_of(one, path, ["a", "b"]) as first:
                async with aclosing(first.shares()) as shares:
                    assert (await anext(shares)).items == frozenset("ab")
                async with partitioner_of(two, path, ["a", "b"]) as second:
                    async with aclosing(first.shares()) as shares:
                        # It begins with what is ours.
                        share = await anext(shares)
                        while not share.removed:
                            share = await anext(shares)
                    asking = asyncio.ensure_future(anext(first.shares()))
                    assert (await anext(second.shares())).items == frozenset("b")
                    assert (await asking).items == frozenset("a")

    run(scenario)


def test_the_items_of_who_has_been_there_longest_count(service: Service, path: str) -> None:
    async def scenario() -> None:
        owners: dict[str, object] = {}
        async with clients(service, 2) as [one, two]:
            first, second = partitioner_of(one, path, ["a"]), partitioner_of(two, path, ["b"])
            async with working(first, owners):
                await first.wait_settled()
                async with working(second, owners):
                    await asyncio.gather(first.wait_settled(), second.wait_settled())
                    for _ in range(3):
                        await two.sync()
                    assert (first.items, second.items) == (frozenset("a"), frozenset())
                    division = json.loads((await one.get(f"{path}/members")).data)
                    assert sorted(division.values()) == [[], ["a"]]

    run(scenario)


async def _is_of(client: Client, path: str, data: bytes) -> bool:
    return await client.exists(path) is not None and (await client.get(path)).data == data


async def _has_divided(client: Client, path: str, members: int) -> bool:
    division = json.loads((await client.get(f"{path}/members")).data or b"{}")
    return len(division) == members


async def _is_not_ours(partitioner: Any, item: str) -> bool:
    try:
        partitioner.grant(item)
    except LockStateError:
        return True
    return False


def test_what_a_crashed_member_had_goes_to_others(service: Service, path: str) -> None:
    async def scenario() -> None:
        owners: dict[str, object] = {}
        async with clients(service, 2) as [crashing, other]:
            crashed, survivor = partitioner_of(crashing, path), partitioner_of(other, path)
            async with working(survivor, owners):

                async def crash() -> None:
                    async with working(crashed, {}):
                        await crashed.wait_settled()
                        await expire(service, crashing)
                        while True:
                            await crashed.wait_settled()
                            await asyncio.sleep(0.01)

                with pytest.raises(GrantLostError):
                    await crash()
                await survivor.wait_settled()
                assert survivor.items == frozenset(ITEMS)

    run(scenario)


def test_when_the_first_one_goes_the_next_one_divides(service: Service, path: str) -> None:
    async def scenario() -> None:
        owners: dict[str, object] = {}
        async with clients(service, 3) as all_of_them:
            one, two, three = (partitioner_of(client, path) for client in all_of_them)
            async with working(two, owners):
                async with working(one, owners):
                    await one.wait_settled()
                await two.wait_settled()
                assert two.items == frozenset(ITEMS)
                async with working(three, owners):
                    await three.wait_settled()
                    assert len(three.items) == 5

    run(scenario)


def test_there_may_be_more_members_than_items(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [one, two]:
            async with partitioner_of(one, path, ["only"]) as first:
                share = await anext(first.shares())
                assert share.items == {"only"}
                async with partitioner_of(two, path, ["only"]) as second:
                    share = await anext(second.shares())
                    assert share == Share(frozenset(), frozenset(), frozenset())
                    assert second.items == frozenset()

    run(scenario)


def test_items_may_have_any_name(service: Service, path: str) -> None:
    async def scenario() -> None:
        items = ["a/b", "..", ".", "ä ö", "100%", "x", "x"]
        async with clients(service, 1) as [client]:
            async with partitioner_of(client, path, items) as partitioner:
                share = await anext(partitioner.shares())
                assert share.items == frozenset(items)

    run(scenario)


def test_a_guarded_write_succeeds_only_while_the_item_is_ours(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, operator]:
            await client.create(f"{path}-data")
            async with partitioner_of(client, path, ["a"]) as partitioner:
                async with aclosing(partitioner.shares()) as shares:
                    await anext(shares)
                    grant = partitioner.grant("a")
                    async with grant.guard() as transaction:
                        transaction.set(f"{path}-data", b"ours")
                    late = grant.guard()
                    late.set(f"{path}-data", b"too late")
                    # What is taken from us by force is ours again after it was let go.
                    await operator.delete(f"{path}/items/item-a")
                    share = await anext(shares)
                    assert (share.items, share.removed) == (frozenset(), frozenset("a"))
                    share = await anext(shares)
                    assert (share.items, share.gained) == (frozenset("a"), frozenset("a"))
                    assert partitioner.grant("a").token > grant.token
                    with pytest.raises(TransactionFailedError):
                        await late.commit()

    run(scenario)


def test_a_deleted_member_is_told_and_lets_everything_go(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 2) as [client, operator]:
            partitioner = partitioner_of(client, path)

            async def take_part() -> None:
                async with partitioner, aclosing(partitioner.shares()) as shares:
                    await anext(shares)
                    [member] = await partitioner.members()
                    await operator.delete(member.path)
                    await anext(shares)

            with pytest.raises(GrantLostError):
                await take_part()
            await until(lambda: _has_no_items(operator, path))
            assert partitioner.items == frozenset()

    run(scenario)


async def _has_no_items(client: Client, path: str) -> bool:
    found = await client.exists(f"{path}/items")
    return found is None or found.num_children == 0


def test_what_keeps_us_from_it_is_raised(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            await client.create(f"{path}/items", acl=READ_ONLY, make_parents=True)

            async def take_part() -> None:
                async with partitioner_of(client, path) as partitioner:
                    await anext(partitioner.shares())

            with pytest.raises(TransactionFailedError) as raised:
                await take_part()
            assert isinstance(raised.value.cause, NoAuthError)

    run(scenario)


def test_misuse_is_told(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            partitioner = partitioner_of(client, path)
            with pytest.raises(LockStateError, match="it is to be used in its scope"):
                partitioner.shares()
            with pytest.raises(LockStateError, match="it is to be used in its scope"):
                await partitioner.wait_settled()
            async with partitioner, aclosing(partitioner.shares()) as shares:
                await anext(shares)
                with pytest.raises(LockStateError, match="another stream of its shares is open"):
                    await anext(partitioner.shares())
                with pytest.raises(LockStateError, match="'other' is not ours"):
                    partitioner.grant("other")
            with pytest.raises(LockStateError, match="it is to be used in its scope"):
                partitioner.shares()
            with pytest.raises(LockStateError, match="it has been joined already"):
                async with partitioner:
                    pass

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            with pytest.raises(InvalidArgumentError, match="path: "):
                partitioner_of(client, "no slash")
            for items in ("text", 7, [7], [""], ["\ud800"]):
                with pytest.raises(InvalidArgumentError, match="items: "):
                    partitioner_of(client, "/a", items)
            with pytest.raises(InvalidArgumentError, match="data: "):
                partitioner_of(client, "/a", data="text")

    run(scenario)
