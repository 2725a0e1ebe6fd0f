"""The log from its keys: what is planned, and how it is read."""

from __future__ import annotations

import random

import pytest

from paddock.log.etcd import pages
from paddock.log.etcd.pages import Planned, plan_pages, read_planned
from paddock.log.etcd.store import Page, Range
from paddock.log.interface import Record, TrimmedError
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.simulation.store_model import EtcdModel, ModelStore
from tests.unit.log.etcd.helpers import virtually

ONE, TWO = b"server 1", b"server 2"


class Counting(ModelStore):
    """A store that remembers what pages were asked for."""

    def __init__(self, model: EtcdModel) -> None:
        super().__init__(model, model.link("one"))
        self.asked: list[tuple[bool, int]] = []

    async def page(
        self, wanted: Range, revision: int = 0, limit: int = 0, *, keys_only: bool = False
    ) -> Page:
        self.asked.append((keys_only, revision))
        return await super().page(wanted, revision, limit, keys_only=keys_only)


async def read(store: ModelStore, model: EtcdModel, plan: list[Planned]) -> list[Record]:
    return [record async for record in read_planned(store, model.keys, plan, 1)]


def test_records_come_in_the_order_of_revisions() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        order = [(ONE, 0), (TWO, 0), (ONE, 2), (ONE, 1), (TWO, 3), (ONE, 3), (TWO, 1), (TWO, 2)]
        for boot, number in order:
            model.append(boot, number, b"%s %d" % (boot, number))
        store = Counting(model)
        plan = await plan_pages(store, model.keys, 0, 100)
        assert [(one.boot, one.number) for one in plan] == order
        records = await read(store, model, plan)
        expected = model.space.appended(model.keys, 0)
        assert records == expected
        # The keys, and a page for each server; never at a revision, which may be compacted.
        assert store.asked == [(True, 0), (False, 0), (False, 0)]

    virtually(scenario())


def test_only_what_lies_between_two_revisions_is_planned() -> None:
    async def scenario() -> None:
        model = EtcdModel()
        for number in range(10):
            model.append(ONE, number, b"")
        model.space.swap(model.keys.batches + b"not a batch", b"", 0, None)
        plan = await plan_pages(model.store("one"), model.keys, 4, 8)
        assert [one.number for one in plan] == [3, 4, 5, 6]
        everything = await plan_pages(model.store("one"), model.keys, 0, 100)
        assert [one.number for one in everything] == [*range(10)]

    virtually(scenario())


@pytest.mark.parametrize("seed", range(20))
def test_any_order_and_any_pages_give_the_log(seed: int) -> None:
    async def scenario() -> None:
        chances = random.Random(seed)
        model = EtcdModel(seed, StoreFaults(page_cut=0.5))
        order = [(boot, number) for boot in (ONE, TWO, b"server 3") for number in range(100)]
        # Late repetitions stand anywhere.
        for _ in range(chances.randrange(300)):
            at = chances.randrange(len(order) - 1)
            order[at], order[at + 1] = order[at + 1], order[at]
        chances.shuffle(order[: chances.choice([2, 50])])
        for boot, number in order:
            model.append(boot, number, b"%s %d" % (boot, number))
        store = model.store("one")
        plan = await plan_pages(store, model.keys, 0, model.space.revision)
        assert await read(store, model, plan) == model.space.appended(model.keys, 0)

    virtually(scenario())


def test_memory_is_bounded_by_reading_again(monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario() -> None:
        model = EtcdModel()
        # The second server's come in between all of the first one's, in the other direction.
        for number in range(100):
            model.append(ONE, number, bytes(100))
            model.append(TWO, 99 - number, bytes(100))
        store = Counting(model)
        plan = await plan_pages(store, model.keys, 0, 1000)
        assert await read(store, model, plan) == model.space.appended(model.keys, 0)
        roomy = len(store.asked)
        monkeypatch.setattr(pages, "AHEAD_BYTES_MAX", 1000)
        assert await read(store, model, plan) == model.space.appended(model.keys, 0)
        assert len(store.asked) > 2 * roomy

    virtually(scenario())


@pytest.mark.parametrize("is_written_again", [False, True])
def test_what_was_trimmed_meanwhile_is_missed(is_written_again: bool) -> None:
    async def scenario() -> None:
        model = EtcdModel()
        for number in range(10):
            model.append(ONE, number, b"")
        store = model.store("one")
        plan = await plan_pages(store, model.keys, 0, 100)
        model.space.delete([Range(model.keys.batch(ONE, 5))], None, 0)
        if is_written_again:
            model.append(ONE, 5, b"")
        with pytest.raises(TrimmedError, match="record 6"):
            await read(store, model, plan)

    virtually(scenario())
