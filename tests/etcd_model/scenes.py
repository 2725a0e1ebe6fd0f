"""The scenes: what happens in a script besides random calls.

Each takes a player and a stage. Calls are few, so that not too much is open at once.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

from paddock.log.etcd.store import Range
from tests.etcd_model.calls import (
    FULL,
    Append,
    Backup,
    Compact,
    Delete,
    Disarm,
    Restore,
)
from tests.etcd_model.player import DisturbedError, Player
from tests.etcd_model.stages import Stage

# Calls with an unknown outcome at once: each multiplies what may have happened.
_WRITES_IN_TROUBLE: Final = 5
_LARGE_BYTES: Final = 400_000
_FILLED_AFTER_MAX: Final = 40
# Scripts of a full etcd, one of which is restored as well.
_RESTORED_EVERY: Final = 4


async def plain(player: Player, stage: Stage) -> None:
    """Calls, one by one and some at once; now and then a tail."""
    chances = player.random
    await player.several(chances.randint(2, 6))
    if chances.random() < 0.3:
        # From the last revision that is compacted on, to the first that is not there yet.
        player.tail(chances.randint(player.history.base - 1, player.revision + 1))
    await player.several(chances.randint(4, 8))


async def compaction(player: Player, stage: Stage) -> None:
    """The history is compacted under tails and pages that want it."""
    chances, history = player.random, player.history
    for _ in range(3):
        await asyncio.gather(*(player.call(player.append()) for _ in range(2)))
        await player.call(player.draw("asr"))
        player.tail(chances.randint(history.base, player.revision))
        if chances.random() < 0.3:
            await asyncio.sleep(chances.random() * 0.15)
        at = chances.randint(history.base, player.revision)
        others = [player.page(), player.draw("apds")]
        await asyncio.gather(*(player.call(call) for call in (Compact(at), *others)))
        if chances.random() < 0.5:
            # Just before what was compacted, or just not.
            player.tail(at - chances.randint(0, 2))


async def leader(player: Player, stage: Stage) -> None:
    """The leader is killed or paused while calls are under way."""
    history, chances = player.history, player.random
    await stage.find_leader()
    await player.several(4)
    player.tail(chances.randint(history.base, player.revision), is_opened_again=True)
    player.tail(player.revision)
    writes, is_cleared = _WRITES_IN_TROUBLE, False

    async def client(store: str) -> None:
        nonlocal writes, is_cleared
        for _ in range(3):
            # A deletion opens most, so there is one at most.
            kinds = "rp" if writes <= 0 else "aaas" if is_cleared else "aaasdc"
            call = player.draw(kinds)
            writes -= call.changes
            is_cleared = is_cleared or isinstance(call, Delete)
            await player.call(call, store)

    clients = [asyncio.ensure_future(client(store)) for store in player.stores]
    await asyncio.sleep(chances.random() * 0.01)
    history.trouble(True)
    stage.strike(chances)
    await asyncio.gather(*clients, stage.heal())
    await player.settle()
    history.trouble(False)
    await player.several(3, most=2)


async def space(player: Player, stage: Stage) -> None:
    """The database is filled, and space is made again."""
    history, chances = player.history, player.random
    await player.several(2)
    player.tail(chances.randint(history.base, player.revision))
    history.filling(True)
    for number in range(_FILLED_AFTER_MAX):
        large = Append(b"the fill", number, bytes(_LARGE_BYTES))
        others = [player.draw("aasr") for _ in range(chances.randint(0, 2))]
        answers = await asyncio.gather(*(player.call(call) for call in (large, *others)))
        if FULL in answers:
            break
    await player.several(chances.randint(3, 6))
    is_restored = history.seed % _RESTORED_EVERY == 0
    if is_restored:
        await player.act(Backup(), "operator", stage.backup())
    await _make_space(player, stage)
    history.filling(False)
    await player.several(3)
    if is_restored:
        # The alarm is a part of the backup.
        await _restore(player, stage)
        player.forget()
        await player.several(3)
        await _make_space(player, stage)
        await player.several(2)


async def _make_space(player: Player, stage: Stage) -> None:
    """Delete all batches, and have the operator do the rest."""
    everything = Range(player.keys.batches, player.keys.batches_end)
    deleted = await player.call(Delete((everything,), None, 0))
    if not isinstance(deleted.value, int):
        raise DisturbedError(f"a deletion without conditions was answered with {deleted}")
    await player.call(Compact(deleted.value))
    await player.call(player.draw("as"))
    await player.act(Disarm(), "operator", stage.make_space())


async def restore(player: Player, stage: Stage) -> None:
    """The cluster is started again from a backup: revisions go back."""
    history, chances = player.history, player.random
    await player.several(3)
    await asyncio.gather(player.act(Backup(), "operator", stage.backup()), player.several(3))
    if chances.random() < 0.3:
        await player.call(Compact(player.revision))
    await asyncio.gather(*(player.call(player.append()) for _ in range(2)))
    player.tail(chances.randint(history.base, player.revision))
    await player.several(2)
    await _restore(player, stage)
    # One from before the restore, which may lie in the future now.
    player.tail(player.revision - chances.randint(0, 2))
    player.tail(history.base)
    player.forget()
    await player.several(6)


async def _restore(player: Player, stage: Stage) -> None:
    """Have the operator restore the backup, while calls are under way."""
    player.history.trouble(True)
    calls = [player.call(player.draw("ar")) for _ in range(2)]
    await asyncio.gather(player.act(Restore(), "operator", stage.restore()), *calls)
    await player.settle()
    player.history.trouble(False)


Scene = Callable[[Player, Stage], Awaitable[None]]
PLAIN: Final = "plain"
LEADER_LOST: Final = "leader lost"
SCENES: Final[dict[str, Scene]] = {
    PLAIN: plain,
    LEADER_LOST: leader,
    "compaction": compaction,
    "no space": space,
    "restore": restore,
}
