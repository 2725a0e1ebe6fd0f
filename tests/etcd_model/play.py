"""Playing scripts: on a real etcd, where many share one cluster, or on the model."""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import AsyncIterator, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Final

from paddock.log.etcd.keys import Keys
from paddock.testing import run_virtually
from tests.etcd_model.calls import UNKNOWN
from tests.etcd_model.history import Answered, Called, Ended, History, Opened, Trouble
from tests.etcd_model.judge import SILENT
from tests.etcd_model.player import DisturbedError, Player
from tests.etcd_model.scenes import PLAIN, SCENES
from tests.etcd_model.stages import SMALL_QUOTA_BYTES, EtcdStage, ModelStage, Stage
from tests.support.etcd import EtcdCluster

# How often a script is played again if etcd was disturbed by itself.
_ATTEMPTS: Final = 5
_REST_S: Final = 1.0
# Each set of stores has keys of its own, so that nothing late meets another script.
_names: Final = itertools.count()


async def play(stage: Stage, scene: str, seed: int) -> History:
    """Play one script."""
    history = History(scene, seed, stage.keys, asyncio.get_running_loop().time)
    history.base = await stage.begin()
    player = Player(history, stage.stores)
    try:
        await SCENES[scene](player, stage)
        await player.finish()
    except DisturbedError:
        # What was before it is judged, unless something else has disturbed etcd.
        pass
    finally:
        await player.give_up()
    return history


def play_on_model(scene: str, seed: int) -> History:
    """Play a script on the simulation's model."""

    async def main() -> History:
        stage = ModelStage(seed, Keys("model"))
        try:
            return await play(stage, scene, seed)
        finally:
            await stage.close()

    return run_virtually(main())


async def play_on_etcd(
    cluster: EtcdCluster, scene: str, seeds: Iterable[int]
) -> AsyncIterator[History]:
    """Play scripts on a cluster, one after the other."""
    stage: EtcdStage | None = None
    try:
        for seed in seeds:
            for _ in range(_ATTEMPTS):
                if stage is None:
                    stage = EtcdStage(cluster, Keys(f"model-{next(_names)}"))
                history = await play(stage, scene, seed)
                history.is_disturbed = _is_disturbed(history)
                if history.is_disturbed or scene != PLAIN:
                    await stage.close()
                    stage = None
                if not history.is_disturbed:
                    break
                await asyncio.sleep(_REST_S)
            yield history
    finally:
        if stage is not None:
            await stage.close()


def _is_disturbed(history: History) -> bool:
    """Return whether a call failed though nobody had made trouble, as on a machine that stalls."""
    is_troubled = False
    # Whether there was trouble during each call and each tail.
    met: dict[int, bool] = {}
    for event in history.events:
        match event:
            case Trouble(_, is_on):
                is_troubled = is_on
                met = {number: was or is_on for number, was in met.items()}
            case Called(_, number) | Opened(_, number):
                met[number] = is_troubled
            case Answered(_, number, answer) | Ended(_, number, answer):
                if answer in (UNKNOWN, SILENT) and not met[number]:
                    return True
    return False


@contextmanager
def cluster_for(scene: str, folder: Path) -> Iterator[EtcdCluster]:
    """Return a running cluster that a scene can be played on."""
    with ExitStack() as stack:
        cluster = EtcdCluster(folder)
        if scene == "no space":
            for member in cluster.members:
                member.quota_bytes = SMALL_QUOTA_BYTES
        yield stack.enter_context(cluster)
