"""A member of etcd that is silent, above all the leader: how soon others take what is sent.

Three members without a network, in virtual time. The leader `s` is silent from the beginning, and
connections to it stay open. The others lose what is appended until they miss it, then refuse it,
and take it from the moment when one of them is elected.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator

import pytest

from paddock.log.etcd import channel as channel_module
from paddock.log.etcd import messages
from paddock.log.etcd.etcd_store import RESEND_S_MIN, EtcdStore
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.store import Range, StoreError
from paddock.testing import run_virtually
from tests.unit.log.etcd import responses
from tests.unit.log.etcd.fake_grpc import FakeGrpc, FakeRpcError, Metadata

BOOT = bytes(range(8))
DONE = responses.transaction(9, succeeded=True)
# Of T = 4 s, what an idle server has left at least when its leader is gone.
LEFT_S = 2.2
# What is sent is sent again after this at the latest; members are asked again after 0.1 s.
REACTION_S = RESEND_S_MIN + 0.1

Question = Callable[[EtcdStore], Awaitable[object]]


class Election:
    """What the members answer."""

    def __init__(self, missed_at: dict[str, float], elected_at: float) -> None:
        self.has_begun = False
        self.asked: list[str] = []
        self._missed_at = missed_at
        self._elected_at = elected_at
        self._begun_at = 0.0

    def begin(self) -> None:
        self.has_begun = True
        self._begun_at = self._time()

    @property
    def past_s(self) -> float:
        """How long the leader has been silent."""
        return self._time() - self._begun_at

    async def answer(self, endpoint: str, method: str, request: bytes, metadata: Metadata) -> bytes:
        self.asked.append(endpoint)
        await asyncio.sleep(0.005)
        is_read = method == messages.RANGE
        if self.has_begun:
            left_s = self._elected_at - self.past_s
            if endpoint == "s:1":
                await asyncio.Event().wait()
            elif method == messages.STATUS:
                return b""
            elif left_s > 0 and self.past_s < self._missed_at[endpoint]:
                if not is_read:
                    await asyncio.Event().wait()
                await asyncio.sleep(left_s)
                raise FakeRpcError("UNAVAILABLE", "etcdserver: leader changed")
            elif left_s > 0:
                raise FakeRpcError("UNAVAILABLE", "etcdserver: no leader")
        return responses.page([], 9) if is_read else DONE

    def _time(self) -> float:
        return asyncio.get_running_loop().time()


@pytest.fixture
def grpc(monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeGrpc]:
    fake = FakeGrpc()
    monkeypatch.setattr(channel_module, "import_grpc", lambda: fake)
    yield fake
    assert fake.open == [], "a channel was left open"


async def until_answered(question: Question, store: EtcdStore) -> None:
    """Ask as the log does: again after a short pause."""
    while True:
        try:
            await question(store)
        except StoreError:
            await asyncio.sleep(0.05)
        else:
            return


async def append(store: EtcdStore) -> object:
    return await store.append(BOOT, 0, b"")


async def page(store: EtcdStore) -> object:
    return await store.page(Range(b"/a"))


def elect(grpc: FakeGrpc, endpoints: tuple[str, ...], election: Election) -> float:
    """Return how long the leader is silent until an append and a read are through."""
    grpc.answer = election.answer
    past_s: list[float] = []

    async def main() -> None:
        store = EtcdStore(EtcdOptions(endpoints), Keys("shop"))
        try:
            await append(store)
            election.begin()
            questions = (append, page)
            await asyncio.gather(*[until_answered(question, store) for question in questions])
            past_s.append(election.past_s)
        finally:
            await store.close()

    run_virtually(main())
    return past_s[0]


ORDERS = [("s:1", "a:1", "b:1"), ("a:1", "s:1", "b:1"), ("a:1", "b:1", "s:1")]


@pytest.mark.parametrize("endpoints", ORDERS)
@pytest.mark.parametrize("missed_s", [(0.9, 1.0), (1.4, 0.9), (5.0, 5.0)])
@pytest.mark.parametrize("elected_s", [1.0, 1.2, 1.45, 1.9])
def test_what_is_sent_comes_through_as_soon_as_there_is_a_leader(
    grpc: FakeGrpc, endpoints: tuple[str, ...], missed_s: tuple[float, float], elected_s: float
) -> None:
    missed_at = dict(zip(("a:1", "b:1"), missed_s, strict=True))
    past_s = elect(grpc, endpoints, Election(missed_at, elected_s))
    assert past_s <= elected_s + REACTION_S
    assert past_s < LEFT_S


@pytest.mark.parametrize("endpoints", ORDERS)
def test_a_silent_member_is_hardly_asked_in_a_long_election(
    grpc: FakeGrpc, endpoints: tuple[str, ...]
) -> None:
    election = Election({"a:1": 0.9, "b:1": 1.0}, 11.0)
    assert elect(grpc, endpoints, election) <= 11.0 + REACTION_S
    assert election.asked.count("s:1") < 20 < election.asked.count("a:1")
