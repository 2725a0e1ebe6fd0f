"""Following: each record once and in order, whatever the watch does."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Callable

import pytest

from paddock.log.etcd.follower import HANDED_BYTES_MAX, HANDED_RECORDS_MAX
from paddock.log.etcd.store import Page, Range
from paddock.log.interface import OtherHistoryError, Record, TrimmedError
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.simulation.store_model import EtcdModel, ModelStore
from tests.unit.log.etcd.helpers import Member, close, position_of, quiet, start, trim, virtually


class Meddler(ModelStore):
    """A store in which something happens before a page is read, or a watch is opened."""

    def __init__(self, model: EtcdModel, name: str) -> None:
        super().__init__(model, model.link(name))
        self.before_page: Callable[[bool], None] = lambda _: None
        self.before_tail: Callable[[], None] = lambda: None
        self.pages = 0

    async def page(
        self, wanted: Range, revision: int = 0, limit: int = 0, *, keys_only: bool = False
    ) -> Page:
        self.before_page(keys_only)
        self.pages += 1
        return await super().page(wanted, revision, limit, keys_only=keys_only)

    async def tail(self, after: int) -> AsyncGenerator[Record, None]:
        self.before_tail()
        async for record in super().tail(after):
            yield record


def test_a_broken_watch_goes_on_where_it_was() -> None:
    async def scenario() -> None:
        one, two = await start(quiet(), "one", "two")
        for _ in range(5):
            await one.write(4)
            two.link.break_streams()
            await asyncio.sleep(1)
        assert two.heard.records == one.heard.records
        assert two.log.figures.reopenings == 5
        await close(one, two)

    virtually(scenario())


def test_a_short_cut_is_not_noticed_and_a_long_one_passes() -> None:
    async def scenario() -> None:
        one, two = await start(quiet(), "one", "two")
        await one.write(3)
        await two.heard.index(3)
        for cut_s in (2.0, 200.0):
            two.link.cut()
            await one.write(3)
            await asyncio.sleep(cut_s)
            assert len(two.heard.records) < len(one.heard.records)
            two.link.heal()
            await two.heard.index(one.heard.indices[-1])
        assert two.heard.records == one.heard.records
        await close(one, two)

    virtually(scenario())


def test_a_gap_opens_the_watch_again() -> None:
    async def scenario() -> None:
        one, two = await start(quiet(), "one", "two")
        await one.write(3)
        await two.heard.index(3)
        two.link.records_dropped = 1
        await one.write(3)
        await two.heard.index(6)
        assert two.heard.records == one.heard.records
        assert (two.log.figures.reopenings, two.log.figures.page_reads) == (1, 0)
        await close(one, two)

    virtually(scenario())


def test_a_gap_that_stays_is_read_in_pages() -> None:
    async def scenario() -> None:
        one, two = await start(quiet(), "one", "two")
        await one.write(3)
        await two.heard.index(3)
        two.link.records_dropped = 1
        await one.write(2)
        # The watch that is opened now misses the same record.
        two.link.records_dropped = 1
        await two.heard.index(5)
        assert two.heard.records == one.heard.records
        assert two.log.figures.page_reads == 1
        await close(one, two)

    virtually(scenario())


def test_a_silent_watch_is_noticed_by_our_own_batches() -> None:
    async def scenario() -> None:
        (one,) = await start(quiet(), "one")
        await one.write(1)
        one.link.silence_streams()
        began = asyncio.get_running_loop().time()
        await one.write(1)
        assert asyncio.get_running_loop().time() - began < 1.5
        assert one.log.figures.reopenings == 1
        await close(one)

    virtually(scenario())


def test_a_silent_watch_is_noticed_by_the_head() -> None:
    async def scenario() -> None:
        one, two = await start(quiet(), "one", "two")
        await one.write(1)
        await two.heard.index(1)
        two.link.silence_streams()
        await one.write(5)
        await two.heard.index(6)
        assert two.log.figures.reopenings == 1
        await close(one, two)

    virtually(scenario())


def test_a_quiet_watch_is_left_alone() -> None:
    async def scenario() -> None:
        one, two = await start(quiet(), "one", "two")
        await one.write(1)
        await asyncio.sleep(600)
        assert one.log.figures.reopenings == two.log.figures.reopenings == 0
        await close(one, two)

    virtually(scenario())


def test_pages_help_where_no_watch_does() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        model.faults.stream_silent = 1.0
        for _ in range(3):
            await one.write(10)
        await two.heard.index(30)
        assert two.heard.records == one.heard.records
        assert two.log.figures.page_reads > 0
        await close(one, two)

    virtually(scenario())


def test_a_compacted_history_is_read_in_pages() -> None:
    async def scenario() -> None:
        model = EtcdModel(3, StoreFaults(swapped=0.25))
        members = await start(model, "one", "two", "three")
        for _ in range(100):
            for member in members:
                member.propose(b"%d" % member.next)
            await asyncio.sleep(0.002)
        for member in members:
            await member.heard.index(300)
        records = members[0].heard.records
        numbers = [record.number for record in records if record.server == members[0].boot]
        assert numbers != sorted(numbers)
        model.compact(model.space.revision)
        late = Member(model, "late")
        await late.follow()
        assert late.heard.records == records
        assert late.log.figures.page_reads == 1
        # And the watch from there on.
        await members[0].write(1)
        await late.heard.index(301)
        assert late.log.figures.page_reads == 1
        await close(*members, late)

    virtually(scenario())


def test_pages_survive_a_compaction_at_every_read() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        for _ in range(50):
            await one.write(4)
            await two.write(4)
        model.compact(model.space.revision)
        store = Meddler(model, "late")

        def meddle(_: bool) -> None:
            model.append(b"somebody", store.pages, b"meanwhile")
            model.compact(model.space.revision)

        store.before_page = meddle
        late = Member(model, "late", store)
        await late.follow()
        store.before_page = lambda _: None
        await one.write(1)
        await late.heard.until(lambda: len(late.heard.records) == len(one.heard.records))
        assert late.heard.records == one.heard.records
        assert store.pages > 5
        await close(one, two, late)

    virtually(scenario())


def test_a_server_that_has_everything_needs_no_pages_after_a_compaction() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        await one.write(3)
        await two.heard.index(3)
        for number in range(3):
            model.space.swap(model.keys.skip(number), b"", 0, None)
        model.compact(model.space.revision)
        two.link.break_streams()
        await asyncio.sleep(1)
        await one.write(1)
        await two.heard.index(4)
        assert (two.log.figures.reopenings, two.log.figures.page_reads) == (1, 0)
        await close(one, two)

    virtually(scenario())


def test_the_watch_goes_on_behind_the_revision_of_the_pages() -> None:
    """Also if a record came meanwhile: what lies before it may be compacted, and is not needed."""

    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        await one.write(3)
        for number in range(3):
            model.space.swap(model.keys.skip(100 + number), b"", 0, None)
        model.compact(model.space.revision)
        store = Meddler(model, "late")

        def meddle(keys_only: bool) -> None:
            if not keys_only:
                model.append(b"somebody", 0, b"meanwhile")

        store.before_page = meddle
        late = Member(model, "late", store)
        await late.follow()
        await late.heard.index(4)
        assert late.log.figures.page_reads == 1
        await close(one, late)

    virtually(scenario())


def test_what_is_trimmed_while_pages_are_read_is_missed() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        for _ in range(50):
            await one.write(4)
        model.compact(model.space.revision)
        store = Meddler(model, "late")

        def meddle(keys_only: bool) -> None:
            # The second page of values.
            if not keys_only and late.heard.records:
                trim(model, one.heard.records[150])

        store.before_page = meddle
        late = Member(model, "late", store)
        with pytest.raises(TrimmedError):
            await late.follow()
        assert 0 < len(late.heard.records) < 150
        assert late.heard.records == one.heard.records[: len(late.heard.records)]
        await close(one, late)

    virtually(scenario())


def test_a_watch_on_another_history_is_not_believed() -> None:
    """A restore comes between the check and the opening; indices and revisions fit."""

    async def scenario() -> None:
        model = quiet()
        store = Meddler(model, "one")
        one = Member(model, "one", store)
        await one.follow()
        (two,) = await start(model, "two")
        await two.write(3)
        backup = model.backup()
        await two.write(3)
        await one.heard.index(6)

        def restore() -> None:
            store.before_tail = lambda: None
            model.restore(backup)
            for number in range(10):
                model.append(b"other!!!", number, b"another history")

        store.before_tail = restore
        one.link.break_streams()
        assert isinstance(await one.heard.failing(), OtherHistoryError)
        assert one.heard.indices == [1, 2, 3, 4, 5, 6]
        await close(one, two)

    virtually(scenario())


def test_a_restore_behind_a_watch_that_stays_open_is_noticed() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        await one.write(3)
        backup = model.backup()
        await one.write(3)
        model.restore(backup, breaks_streams=False)
        assert isinstance(await one.heard.failing(), OtherHistoryError)
        await close(one)

    virtually(scenario())


@pytest.mark.parametrize("size", [1, HANDED_BYTES_MAX // 4], ids=["many", "large"])
def test_no_more_is_handed_over_than_there_is_room_for(size: int) -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        for number in range(200):
            model.append(b"somebody", number, bytes(size))
        two = Member(model, "two")
        two.heard.fill()
        following = asyncio.create_task(two.follow())
        await asyncio.sleep(60)
        told = len(two.heard.records)
        assert 0 < told <= min(HANDED_RECORDS_MAX, HANDED_BYTES_MAX // size)
        two.heard.make_room()
        await following
        assert two.heard.indices == [*range(1, 201)]
        await close(one, two)

    virtually(scenario())


def test_a_listener_without_room_is_no_reason_to_open_the_watch_again() -> None:
    async def scenario() -> None:
        (one,) = await start(quiet(), "one")
        one.heard.fill()
        one.propose(*(b"" for _ in range(HANDED_RECORDS_MAX + 10)))
        await one.heard.index(HANDED_RECORDS_MAX)
        await asyncio.sleep(30)
        assert len(one.heard.records) == HANDED_RECORDS_MAX
        one.heard.make_room()
        await one.heard.index(HANDED_RECORDS_MAX + 10)
        assert one.log.figures.reopenings == 0
        await close(one)

    virtually(scenario())


def test_a_late_repetition_after_trimming_is_a_record_of_its_own() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        await one.write(10)
        await two.write(10)
        trim(model, one.heard.records[14])
        # The first batches are not there, so they are put again.
        assert model.append(one.boot, 3, b"%s 3" % one.boot)
        assert model.append(one.boot, 1, b"%s 1" % one.boot)
        await two.write(1)
        await one.heard.index(23)
        assert one.heard.proposals[20:22] == [(one.boot, 3), (one.boot, 1)]
        assert one.heard.failure is None
        # In pages, too, where its key is the first of all.
        model.compact(model.space.revision)
        late = Member(model, "late")
        await late.follow(position_of(one.heard.records[15]))
        assert late.heard.records == one.heard.records[16:]
        await close(one, two, late)

    virtually(scenario())


def test_a_server_that_has_everything_does_not_need_its_trimmed_key() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        await one.write(10)
        await two.heard.index(10)
        trim(model, one.heard.records[9])
        two.link.break_streams()
        await one.write(1)
        await two.heard.index(11)
        assert two.heard.failure is None
        await close(one, two)

    virtually(scenario())


def test_figures_say_how_far_it_is_behind() -> None:
    async def scenario() -> None:
        model = quiet()
        one, two = await start(model, "one", "two")
        await one.write(5)
        await two.heard.index(5)
        two.link.silence_streams()
        await one.write(5)
        await asyncio.sleep(6.5)
        assert two.log.last_index == 10
        assert two.log.figures.lag == 5
        await two.heard.index(10)
        assert two.log.figures.lag == 0
        assert one.log.figures.commit_s > 0
        await close(one, two)

    virtually(scenario())
