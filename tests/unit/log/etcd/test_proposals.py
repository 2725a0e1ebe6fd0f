"""Our own batches: repeated until they come out of the log, and never under an ended name."""

from __future__ import annotations

import asyncio

import pytest

from paddock.log.etcd.figures import LogFigures
from paddock.log.etcd.proposals import Proposals
from paddock.log.etcd.store import StoreError, StoreForbiddenError, StoreFullError
from paddock.log.interface import ForbiddenError, LogError, Record
from paddock.testing.simulation.store_faults import StoreFaults
from paddock.testing.simulation.store_model import EtcdModel, ModelStore
from tests.unit.log.etcd.helpers import close, quiet, start, virtually

BOOT = b"12345678"


class Script(ModelStore):
    """A store whose appends do as they are told, one after another, and then succeed."""

    def __init__(self, *outcomes: Exception | bool) -> None:
        super().__init__(EtcdModel(), EtcdModel().link("one"))
        self.outcomes = [*outcomes]
        self.appends: list[tuple[bytes, int, bytes]] = []

    async def append(self, boot: bytes, number: int, payload: bytes) -> bool:
        self.appends.append((boot, number, payload))
        await asyncio.sleep(0.01)
        outcome = self.outcomes.pop(0) if self.outcomes else True
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


class Scene:
    def __init__(self, *outcomes: Exception | bool) -> None:
        self.store = Script(*outcomes)
        self.figures = LogFigures()
        self.failures: list[LogError] = []
        self.proposals = Proposals(self.store, self.figures, self.failures.append)
        self.proposals.begin(BOOT)

    def arrive(self, number: int, payload: bytes, server: bytes = BOOT) -> None:
        self.proposals.arrived(Record(1, payload, server, number, 2))


def test_an_error_is_followed_by_the_same_append() -> None:
    async def scenario() -> None:
        scene = Scene(StoreError("lost"), StoreError("lost again"))
        scene.proposals.propose(0, b"batch")
        await asyncio.sleep(10)
        assert scene.store.appends == [(BOOT, 0, b"batch")] * 3
        assert scene.figures.errors == 2
        assert scene.failures == []
        await scene.proposals.close()

    virtually(scenario())


@pytest.mark.parametrize("answer", [True, False])
def test_what_is_answered_is_not_sent_again(answer: bool) -> None:
    async def scenario() -> None:
        scene = Scene(answer)
        scene.proposals.propose(0, b"batch")
        assert scene.proposals.answered_at() is None
        await asyncio.sleep(100)
        assert len(scene.store.appends) == 1
        # It should have come out since then.
        answered_at = scene.proposals.answered_at()
        assert answered_at is not None
        assert answered_at < 1
        scene.arrive(0, b"batch")
        assert scene.proposals.answered_at() is None
        await scene.proposals.close()

    virtually(scenario())


def test_what_came_out_is_not_sent_again() -> None:
    async def scenario() -> None:
        scene = Scene(StoreError("the reply was lost"))
        scene.proposals.propose(0, b"batch")
        await asyncio.sleep(0.001)
        scene.arrive(0, b"batch")
        await asyncio.sleep(100)
        assert len(scene.store.appends) == 1
        await scene.proposals.close()

    virtually(scenario())


def test_the_time_of_a_commit_counts_from_the_first_attempt() -> None:
    async def scenario() -> None:
        scene = Scene(*[StoreError("lost")] * 5)
        scene.proposals.propose(0, b"batch")
        await asyncio.sleep(2)
        scene.arrive(0, b"batch")
        assert scene.figures.commit_s == pytest.approx(2)
        await scene.proposals.close()

    virtually(scenario())


def test_a_full_etcd_is_asked_again_slowly() -> None:
    async def scenario() -> None:
        scene = Scene(*[StoreFullError("no space")] * 5)
        scene.proposals.propose(0, b"batch")
        await asyncio.sleep(4.5)
        assert (scene.figures.is_full, len(scene.store.appends)) == (True, 5)
        await asyncio.sleep(5)
        assert (scene.figures.is_full, len(scene.store.appends)) == (False, 6)
        await scene.proposals.close()

    virtually(scenario())


def test_what_cannot_pass_fails_at_once() -> None:
    async def scenario() -> None:
        scene = Scene(StoreForbiddenError("too large"))
        scene.proposals.propose(0, b"batch")
        await asyncio.sleep(10)
        assert len(scene.store.appends) == 1
        (failure,) = scene.failures
        assert isinstance(failure, ForbiddenError)
        await scene.proposals.close()

    virtually(scenario())


def test_a_refusal_of_what_came_out_already_is_none() -> None:
    async def scenario() -> None:
        scene = Scene(StoreForbiddenError("permission denied"))
        scene.proposals.propose(0, b"batch")
        await asyncio.sleep(0.001)
        scene.arrive(0, b"batch")
        await asyncio.sleep(10)
        assert scene.failures == []
        await scene.proposals.close()

    virtually(scenario())


def test_a_bug_does_not_go_unnoticed() -> None:
    async def scenario() -> None:
        scene = Scene(ZeroDivisionError())
        scene.proposals.propose(0, b"batch")
        await asyncio.sleep(10)
        (failure,) = scene.failures
        assert isinstance(failure.__cause__, ZeroDivisionError)
        await scene.proposals.close()

    virtually(scenario())


def test_nothing_of_an_ended_name_is_sent() -> None:
    async def scenario() -> None:
        scene = Scene(*[StoreError("lost")] * 100)
        scene.proposals.propose(0, b"old")
        scene.proposals.propose(1, b"old")
        await asyncio.sleep(0.005)
        scene.proposals.begin(b"new name")
        scene.proposals.propose(0, b"new")
        await asyncio.sleep(100)
        assert [boot for boot, _, _ in scene.store.appends].count(BOOT) == 2
        assert len(scene.store.appends) > 10
        assert {*scene.store.appends[2:]} == {(b"new name", 0, b"new")}
        # What it was is no clone's.
        scene.arrive(0, b"whatever")
        scene.proposals.withdraw()
        sent = len(scene.store.appends)
        await asyncio.sleep(100)
        assert len(scene.store.appends) == sent
        with pytest.raises(AssertionError):
            scene.proposals.propose(1, b"without a name")
        await scene.proposals.close()

    virtually(scenario())


def test_what_waits_for_a_connection_is_not_sent_after_withdraw() -> None:
    class Unconnected(Script):
        async def append(self, boot: bytes, number: int, payload: bytes) -> bool:
            await asyncio.sleep(10)
            return await super().append(boot, number, payload)

    async def scenario() -> None:
        store = Unconnected()
        failures: list[LogError] = []
        proposals = Proposals(store, LogFigures(), failures.append)
        proposals.begin(BOOT)
        proposals.propose(0, b"batch")
        await asyncio.sleep(1)
        proposals.withdraw()
        await asyncio.sleep(60)
        assert store.appends == []
        assert failures == []
        await proposals.close()

    virtually(scenario())


@pytest.mark.parametrize(
    ("number", "payload"), [(0, b"other bytes"), (1, b"never proposed")], ids=["bytes", "number"]
)
def test_what_is_not_ours_under_our_name_is_a_clones(number: int, payload: bytes) -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.proposals.propose(0, b"batch")
        with pytest.raises(ForbiddenError, match="clone"):
            scene.arrive(number, payload)
        await scene.proposals.close()

    virtually(scenario())


def test_a_late_repetition_of_ours_is_no_clones() -> None:
    async def scenario() -> None:
        scene = Scene()
        scene.proposals.propose(0, b"batch")
        scene.arrive(0, b"batch")
        scene.arrive(0, b"batch")
        scene.arrive(0, b"of another", b"another!")
        await scene.proposals.close()

    virtually(scenario())


def test_a_clone_ends_the_log() -> None:
    async def scenario() -> None:
        model = quiet()
        one, clone = await start(model, "one", "two")
        clone.boot = one.boot
        await one.write(2)
        clone.log.begin(one.boot)
        clone.log.propose(2, b"of the clone")
        await clone.heard.index(3)
        error = await one.heard.failing()
        assert isinstance(error, ForbiddenError)
        assert "clone" in str(error)
        # It is not told what it has not written.
        assert one.heard.indices == [1, 2]
        await close(one, clone)

    virtually(scenario())


FAULTS = {
    "requests": StoreFaults(request_lost=0.5),
    "replies": StoreFaults(reply_lost=0.5),
    "late": StoreFaults(late=0.2),
    "swapped": StoreFaults(swapped=0.5),
    "elections": StoreFaults(election=0.2),
}


@pytest.mark.parametrize("fault", FAULTS)
def test_every_batch_comes_out_once(fault: str) -> None:
    async def scenario() -> None:
        model = EtcdModel(1, FAULTS[fault])
        model.faults = StoreFaults()
        (one,) = await start(model, "one")
        model.faults = FAULTS[fault]
        one.propose(*(b"%d" % number for number in range(30)))
        await one.heard.index(30)
        # Also long after, when late ones arrive.
        await asyncio.sleep(120)
        assert sorted(one.heard.proposals) == [(one.boot, number) for number in range(30)]
        assert all(record.payload == b"%d" % record.number for record in one.heard.records)
        model.faults = StoreFaults()
        await close(one)

    virtually(scenario())


def test_a_full_etcd_is_told_and_passes() -> None:
    async def scenario() -> None:
        model = quiet()
        (one,) = await start(model, "one")
        model.fill()
        one.propose(b"0")
        await asyncio.sleep(5)
        assert (one.log.is_full, one.heard.failure) == (True, None)
        model.make_space()
        await one.heard.index(1)
        await asyncio.sleep(1)
        assert (one.log.is_full, one.heard.failure) == (False, None)
        await close(one)

    virtually(scenario())
