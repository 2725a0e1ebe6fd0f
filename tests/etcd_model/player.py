"""A player: draws calls from a seed and from what it was answered, and keeps the history."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Awaitable, Callable, Mapping
from contextlib import aclosing
from typing import Final

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import CompactedError, Guard, Page, Range, Read, Store, StoreError
from tests.etcd_model.calls import (
    DONE,
    UNKNOWN,
    Answer,
    Append,
    Batch,
    Call,
    Compact,
    Delete,
    ReadKeys,
    ReadPage,
    Swap,
)
from tests.etcd_model.history import History
from tests.etcd_model.judge import SILENT

BOOTS: Final = (b"server 1", b"server 2")
NUMBERS: Final = 5
# A tail that shows nothing for so long, though something is there, is given up.
SILENCE_S: Final = 15.0
# How often a tail that ends is opened again.
_REOPENED_MAX: Final = 20
_PAUSE_S: Final = 0.05
_SETTLE_ATTEMPTS: Final = 200
_MARK: Final = b"the end"


class DisturbedError(Exception):
    """etcd failed where nothing should, so that the script cannot go on."""


class Player:
    """The clients of one script, one for each store."""

    def __init__(self, history: History, stores: Mapping[str, Store]) -> None:
        self.history = history
        self.random = random.Random(f"{history.scene} {history.seed}")
        self.stores = stores
        self.keys: Keys = history.keys
        # The last revision that was seen, and that of some keys.
        self.revision = history.base
        self._mods: dict[bytes, int] = {}
        self._others = tuple(self.keys.skip(number) for number in range(3))
        self._tails: list[asyncio.Task[None]] = []
        # The revision that no tail needs to go beyond.
        self._last = asyncio.get_running_loop().create_future()

    @property
    def store(self) -> str:
        """A store, by chance."""
        return self.random.choice([*self.stores])

    # Calls.

    async def call(self, call: Call, store: str = "") -> Answer:
        """Send a call, and keep it and its answer."""
        store = store or self.store
        return await self.act(call, store, call.answer(self.stores[store]))

    async def act(self, call: Call, who: str, doing: Awaitable[Answer]) -> Answer:
        """Keep a call and its answer, however it is carried out."""
        number = self.history.called(who, call)
        answer = await doing
        self.history.answered(number, answer)
        self._learn(call, answer)
        return answer

    async def several(self, calls: int, most: int = 3) -> None:
        """Send some calls, a few of them at once."""
        while calls > 0:
            at_once = min(calls, self.random.choice([1, 1, 1, 2, 2, 3]), most)
            await asyncio.gather(*(self.call(self.draw()) for _ in range(at_once)))
            calls -= at_once

    async def settle(self) -> None:
        """Have every store answer once."""
        for store in self.stores:
            for _ in range(_SETTLE_ATTEMPTS):
                if await self.call(ReadKeys((self.keys.head,)), store) != UNKNOWN:
                    break
                await asyncio.sleep(_PAUSE_S)

    async def finish(self) -> None:
        """Have the tails show all that there is, and read everything."""
        if self._tails:
            mark = self.random.randbytes(8)
            answer = await self.call(Append(mark, 0, _MARK))
            shown = await self.call(ReadKeys((self.keys.batch(mark, 0),)))
            batch = shown.value.found[0] if isinstance(shown.value, Read) else None
            if batch is None:
                raise DisturbedError(f"the end was answered with {answer}, and then {shown}")
            self._last.set_result(batch.mod_revision)
            await asyncio.gather(*self._tails)
        root = Range(self.keys.head, self.keys.skips_end)
        await self.call(ReadPage(root, 0, 0, False))

    async def give_up(self) -> None:
        """End the tails, if a script has failed."""
        for task in self._tails:
            task.cancel()
        await asyncio.gather(*self._tails, return_exceptions=True)

    # Tails.

    def tail(self, after: int, store: str = "", *, is_opened_again: bool = False) -> None:
        """Watch the log behind a revision, until `finish`."""
        # By its revision 0 etcd means now, which nobody asks for.
        after = max(after, 0)
        store = store or self.store
        task = asyncio.create_task(self._follow(after, store, is_opened_again))
        self._tails.append(task)

    async def _follow(self, after: int, store: str, is_opened_again: bool) -> None:
        for _ in range(_REOPENED_MAX if is_opened_again else 1):
            after, is_over = await self._watch(after, store)
            if is_over:
                return
            await asyncio.sleep(_PAUSE_S)

    async def _watch(self, after: int, store: str) -> tuple[int, bool]:
        """Keep what a tail shows; return its last revision, and whether that is enough."""
        history = self.history
        number = history.opened(store, after)
        async with aclosing(self.stores[store].tail(after)) as records:
            while True:
                reading = asyncio.ensure_future(anext(records))
                try:
                    await asyncio.wait({reading, self._last}, return_when="FIRST_COMPLETED")
                    if not reading.done() and after >= self._last.result():
                        history.closed(number)
                        return after, True
                    if not reading.done():
                        await asyncio.wait({reading}, timeout=SILENCE_S)
                    if not reading.done():
                        history.ended(number, SILENT)
                        return after, False
                    record = Batch.of(reading.result())
                except CompactedError as error:
                    history.ended(number, Answer("compacted", error.revision))
                    return after, True
                except StoreError:
                    history.ended(number, UNKNOWN)
                    return after, False
                finally:
                    reading.cancel()
                    await asyncio.wait({reading})
                history.shown(number, record)
                after = record.revision

    # What is drawn.

    def draw(self, kinds: str = "aaaaasssrrppppddc") -> Call:
        """Return a call, of a kind that is named by its first letter."""
        draws: dict[str, Callable[[], Call]] = {
            "a": self.append,
            "s": self.swap,
            "r": self.read,
            "p": self.page,
            "d": self.delete,
            "c": self.compact,
        }
        return draws[self.random.choice(kinds)]()

    def append(self, size: int = 0) -> Append:
        boot, number = self.random.choice(BOOTS), self.random.randrange(NUMBERS)
        return Append(boot, number, self.random.randbytes(size or self.random.choice([0, 1, 100])))

    def swap(self) -> Swap:
        key = self.random.choice(self._others)
        mod = self._mods.get(key, 0) if self.random.random() < 0.7 else self._some_revision()
        return Swap(key, self.random.randbytes(4), mod, self._guard())

    def delete(self) -> Delete:
        ranges = tuple(self._range() for _ in range(self.random.randint(1, 3)))
        through = self.random.choice([0, self._some_revision(), self.revision])
        return Delete(ranges, self._guard(), through)

    def read(self) -> ReadKeys:
        return ReadKeys(tuple(self._key() for _ in range(self.random.randint(1, 4))))

    def page(self) -> ReadPage:
        revision = self.random.choice(
            [0, self.random.randint(self.history.base, self.revision + 1)]
        )
        limit = self.random.choice([0, 0, 1, 2, 5])
        return ReadPage(self._range(), revision, limit, self.random.random() < 0.3)

    def compact(self) -> Compact:
        return Compact(self.random.randint(self.history.base, self.revision + 1))

    def _key(self) -> bytes:
        batch = self.keys.batch(self.random.choice(BOOTS), self.random.randrange(NUMBERS))
        return self.random.choice([self.keys.head, batch, batch, *self._others])

    def _range(self) -> Range:
        if self.random.random() < 0.4:
            return Range(self._key())
        first, last = sorted((self._key(), self._key()))
        everything = Range(self.keys.batches, self.keys.batches_end)
        return everything if first == last or self.random.random() < 0.3 else Range(first, last)

    def _guard(self) -> Guard | None:
        kind = self.random.randrange(4)
        if kind < 2:
            return None
        key = self._key()
        return Guard(key, self._mods.get(key, 0) if kind == 2 else self._some_revision())

    def _some_revision(self) -> int:
        return self.random.randint(self.history.base, self.revision)

    # What is learnt.

    def _learn(self, call: Call, answer: Answer) -> None:
        value = answer.value
        if isinstance(value, int):
            self.revision = max(self.revision, value)
            if isinstance(call, Swap):
                self._mods[call.key] = value
        if isinstance(value, Read | Page):
            self.revision = max(self.revision, value.revision)
            items = value.found if isinstance(value, Read) else value.items
            self._mods.update({one.key: one.mod_revision for one in items if one is not None})
        if isinstance(call, ReadKeys) and isinstance(value, Read):
            for key, one in zip(call.wanted, value.found, strict=True):
                if one is None:
                    self._mods.pop(key, None)
        if isinstance(call, Append) and answer == DONE:
            # Later than all that was seen; a read tells which.
            self.revision += 1

    def forget(self) -> None:
        """Take note that revisions have gone back."""
        self._mods.clear()
