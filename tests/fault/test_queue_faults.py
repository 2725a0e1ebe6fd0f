"""A queue in every trouble: no item is lost, doubled, or in two hands, and the rest goes on."""

from __future__ import annotations

import asyncio
from collections import Counter
from typing import Final

import pytest

from paddock.client.client import Client
from paddock.recipes import Queue, QueueItem
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Part, Scene, Story
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

# Longer than the session timeout, so that a consumer that is cut off learns of the expiry.
LONG_S: Final = 12.0
# After so long a consumer gives up: nothing will come any more.
NOTHING_S: Final = 30.0

# What may be left: the nodes that the items and the rest stand under.
FURNITURE: Final = tuple(f"/recipe/{name}" for name in ("entries", "taken", "receipts", "dead"))


class FailedError(Exception):
    """What a consumer raises that does not manage."""


async def work(me: Player, item: QueueItem, for_s: float) -> None:
    """Have an item for some time, and take down that it was done."""
    me.note("taken", item.data)
    await asyncio.sleep(for_s)
    me.note("finished", item.data)


# One item in many hands.


def consumer(after_s: float = 0.0, for_s: float = 2.0, *, fails: bool = False) -> Part:
    """Return a consumer that starts after `after_s` and holds the item for `for_s` seconds."""

    async def consume(me: Player) -> None:
        await asyncio.sleep(after_s)
        try:
            async with asyncio.timeout(NOTHING_S) as limit:
                async with Queue(me.client, "/recipe").take() as item:
                    limit.reschedule(None)
                    with me.holds(item.token):
                        await me.write(item)
                        if fails:
                            await asyncio.sleep(for_s)
                            raise FailedError
                        await work(me, item, for_s)
                        await me.write(item)
            me.note("done", item.data)
        except (FailedError, TimeoutError):
            pass

    return consume


async def put_one(client: Client) -> None:
    await Queue(client, "/recipe").put(b"the item")


async def judge(scene: Scene) -> None:
    """See that every item that has gone was finished, and acknowledged once at most."""
    done, finished = counted(scene, "done"), counted(scene, "finished")
    assert max(done.values(), default=0) <= 1
    assert set(done) <= set(finished)
    # The stage has seen that nothing is left, and this is what was put.
    assert set(finished) >= counted(scene, "put").keys()
    if scene.is_undisturbed:
        assert done == finished


async def judge_one(scene: Scene) -> None:
    await judge(scene)
    assert set(counted(scene, "finished")) == {b"the item"}
    assert scene.log.of("rival 1")


def counted(scene: Scene, what: str) -> Counter[bytes]:
    return Counter(note.value for note in scene.notes if note.what == what)


# One fails before the subject has it, and one waits behind it.
IN_MANY_HANDS: Final = Story(
    prepare=put_one,
    subject=consumer(1.0, LONG_S),
    rivals=(consumer(for_s=3.0, fails=True), consumer(1.5)),
    judge=judge_one,
    remains=FURNITURE,
)


@pytest.mark.parametrize(
    "trouble",
    [
        pytest.param(name, marks=pytest.mark.long) if name == "every two cuts" else name
        for name in TROUBLES
    ],
)
def test_a_consumer_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](IN_MANY_HANDS) > 1


# Many items.


async def put(me: Player, queue: Queue, data: bytes, **how: float) -> None:
    me.note("asked", data)
    await queue.put(data, **how)  # type: ignore[arg-type]
    me.note("put", data)


async def produce(me: Player) -> None:
    """Put some, and take one."""
    queue = Queue(me.client, "/recipe")
    await asyncio.sleep(0.5)
    await put(me, queue, b"first")
    await put(me, queue, b"later", delay=3.0)
    await asyncio.gather(put(me, queue, b"one"), put(me, queue, b"other", priority=1))
    await consume_one(me, queue)


async def consume_one(me: Player, queue: Queue) -> None:
    async with queue.try_take() as item:
        if item is not None:
            await work(me, item, 1.0)
    if item is not None:
        me.note("done", item.data)


async def consume_all(me: Player) -> None:
    """Take all that comes, until nothing does any more."""
    queue = Queue(me.client, "/recipe")
    try:
        while True:
            async with asyncio.timeout(NOTHING_S) as limit:
                async with queue.take() as item:
                    limit.reschedule(None)
                    await work(me, item, 0.4)
                me.note("done", item.data)
    except TimeoutError:
        pass


PRODUCER: Final = Story(
    subject=produce, rivals=(consume_all, consume_all), judge=judge, remains=FURNITURE
)


@pytest.mark.parametrize("trouble", BRIEF)
def test_a_producer_in_trouble(trouble: str) -> None:
    """What it has put is consumed once, and what it may have put at most once."""
    assert BRIEF[trouble](PRODUCER) > 1


@pytest.mark.long
@pytest.mark.parametrize("trouble", sorted(TROUBLES.keys() - BRIEF.keys()))
def test_a_producer_in_every_other_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](PRODUCER) > 1


# Dead letters.


async def fail_twice(me: Player) -> None:
    queue = Queue(me.client, "/recipe", attempts_max=2)
    for _ in range(2):
        with pytest.raises(FailedError):
            async with queue.take():
                raise FailedError


async def bury_and_raise(me: Player) -> None:
    """Come upon an item that was taken too often, and put it back."""
    await asyncio.sleep(1.0)
    queue = Queue(me.client, "/recipe", attempts_max=2)
    await consume_one(me, queue)
    for letter in await queue.dead_letters():
        await queue.put_back(letter.id)
        me.note("put", letter.data)


async def undertake(me: Player) -> None:
    """Do what the subject may not have come to, and consume what there is then."""
    await asyncio.sleep(15.0)
    await bury_and_raise(me)
    await consume_all(me)


BURIED: Final = Story(
    prepare=put_one,
    subject=bury_and_raise,
    rivals=(fail_twice, undertake),
    judge=judge,
    remains=FURNITURE,
)


@pytest.mark.parametrize("trouble", BRIEF)
def test_a_dead_letter_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](BURIED) > 1
