"""The model of etcd, as one server sees it: what is in doubt, what is late, what is lost."""

from __future__ import annotations

import asyncio
import itertools
from typing import Any

import pytest

from paddock.log.etcd.store import (
    CompactedError,
    Range,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
)
from paddock.log.interface import Record
from paddock.testing import run_virtually
from paddock.testing.simulation.key_space import KeySpace
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.simulation.store_model import EtcdModel, ModelStore

BOOT = b"12345678"


async def collect(store: ModelStore, after: int, count: int) -> list[Record]:
    records = store.tail(after)
    try:
        async with asyncio.timeout(30):
            return [await anext(records) for _ in range(count)]
    finally:
        await records.aclose()


def has_batch(model: EtcdModel, number: int) -> bool:
    return model.space.get(model.keys.batch(BOOT, number)) is not None


def test_all_stores_share_the_keys() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        one, two = model.store("one"), model.store("two")
        assert await one.append(BOOT, 0, b"a")
        assert not await two.append(BOOT, 0, b"a")
        assert await two.swap(b"k", b"v", 0) == 3
        read = await one.read(b"k", b"none")
        assert (read.revision, read.found[1]) == (3, None)
        page = await one.page(Range(b"k"), keys_only=True)
        assert (page.items[0].value, page.items[0].mod_revision) == (b"", 3)
        assert await one.delete([Range(b"k")]) == 4
        await one.compact(4)
        status = await two.status()
        assert (status.revision, status.is_full) == (4, False)
        with pytest.raises(CompactedError):
            await collect(two, 0, 1)

    run_virtually(scenario())


def test_a_watch_shows_what_was_there_and_what_comes() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        one, two = model.store("one"), model.store("two")
        await one.append(BOOT, 0, b"a")
        watched = asyncio.create_task(collect(two, 0, 3))
        await asyncio.sleep(1)
        await one.append(BOOT, 1, b"b")
        await one.append(BOOT, 2, b"c")
        assert [record.payload for record in await watched] == [b"a", b"b", b"c"]
        assert model.link("two").streams == []

    run_virtually(scenario())


def test_a_watch_of_the_future_waits_without_a_word() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        store = model.store("one")
        watched = asyncio.create_task(collect(store, 4, 1))
        await asyncio.sleep(1)
        for number in range(4):
            await store.append(BOOT, number, b"")
        assert (await watched)[0].revision == 5

    run_virtually(scenario())


def test_a_cut_loses_requests_and_a_one_way_cut_replies() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        store, link = model.store("one"), model.link("one")
        link.cut()
        with pytest.raises(StoreError):
            await store.append(BOOT, 0, b"")
        link.heal()
        link.cut_replies()
        with pytest.raises(StoreError):
            await store.append(BOOT, 1, b"")
        link.heal()
        assert not has_batch(model, 0)
        assert has_batch(model, 1)

    run_virtually(scenario())


def test_a_watch_goes_on_while_requests_are_lost_until_it_breaks() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        one, two = model.store("one"), model.store("two")
        records = one.tail(model.space.revision)
        watched = asyncio.create_task(anext(records))
        await asyncio.sleep(1)
        model.link("one").cut_requests()
        with pytest.raises(StoreError):
            await one.append(BOOT, 0, b"")
        assert not has_batch(model, 0)
        await two.append(BOOT, 1, b"")
        assert (await watched).number == 1
        with pytest.raises(StoreError, match="no sign of life"):
            async with asyncio.timeout(60):
                await anext(records)

    run_virtually(scenario())


def test_a_watch_outlives_a_short_cut_only() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        one, two = model.store("one"), model.store("two")
        for cut_s in (5, 50):
            watched = asyncio.create_task(collect(one, model.space.revision, 1))
            await asyncio.sleep(1)
            model.link("one").cut()
            await two.append(BOOT, cut_s, b"")
            if cut_s == 5:
                await asyncio.sleep(cut_s)
                assert not watched.done()
                model.link("one").heal()
                assert (await watched)[0].number == 5
            else:
                with pytest.raises(StoreError, match="no sign of life"):
                    await watched

    run_virtually(scenario())


def test_a_late_request_is_carried_out_after_its_caller_gave_up() -> None:
    async def scenario() -> None:
        model = EtcdModel(faults=StoreFaults(late=1.0, late_s=(30.0, 40.0)))
        with pytest.raises(StoreError):
            await model.store("one").append(BOOT, 0, b"")
        assert not has_batch(model, 0)
        await asyncio.sleep(60)
        assert has_batch(model, 0)

    run_virtually(scenario())


def test_a_lost_reply_leaves_the_outcome_in_doubt() -> None:
    async def scenario() -> None:
        for faults in (StoreFaults(reply_lost=1.0), StoreFaults(request_lost=1.0)):
            model = EtcdModel(faults=faults)
            store = model.store("one")
            for number in range(10):
                with pytest.raises(StoreError):
                    await store.append(BOOT, number, b"")
            assert has_batch(model, 5) == (faults.reply_lost > 0)

    run_virtually(scenario())


def test_nothing_is_committed_in_an_election_and_everything_after_it() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        store = model.store("one")
        model.elect(2.0)
        with pytest.raises(StoreError):
            await store.append(BOOT, 0, b"")
        reading = asyncio.create_task(store.read(model.keys.head))
        await asyncio.sleep(0.5)
        assert not reading.done()
        assert not has_batch(model, 0)
        assert (await reading).found[0] is not None
        model.lose_quorum()
        with pytest.raises(StoreError):
            await store.append(BOOT, 1, b"")
        await asyncio.sleep(1000)
        assert not has_batch(model, 1)
        model.regain_quorum()
        assert has_batch(model, 1)

    run_virtually(scenario())


@pytest.mark.parametrize("swapped", [0.0, 0.2])
def test_neighbours_in_flight_are_swapped_as_often_as_was_said(swapped: float) -> None:
    async def scenario() -> float:
        model = EtcdModel(1, StoreFaults(swapped=swapped))
        store = model.store("one")
        slots = asyncio.Semaphore(4)

        async def append(number: int) -> None:
            async with slots:
                await store.append(BOOT, number, b"")

        await asyncio.gather(*(append(number) for number in range(1000)))
        numbers = [one.number for one in model.space.appended(model.keys, 0)]
        assert sorted(numbers) == [*range(1000)]
        return sum(a > b for a, b in itertools.pairwise(numbers)) / 1000

    share = run_virtually(scenario())
    assert share == 0 if swapped == 0 else 0.12 < share < 0.25


def test_streams_break_lag_and_fall_silent() -> None:
    async def scenario() -> None:
        model = EtcdModel(faults=StoreFaults(stream_broken=1.0))
        store, other = model.store("one"), model.store("two")
        await other.append(BOOT, 0, b"")
        with pytest.raises(StoreError, match="broke"):
            await collect(store, 0, 2)
        model.faults.stream_broken, model.faults.stream_silent = 0.0, 1.0
        with pytest.raises(TimeoutError):
            await collect(store, 0, 1)
        model.faults.stream_silent, model.faults.stream_behind = 0.0, 1.0
        model.faults.stream_behind_s = (5.0, 6.0)
        began = asyncio.get_running_loop().time()
        await collect(store, 0, 1)
        assert asyncio.get_running_loop().time() - began > 5

    run_virtually(scenario())


def test_a_stream_that_is_behind_is_overtaken_by_a_compaction() -> None:
    async def scenario() -> None:
        model = EtcdModel(faults=StoreFaults(stream_behind=1.0, stream_behind_s=(5.0, 6.0)))
        store = model.store("one")
        for number in range(3):
            await store.append(BOOT, number, b"")
        watched = asyncio.create_task(collect(store, 0, 3))
        await asyncio.sleep(1)
        await store.compact(4)
        with pytest.raises(CompactedError):
            await watched

    run_virtually(scenario())


def test_a_restore_breaks_the_streams_and_takes_the_revision_back() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        store = model.store("one")
        await store.append(BOOT, 0, b"")
        backup = model.backup()
        await store.append(BOOT, 1, b"")
        watched = asyncio.create_task(collect(store, 3, 1))
        await asyncio.sleep(1)
        model.restore(backup)
        with pytest.raises(StoreError, match="broke"):
            await watched
        assert (await store.read(model.keys.head)).revision == 2
        # The backup itself stays what it was.
        await store.append(BOOT, 1, b"")
        model.restore(backup)
        assert (await store.read(model.keys.head)).revision == 2
        model.restore(KeySpace())
        assert (await store.read(model.keys.head)).revision == 1

    run_virtually(scenario())


def test_a_full_etcd_and_a_missing_permission_refuse() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        store = model.store("one")
        model.fill()
        with pytest.raises(StoreFullError):
            await store.append(BOOT, 0, b"")
        assert (await store.status()).is_full
        assert await store.delete([Range(b"k")])
        model.make_space()
        assert await store.append(BOOT, 0, b"")
        model.link("one").forbidden = "permission denied"
        with pytest.raises(StoreForbiddenError, match="permission denied"):
            await store.append(BOOT, 1, b"")
        assert await model.store("two").append(BOOT, 1, b"")

    run_virtually(scenario())


def test_the_write_that_crosses_the_quota_is_refused_and_may_be_carried_out() -> None:
    async def scenario(seed: int) -> bool:
        model = EtcdModel(seed, quota_bytes=1000)
        store = model.store("one")
        assert await store.append(BOOT, 0, bytes(100))
        with pytest.raises(StoreFullError):
            await store.append(BOOT, 1, bytes(1000))
        with pytest.raises(StoreFullError):
            await store.append(BOOT, 2, b"")
        assert not has_batch(model, 2)
        return has_batch(model, 1)

    assert {run_virtually(scenario(seed)) for seed in range(10)} == {True, False}


def test_others_may_write_until_the_alarm_is_raised_and_nobody_is_told_before() -> None:
    async def scenario(seed: int) -> bool:
        model = EtcdModel(seed, quota_bytes=1000)
        crossing = asyncio.create_task(model.store("one").append(BOOT, 0, bytes(1000)))
        could_write = False
        for _ in range(100):
            await asyncio.sleep(0.0001)
            could_write = could_write or (has_batch(model, 0) and not model.space.is_full)
        with pytest.raises(StoreFullError):
            await crossing
        assert model.space.is_full
        return could_write

    assert {run_virtually(scenario(seed)) for seed in range(20)} == {True, False}


def test_a_closed_store_raises() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        store = model.store("one")
        model.lose_quorum()
        reading = asyncio.create_task(store.read(b"k"))
        watched = asyncio.create_task(collect(store, 0, 1))
        await asyncio.sleep(1)
        await store.close()
        for task in (reading, watched):
            with pytest.raises(StoreError, match="closed"):
                await task
        with pytest.raises(StoreError, match="closed"):
            await store.read(b"k")
        assert await asyncio.gather(reading, return_exceptions=True)

    run_virtually(scenario())


def test_pages_are_cut_short_with_more_behind_them() -> None:
    async def scenario() -> None:
        model = EtcdModel(faults=StoreFaults(page_cut=1.0))
        store = model.store("one")
        for number in range(20):
            await store.append(BOOT, number, b"")
        page = await store.page(Range(model.keys.batches, model.keys.batches_end))
        assert 1 <= len(page.items) <= 8
        assert page.has_more

    run_virtually(scenario())


def test_the_same_seed_plays_the_same() -> None:
    async def scenario(seed: int) -> tuple[Any, ...]:
        model = EtcdModel(seed, StoreFaults.rough())
        store = model.store("one")
        loop = asyncio.get_running_loop()
        seen: list[object] = []

        async def append(number: int) -> None:
            try:
                await store.append(BOOT, number, b"")
            except StoreError as error:
                seen.append(str(error))
            seen.append((number, loop.time()))

        await asyncio.gather(*(append(number) for number in range(100)))
        return tuple(seen), tuple(map(repr, model.space.appended(model.keys, 0)))

    assert run_virtually(scenario(5)) == run_virtually(scenario(5))
    assert run_virtually(scenario(5)) != run_virtually(scenario(6))


def test_faults_can_be_calmed() -> None:
    faults = StoreFaults.rough()
    assert faults != StoreFaults()
    faults.calm()
    assert faults == StoreFaults()
