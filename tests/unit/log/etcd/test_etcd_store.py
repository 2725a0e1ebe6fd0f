"""How records are made of a watch, and what is sent again; a real etcd is asked elsewhere."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import pytest

from paddock.log.etcd import etcd_store, messages
from paddock.log.etcd.etcd_store import (
    APPEND_TIMEOUT_S_MAX,
    APPEND_TIMEOUT_S_MIN,
    LARGE_PAGE_KEYS,
    PAGE_KEYS,
    EtcdStore,
)
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.statuses import DeadlineError, TooLargeError
from paddock.log.etcd.store import (
    CompactedError,
    Range,
    StoreError,
    StoreForbiddenError,
)
from paddock.log.interface import Record
from paddock.testing import run_virtually
from tests.unit.log.etcd import responses

KEYS = Keys("shop")
BOOT = bytes(range(8))
OTHER = b"\xff" * 8


class FakeWatch:
    def __init__(self, answers: list[bytes]) -> None:
        self._answers = answers
        self.is_closed = False

    async def read(self) -> bytes:
        if not self._answers:
            raise StoreError("the watch has ended")
        return self._answers.pop(0)

    def close(self) -> None:
        self.is_closed = True


class FakeChannel:
    """A channel with scripted answers."""

    endpoint = "h:1"
    size = 3
    # How long an answer takes.
    latency_s = 0.0

    def __init__(self) -> None:
        self.answers: list[bytes | StoreError] = []
        self.calls: list[tuple[str, bytes, float, int]] = []
        self.patient: list[bool] = []
        self.watched: list[bytes] = []
        self.watches: list[FakeWatch] = []
        self.has_user = False
        self.renewed = 0

    async def call(
        self,
        method: str,
        request: bytes,
        timeout_s: float,
        attempts: int = 1,
        *,
        is_patient: bool = False,
    ) -> bytes:
        self.calls.append((method, request, timeout_s, attempts))
        self.patient.append(is_patient)
        answer = self.answers.pop(0)
        await asyncio.sleep(timeout_s if isinstance(answer, DeadlineError) else self.latency_s)
        if isinstance(answer, StoreError):
            raise answer
        return answer

    async def watch(self, request: bytes) -> tuple[FakeWatch, bytes]:
        self.watched.append(request)
        watch = FakeWatch([answer for answer in self.answers if isinstance(answer, bytes)])
        self.watches.append(watch)
        if self.renewed:
            watch = FakeWatch([])
            return watch, responses.created()
        return watch, await watch.read()

    async def renew_token(self) -> bool:
        self.renewed += self.has_user
        return self.has_user


@pytest.fixture
def channel(monkeypatch: pytest.MonkeyPatch) -> FakeChannel:
    fake = FakeChannel()
    monkeypatch.setattr(etcd_store, "Channel", lambda options: fake)
    return fake


def run(use: Callable[[EtcdStore], Awaitable[None]]) -> None:
    async def main() -> None:
        await use(EtcdStore(EtcdOptions(("h:1",)), KEYS))

    run_virtually(main())


def follow(after: int = 0) -> tuple[list[Record], StoreError]:
    """Return the records of a tail, and how it ended."""
    found: list[Record] = []
    ends: list[StoreError] = []

    async def use(store: EtcdStore) -> None:
        tail = store.tail(after)
        while not ends:
            try:
                found.append(await anext(tail))
            except StoreError as end:
                ends.append(end)

    run(use)
    return found, ends[0]


def head(boot: bytes, number: int, revision: int, index: int) -> bytes:
    name = KEYS.batch(boot, number).removeprefix(KEYS.batches)
    return responses.put_event(KEYS.head, name, revision, index)


def batch(boot: bytes, number: int, revision: int, payload: bytes) -> bytes:
    return responses.put_event(KEYS.batch(boot, number), payload, revision, 1)


FIRST = [head(BOOT, 0, 7, 1), batch(BOOT, 0, 7, b"first")]
SECOND = [head(OTHER, 5, 9, 2), batch(OTHER, 5, 9, b"second")]
RECORDS = [Record(1, b"first", BOOT, 0, 7), Record(2, b"second", OTHER, 5, 9)]


def test_a_tail_watches_head_and_batches_from_behind_a_revision(channel: FakeChannel) -> None:
    channel.answers = [responses.created()]
    follow(after=41)
    wanted = Range(b"/paddock/shop/log", b"/paddock/shop/log0")
    assert channel.watched == [messages.watch_request(wanted, 42)]
    assert channel.watches[0].is_closed


@pytest.mark.parametrize("cuts", range(1 << 3))
def test_a_record_is_made_of_its_head_and_its_batch_wherever_it_is_cut(
    channel: FakeChannel, cuts: int
) -> None:
    events = FIRST + SECOND
    answers = [responses.created(), b""]
    for place, event in enumerate(events):
        answers[-1] += event
        if cuts & 1 << place:
            answers.append(b"")
    channel.answers = [responses.watch(one, is_fragment=True) for one in answers]
    records, _ = follow()
    assert records == RECORDS


def test_the_batch_may_come_before_its_head(channel: FakeChannel) -> None:
    channel.answers = [responses.watch(*reversed(FIRST)), responses.watch(*SECOND)]
    records, _ = follow()
    assert records == RECORDS


@pytest.mark.parametrize("missing", [0, 1])
def test_a_revision_that_is_not_whole_is_an_error(channel: FakeChannel, missing: int) -> None:
    channel.answers = [responses.watch(*FIRST, SECOND[1 - missing], head(BOOT, 1, 10, 3))]
    records, end = follow()
    assert records == RECORDS[:1]
    assert "revision 9" in str(end)


def test_a_batch_that_is_not_that_of_its_head_is_an_error(channel: FakeChannel) -> None:
    channel.answers = [responses.watch(head(BOOT, 1, 7, 1), batch(BOOT, 2, 7, b""))]
    records, end = follow()
    assert records == []
    assert "not the batch of its head" in str(end)


def test_a_key_that_is_no_batch_is_an_error(channel: FakeChannel) -> None:
    stray = responses.put_event(KEYS.batches + b"x", b"", 7, 1)
    channel.answers = [responses.watch(responses.put_event(KEYS.head, b"x", 7, 1), stray)]
    records, end = follow()
    assert records == []
    assert "not the batch of its head" in str(end)


def test_a_compaction_ends_a_tail(channel: FakeChannel) -> None:
    channel.answers = [
        responses.watch(*FIRST),
        responses.canceled("etcdserver: mvcc: required revision has been compacted", 40),
    ]
    records, end = follow()
    assert records == RECORDS[:1]
    assert isinstance(end, CompactedError)
    assert end.revision == 40


@pytest.mark.parametrize("has_user", [False, True])
def test_a_watch_that_is_not_permitted_is_tried_with_a_new_token(
    channel: FakeChannel, has_user: bool
) -> None:
    channel.has_user = has_user
    channel.answers = [responses.canceled("rpc error: etcdserver: permission denied")]
    _, end = follow()
    assert len(channel.watched) == 1 + has_user
    assert isinstance(end, StoreForbiddenError) is not has_user
    assert channel.watches[0].is_closed


def test_a_watch_that_was_canceled_otherwise_may_be_tried_again(channel: FakeChannel) -> None:
    channel.answers = [responses.created(), responses.canceled("etcdserver: watch canceled")]
    _, end = follow()
    assert type(end) is StoreError


def test_a_tail_that_is_closed_closes_its_watch(channel: FakeChannel) -> None:
    channel.answers = [responses.watch(*FIRST, *SECOND)]

    async def use(store: EtcdStore) -> None:
        tail = store.tail(0)
        assert await anext(tail) == RECORDS[0]
        await tail.aclose()

    run(use)
    assert channel.watches[0].is_closed


DONE = responses.transaction(9, succeeded=True)


LATE = DeadlineError("late")


def test_an_append_that_is_not_answered_is_sent_again_before_it_fails(
    channel: FakeChannel,
) -> None:
    async def use(store: EtcdStore) -> None:
        channel.answers = [LATE, LATE, DONE]
        assert await store.append(BOOT, 0, b"")
        channel.answers = [LATE] * 10
        with pytest.raises(DeadlineError):
            await store.append(BOOT, 1, b"")

    run(use)
    timeouts = [round(timeout_s, 3) for _, _, timeout_s, _ in channel.calls]
    assert timeouts == [0.1] * 13
    # Only the last attempt leaves the member.
    assert channel.patient == [True] * 12 + [False]
    assert len({request for _, request, _, _ in channel.calls[3:]}) == 1


def test_an_append_is_sent_again_more_rarely_if_etcd_is_slow(channel: FakeChannel) -> None:
    channel.latency_s = 0.25

    async def use(store: EtcdStore) -> None:
        channel.answers = [DONE] * 10
        for number in range(10):
            await store.append(BOOT, number, b"")

    run(use)
    timeouts = [round(timeout_s, 1) for _, _, timeout_s, _ in channel.calls]
    assert timeouts[:4] + timeouts[9:] == [0.1, 0.5, 0.8, 0.9, 1.0]


def test_an_append_that_was_lost_at_first_does_not_make_etcd_slow(channel: FakeChannel) -> None:
    """The time of an election is not that of a commit."""

    async def use(store: EtcdStore) -> None:
        channel.answers = [LATE, LATE, LATE, DONE, LATE, DONE]
        for number in range(2):
            await store.append(BOOT, number, b"")

    run(use)
    assert [round(timeout_s, 3) for _, _, timeout_s, _ in channel.calls] == [0.1] * 6


def test_a_slow_etcd_has_the_whole_deadline_for_one_attempt_in_the_end(
    channel: FakeChannel,
) -> None:
    async def use(store: EtcdStore) -> None:
        channel.answers = [LATE] * 200
        for _ in range(3):
            with pytest.raises(DeadlineError):
                await store.append(BOOT, 0, b"")

    run(use)
    assert (channel.calls[-1][2], channel.patient[-1]) == (4.0, False)
    assert channel.patient[-2] is False, "the third append was sent more than once"


def test_a_large_batch_has_more_time_before_it_is_sent_again(channel: FakeChannel) -> None:
    async def use(store: EtcdStore) -> None:
        channel.answers = [DONE, DONE]
        await store.append(BOOT, 0, bytes(500_000))
        await store.append(BOOT, 1, bytes(1 << 20))

    run(use)
    assert [round(timeout_s, 3) for _, _, timeout_s, _ in channel.calls] == [0.6, 1.0]


def test_an_append_fails_later_as_long_as_none_is_answered(channel: FakeChannel) -> None:
    waited: list[float] = []

    async def append(store: EtcdStore) -> None:
        loop = asyncio.get_running_loop()
        before = loop.time()
        try:
            await store.append(BOOT, 0, b"")
        except DeadlineError:
            waited.append(round(loop.time() - before, 3))

    async def use(store: EtcdStore) -> None:
        channel.answers = [LATE] * 200
        for _ in range(4):
            await append(store)
        channel.answers = [DONE]
        await append(store)
        # Four in flight that fail together double it once.
        channel.answers = [LATE] * 200
        await asyncio.gather(*[append(store) for _ in range(4)])
        await append(store)

    run(use)
    assert waited == [1, 2, 4, 4, 1, 1, 1, 1, 2]
    assert (APPEND_TIMEOUT_S_MIN, APPEND_TIMEOUT_S_MAX) == (1.0, 4.0)


@pytest.mark.parametrize("is_page", [True, False])
def test_a_read_is_waited_for_as_long_as_it_may_take(channel: FakeChannel, is_page: bool) -> None:
    """Briefly at first, because a lease may depend on it."""
    answer = responses.page([], 9) if is_page else DONE

    async def use(store: EtcdStore) -> None:
        channel.answers = [LATE, LATE, LATE, LATE, LATE, answer, answer, answer, LATE]
        while channel.answers:
            # One that is slow keeps its time.
            channel.latency_s = 0.5 if len(channel.answers) < 3 else 0.0
            with suppress(DeadlineError):
                await (store.page(Range(b"/a")) if is_page else store.read())

    run(use)
    most = [1.0, 2.0, 4.0, 8.0, 15.0, 15.0] if is_page else [1.0, 2.0, 4.0, 5.0, 5.0, 5.0]
    assert [timeout_s for _, _, timeout_s, _ in channel.calls] == [*most, 1.0, 1.0, 2.0]


def test_an_append_that_fails_otherwise_is_not_sent_again(channel: FakeChannel) -> None:
    async def use(store: EtcdStore) -> None:
        channel.answers = [StoreError("connection refused"), DONE]
        with pytest.raises(StoreError, match="refused"):
            await store.append(BOOT, 0, b"")

    run(use)
    assert len(channel.calls) == 1


def test_a_swap_is_sent_once_and_an_append_to_each_member(channel: FakeChannel) -> None:
    channel.answers = [DONE, DONE, DONE]

    async def use(store: EtcdStore) -> None:
        assert await store.append(BOOT, 0, b"")
        assert await store.swap(KEYS.manifest, b"", 3) == 9
        assert await store.delete([Range(b"/a")]) == 9

    run(use)
    assert [attempts for _, _, _, attempts in channel.calls] == [3, 1, 3]


def test_a_page_that_is_too_large_is_asked_for_in_smaller_ones(channel: FakeChannel) -> None:
    page = responses.page([], 9)
    channel.answers = [TooLargeError("too large"), page, page, page]

    async def use(store: EtcdStore) -> None:
        await store.page(Range(b"/a", b"/b"))
        await store.page(Range(b"/a", b"/b"))
        await store.page(Range(b"/a", b"/b"), 3, 5)

    run(use)
    limits = [(0, PAGE_KEYS), (0, LARGE_PAGE_KEYS), (0, LARGE_PAGE_KEYS), (3, 5)]
    assert [request for _, request, _, _ in channel.calls] == [
        messages.range_request(Range(b"/a", b"/b"), revision, limit) for revision, limit in limits
    ]


def test_a_page_that_cannot_be_smaller_is_an_error(channel: FakeChannel) -> None:
    channel.answers = [TooLargeError("too large")]

    async def use(store: EtcdStore) -> None:
        with pytest.raises(TooLargeError):
            await store.page(Range(b"/a"), 0, LARGE_PAGE_KEYS)

    run(use)


def test_what_is_compacted_already_is_no_error_to_compact(channel: FakeChannel) -> None:
    channel.answers = [CompactedError(0), StoreError("a future revision")]

    async def use(store: EtcdStore) -> None:
        await store.compact(5)
        with pytest.raises(StoreError):
            await store.compact(5000)

    run(use)
