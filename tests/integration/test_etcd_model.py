"""The model of etcd is honest: random calls have the same results on it as on a real one.

Revisions are compared from where a script begins, because others came before it in the real one.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass, replace

import pytest

from paddock.log.etcd.etcd_store import EtcdStore
from paddock.log.etcd.keys import Keys
from paddock.log.etcd.options import EtcdOptions
from paddock.log.etcd.store import (
    CompactedError,
    Guard,
    Page,
    Range,
    Read,
    Store,
    Stored,
    StoreError,
    StoreForbiddenError,
)
from paddock.log.interface import Record
from paddock.testing import run_virtually
from paddock.testing.simulation.store_model import EtcdModel
from tests.support.etcd import Etcd

pytestmark = [pytest.mark.judge, pytest.mark.foreign]

SCRIPTS = 160
STEPS = 15
# Scripts that share one test.
GROUP = 40

_SILENCE_S = 30.0
_FIRST_REVISION = 1


Step = tuple[str, object]


class Play:
    """A script on one store: calls are drawn from a seed, and from what was returned before."""

    def __init__(self, seed: int, store: Store, keys: Keys, base: int) -> None:
        self.random = random.Random(seed)
        self.store = store
        self.keys = keys
        # What is added to the revisions of the script for those of the store.
        self.shift = base - _FIRST_REVISION
        self.revision = _FIRST_REVISION
        self.boots = (b"server 1", b"server 2")
        self.others = tuple(keys.skip(number) for number in range(3))
        # The name of each call, and its result.
        self.transcript: list[Step] = []

    async def run(self) -> list[Step]:
        steps: list[Callable[[], Awaitable[object]]] = [
            *[self.append] * 5,
            *[self.swap] * 3,
            *[self.read] * 2,
            *[self.page] * 4,
            *[self.delete] * 2,
            self.compact,
            *[self.tail] * 2,
        ]
        for _ in range(STEPS):
            step = self.random.choice(steps)
            try:
                result = await step()
            except StoreError as error:
                kinds = (CompactedError, StoreForbiddenError, StoreError)
                result = next(kind for kind in kinds if isinstance(error, kind)).__name__
            if step in (self.append, self.swap, self.delete, self.tail):
                head = await self.store.read(self.keys.head)
                self.revision = head.revision - self.shift
                result = result, self._bare(head)
            self.transcript.append((step.__name__, result))
        return self.transcript

    # The calls.

    async def append(self) -> object:
        boot, number = self.random.choice(self.boots), self.random.randrange(6)
        payload = self.random.randbytes(self.random.choice([0, 1, 100]))
        return await self.store.append(boot, number, payload)

    async def swap(self) -> object:
        key, value = self.random.choice(self.others), self.random.randbytes(4)
        held = self.random.random() < 0.6
        mod = await self._mod_of(key) if held else self._some_revision()
        return self._relative(await self.store.swap(key, value, mod, await self._guard()))

    async def delete(self) -> object:
        ranges = [self._range() for _ in range(self.random.randint(1, 3))]
        through = self._real(self.random.randint(1, self.revision) * self.random.randint(0, 1))
        return self._relative(await self.store.delete(ranges, await self._guard(), through))

    async def read(self) -> object:
        keys = [self._key() for _ in range(self.random.randint(1, 4))]
        return self._bare(await self.store.read(*keys))

    async def page(self) -> object:
        revision = self._real(self.random.randint(1, self.revision + 1) * self.random.randint(0, 1))
        limit = self.random.choice([0, 0, 1, 2, 5])
        keys_only = self.random.random() < 0.3
        wanted = self._range()
        return self._bare(await self.store.page(wanted, revision, limit, keys_only=keys_only))

    async def compact(self) -> object:
        revision = self.random.randint(1, self.revision + 1)
        await self.store.compact(self._real(revision))
        return revision

    async def tail(self) -> object:
        after = self.random.randint(1, self.revision)
        shown: list[Record] = []
        async with aclosing(self.store.tail(self._real(after))) as records:
            # One more is appended, so there is an end to wait for.
            opened = asyncio.ensure_future(anext(records))
            await asyncio.sleep(0.001)
            name = self.random.randbytes(8)
            await self.store.append(name, 0, b"the end")
            async with asyncio.timeout(_SILENCE_S):
                shown.append(await opened)
                while shown[-1].server != name:
                    shown.append(await anext(records))
        return [replace(one, revision=self._relative(one.revision)) for one in shown]

    # What they are given, and what they return.

    def _key(self) -> bytes:
        boot, number = self.random.choice(self.boots), self.random.randrange(6)
        return self.random.choice([self.keys.head, self.keys.batch(boot, number), *self.others])

    def _range(self) -> Range:
        if self.random.random() < 0.3:
            return Range(self._key())
        everything = Range(self.keys.batches, self.keys.batches_end)
        several = Range(*sorted((self._key(), self._key())))
        if several.start == several.end:
            return Range(several.start)
        return self.random.choice([everything, several])

    async def _mod_of(self, key: bytes) -> int:
        found = (await self.store.read(key)).found[0]
        return 0 if found is None else found.mod_revision

    def _some_revision(self) -> int:
        return self._real(self.random.randint(0, self.revision))

    async def _guard(self) -> Guard | None:
        kind = self.random.randrange(3)
        key = self._key()
        if kind == 0:
            return None
        return Guard(key, await self._mod_of(key) if kind == 1 else self._some_revision())

    def _real(self, revision: int) -> int:
        return revision + self.shift if revision else 0

    def _relative(self, revision: int) -> int:
        return revision - self.shift if revision else 0

    def _bare(self, result: Read | Page) -> object:
        items = result.found if isinstance(result, Read) else result.items
        shown = [None if one is None else self._shown(one) for one in items]
        has_more = isinstance(result, Page) and result.has_more
        return self._relative(result.revision), shown, has_more

    def _shown(self, one: Stored) -> Stored:
        return replace(one, mod_revision=self._relative(one.mod_revision))


@dataclass
class Script:
    seed: int

    @property
    def keys(self) -> Keys:
        return Keys(f"model-{self.seed}")

    def on_model(self) -> list[Step]:
        async def main() -> list[Step]:
            store = EtcdModel(self.seed, keys=self.keys).store("one")
            return await Play(self.seed, store, self.keys, _FIRST_REVISION).run()

        return run_virtually(main())

    async def on_etcd(self, endpoint: str) -> list[Step]:
        store = EtcdStore(EtcdOptions((endpoint,)), self.keys)
        try:
            base = (await store.read(self.keys.head)).revision
            return await Play(self.seed, store, self.keys, base).run()
        finally:
            await store.close()


@pytest.mark.parametrize("first", range(0, SCRIPTS, GROUP))
def test_the_model_does_what_etcd_does(shared_etcd: Etcd, first: int) -> None:
    async def on_etcd() -> None:
        for script in scripts:
            played = await script.on_etcd(shared_etcd.endpoint)
            for step, expected in zip(played, models[script.seed], strict=True):
                assert step == expected, f"seed {script.seed}: etcd, then the model"

    scripts = [Script(seed) for seed in range(first, first + GROUP)]
    models = {script.seed: script.on_model() for script in scripts}
    asyncio.run(on_etcd())


def test_the_scripts_ask_for_everything() -> None:
    """Not only for what is refused, and also for what is."""
    results: dict[str, set[str]] = {}
    for seed in range(SCRIPTS):
        for name, result in Script(seed).on_model():
            outcome = result[0] if isinstance(result, tuple) else result
            results.setdefault(name, set()).add(repr(outcome))
    assert results["append"] == {"True", "False"}
    assert {"0", "2", "9"} <= results["swap"]
    assert {"0", "2", "9"} <= results["delete"]
    assert {"2", "5", "'StoreError'"} <= results["compact"]
    assert {"9", "'StoreError'", "'CompactedError'"} <= results["page"]
    assert {"9"} <= results["read"]
    assert "'CompactedError'" in results["tail"]
    assert len(results["tail"]) > 100
