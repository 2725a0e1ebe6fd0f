"""The model of etcd is honest: real answers are among what it allows, and it allows little else.

A few scripts of each scene; `make etcd-model` plays thousands. What was answered is kept, and is
judged by the model, by models with a planted fault, and by models that allow too much.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import pytest

from paddock.log.etcd.keys import Keys
from paddock.testing import run_virtually
from tests.etcd_model.history import History
from tests.etcd_model.judge import Judge
from tests.etcd_model.planted import FAULTS, Anything, Forgiving, space_with
from tests.etcd_model.play import cluster_for, play, play_on_etcd, play_on_model
from tests.etcd_model.scenes import LEADER_LOST, PLAIN, SCENES
from tests.etcd_model.share import ANSWERS_FLOOR, KINDS_FLOOR, Share
from tests.etcd_model.stages import ModelStage
from tests.mutants.mutation import Mutation
from tests.support.server import ServerMissingError

pytestmark = [pytest.mark.judge, pytest.mark.foreign]

# How many scripts of each scene are played on etcd.
SCRIPTS = {PLAIN: 150, "compaction": 6, "no space": 2, LEADER_LOST: 2, "restore": 2}
ON_MODEL = 20
# How many are judged by models that allow too much, which takes long.
PERMISSIVE = 60


@pytest.fixture(scope="module")
def played(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, list[History]]]:
    """What a real etcd answered, by scene."""
    folder = tmp_path_factory.mktemp("etcd")

    async def main() -> dict[str, list[History]]:
        return {
            scene: [one async for one in play_on_etcd(cluster, scene, range(count))]
            for scene, count in SCRIPTS.items()
        }

    with ExitStack() as stack:
        try:
            cluster = stack.enter_context(cluster_for("no space", folder))
        except ServerMissingError as missing:
            pytest.skip(str(missing))
        yield asyncio.run(main())


def judged(histories: list[History], judge: Callable[[History], Judge] = Judge) -> Share:
    share = Share()
    for history in histories:
        share.add(judge(history).run())
    return share


@pytest.mark.parametrize("scene", SCENES)
def test_etcd_answers_what_the_model_allows(played: dict[str, list[History]], scene: str) -> None:
    share = judged(played[scene])
    assert not share.objections, share.objections[0]
    assert not share.undecided
    if scene != LEADER_LOST:
        # There the machine decides how many calls fail, and anything may have become of those.
        assert share.of_answers(scene) >= ANSWERS_FLOOR


def test_the_model_allows_little_that_etcd_does_not_answer(
    played: dict[str, list[History]],
) -> None:
    share = judged(played[PLAIN])
    assert not share.faults(), share.never_given()


@pytest.mark.parametrize("fault", FAULTS, ids=lambda fault: fault.name)
def test_a_fault_in_the_model_is_found(played: dict[str, list[History]], fault: Mutation) -> None:
    space = space_with(fault)
    assert any(
        judged(histories, lambda history: Judge(history, space)).objections
        for histories in played.values()
    ), fault.rule


@pytest.mark.parametrize("judge", [lambda history: Judge(history, worlds_type=Anything), Forgiving])
def test_a_model_that_allows_too_much_fails(
    played: dict[str, list[History]], judge: Callable[[History], Judge]
) -> None:
    share = judged(played[PLAIN][:PERMISSIVE], judge)
    assert not share.objections
    assert share.of_kinds() < 0.8 * judged(played[PLAIN][:PERMISSIVE]).of_kinds()
    assert share.of_kinds() < KINDS_FLOOR


def test_the_scripts_ask_for_everything(played: dict[str, list[History]]) -> None:
    """Not only for what is refused, and also for what is."""
    share = judged([one for histories in played.values() for one in histories])
    kinds = {(call, kind) for _, call, kind in share.given}
    assert kinds >= {
        *(("append", kind) for kind in ("done", "not done", "full")),
        *(("swap", kind) for kind in ("done", "not done", "full")),
        *(("delete", kind) for kind in ("done", "not done")),
        *(("compact", kind) for kind in ("done", "future")),
        *(("page", kind) for kind in ("page", "cut", "compacted", "future")),
        *(("tail", kind) for kind in ("record", "compacted", "unknown")),
        ("read", "read"),
    }


@pytest.mark.parametrize("scene", SCENES)
def test_the_simulation_answers_what_the_judge_allows(scene: str) -> None:
    share = judged([play_on_model(scene, seed) for seed in range(ON_MODEL)])
    assert not share.objections, share.objections[0]


def test_a_stream_of_the_simulation_that_skips_a_record_is_found() -> None:
    async def main(seed: int) -> History:
        stage = ModelStage(seed, Keys("model"))
        for name in stage.stores:
            stage.model.link(name).records_dropped = 1
        try:
            return await play(stage, "compaction", seed)
        finally:
            await stage.close()

    assert judged([run_virtually(main(seed)) for seed in range(5)]).objections
