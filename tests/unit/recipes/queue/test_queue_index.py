"""The names of a queue's items, and their order; and the containers, which one makes for all."""

from __future__ import annotations

import asyncio
import gc
from collections import Counter
from random import Random
from typing import Any

from paddock import connect
from paddock.recipes.queue.queue_index import QueuePaths, draw, in_order, new_name
from paddock.testing import EmbeddedServer, FaultProxy, expire_session, run_virtually
from tests.support.recipes import until

ID = "0123456789abcdef" * 2


def test_a_name_says_everything_and_keeps_the_zeros_of_its_number() -> None:
    name = new_name(5, ID, 0) + "0000000007"
    assert in_order([name]) == [(name, ID, 5, 0, 7)]
    delayed = new_name(-5, ID, 1_700_000_000_000) + "0000000012"
    assert in_order([delayed]) == [(delayed, ID, -5, 1_700_000_000_000, 12)]


def test_priorities_and_numbers_are_compared_as_numbers() -> None:
    names = [
        new_name(priority, ID, 0) + number
        for priority, number in (
            (-20, "0000000009"),
            (-3, "0000000008"),
            (9, "0000000007"),
            (10, "0000000005"),
            (10, "0000000006"),
            (100, "0000000001"),
        )
    ]
    assert [entry.name for entry in in_order(sorted(names, reverse=True))] == names


def test_after_the_largest_number_comes_the_least() -> None:
    names = [new_name(1, ID, 0) + number for number in ("2147483647", "-2147483648", "-2147483647")]
    assert [entry.name for entry in in_order(reversed(names))] == names


def test_names_of_others_are_ignored() -> None:
    strangers = ["item-", "element0000000001", f"item-1-{ID}-12", f"item-1-{ID}-due-0000000001"]
    assert in_order(strangers) == []


def test_what_is_drawn_by_lot_is_as_urgent_as_the_first() -> None:
    entries = in_order(
        new_name(priority, ID, 0) + f"{number:010d}"
        for number, priority in enumerate((5, 5, 5, 6, 6))
    )
    assert [draw(entries, lot) for lot in (0.0, 0.33, 0.34, 0.67, 0.999)] == [0, 0, 1, 2, 2]
    assert draw(entries[3:4], 0.999) == 0


def test_no_error_is_left_over_when_all_who_wanted_the_containers_have_gone() -> None:
    async def main() -> None:
        problems: list[Any] = []
        asyncio.get_running_loop().set_exception_handler(lambda _, found: problems.append(found))
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(proxy.hosts, random=Random(1)) as client,
        ):
            cut = proxy.when(operation="create_container").cut_before(stay_away=True)
            making = asyncio.ensure_future(QueuePaths(client, "/queue").make())
            await cut.happened()
            await until(lambda: not client.state.is_connected)
            making.cancel()
            await asyncio.wait([making])
            await expire_session(server.address, client.session_id, client.session_password)
            proxy.heal()
            assert [state async for state in client.states()][-1].is_final
            await asyncio.sleep(1)
            # What nobody has looked at is found with what is thrown away.
            del making
            gc.collect()
            assert problems == []

    run_virtually(main())


def test_who_gives_up_making_the_containers_leaves_that_to_the_next() -> None:
    async def main() -> None:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            connect(proxy.hosts, random=Random(1)) as client,
        ):
            paths = QueuePaths(client, "/queue")
            ended: list[int] = []

            async def make(number: int) -> None:
                await paths.make()
                ended.append(number)

            slow = proxy.when(path=paths.entries).delay(1)
            making = [asyncio.ensure_future(make(number)) for number in range(4)]
            await slow.happened()
            making[0].cancel()
            making[2].cancel()
            await asyncio.wait(making)
            assert ended == [1, 3]
            # The fourth found them made.
            asked = Counter(path for request in proxy.requests for path in request.paths)
            assert asked == {paths.path: 2, paths.entries: 2} | dict.fromkeys(
                (paths.taken, paths.receipts, paths.dead), 1
            )

    run_virtually(main())
