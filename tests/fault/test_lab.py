"""Real partitions, pauses, kills, clocks, slow and full disks, on servers in network namespaces.

Whatever is done: nothing that was acknowledged is lost, nothing happens twice, no client sees time
go back, no session ends of which a server has said within its timeout that it lives, and all
servers have one state. The judge of simulations says so, of what clients saw and of the log. It
says the same of Apache ZooKeeper, and of a history that was kept as a file and read again.
`make lab` plays all scenes and prints a table of what clients noticed.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.testing.simulation.kept import Kept
from tests.fault.stage.lab import Lab, T
from tests.fault.stage.lab_apache import ApacheLab
from tests.fault.stage.lab_load import HISTORIES, SESSION_S, S, play
from tests.fault.stage.lab_other_scenes import APACHE_SCENES, SOLE_SCENES
from tests.fault.stage.lab_played import Played
from tests.fault.stage.lab_scenes import SCENES, Scene
from tests.fault.stage.lab_sole import Sole, SoleApache, SoleServer
from tests.support.judges import skipped_where_missing
from tests.support.tampering import TAMPERINGS

pytestmark = pytest.mark.judge

HEAD = (
    "| scene | its clients: writes | reads | other clients: writes | reads"
    " | sessions ended | writes acknowledged | of unknown outcome |"
)
# How many clients a short scene has, and for how long they write before and after it.
FEW, SHORT_S = 4, 0.5


def long_but_the_first() -> list[object]:
    first, *others = SCENES
    return [first, *(pytest.param(scene, marks=pytest.mark.long) for scene in others)]


@pytest.fixture(scope="module")
def rows() -> Iterator[list[str]]:
    """The table, which is printed when all scenes are over."""
    rows: list[str] = []
    yield rows
    print(f"\n\nThe longest waits, with a lease of {T:g} s and sessions of {SESSION_S:g} s:\n")
    print(HEAD)
    print("|---|---|---|---|---|---|---|---|")
    print("\n".join(rows))
    print(f"\nThe histories are in {HISTORIES}; `make judge` judges them again.")


def file_of(scene: Scene[S]) -> Path:
    return HISTORIES / f"{scene}.history.gz"


def row_of(scene: Scene[S], played: Played) -> str:
    others = played.clients - played.struck
    waits = [
        f"{played.longest_wait(clients, writes=writes):.1f} s" if clients else "–"
        for clients in (played.struck, others)
        for writes in (True, False)
    ]
    figures = (played.ended_sessions, played.acknowledged, played.unknown)
    return f"| {scene.title} | {' | '.join(waits)} | {' | '.join(map(str, figures))} |"


def check(scene: Scene[S], played: Played) -> None:
    check_short(scene, played)
    assert played.ended_sessions == scene.ended


def check_short(scene: Scene[S], played: Played) -> None:
    """Check a scene on a machine that may be too busy for sessions to live."""
    assert not played.problems, played.report()
    assert scene.caused(played), f"the scene did not happen: {played.counts}"
    assert played.acknowledged > 0


@pytest.mark.parametrize("scene", long_but_the_first(), ids=str)
def test_a_scene_loses_nothing_and_misleads_nobody(scene: Scene[Lab], rows: list[str]) -> None:
    with skipped_where_missing(), Lab(scene.rates) as lab:
        played = play(lab, scene.play, file_of(scene), clock_rate_max=max(scene.rates))
        check(scene, played)
    rows.append(row_of(scene, played))


@pytest.mark.long
@pytest.mark.parametrize("scene", SOLE_SCENES, ids=str)
def test_a_single_server_loses_nothing_and_misleads_nobody(
    scene: Scene[Sole], rows: list[str]
) -> None:
    with skipped_where_missing(), Sole(SoleServer) as sole:
        played = play(sole, scene.play, file_of(scene))
        check(scene, played)
    rows.append(row_of(scene, played))


@pytest.mark.long
@pytest.mark.parametrize("scene", APACHE_SCENES, ids=str)
def test_the_judge_passes_an_ensemble_of_apache_zookeeper(
    scene: Scene[ApacheLab], rows: list[str]
) -> None:
    with skipped_where_missing(), ApacheLab() as lab:
        played = play(lab, scene.play, file_of(scene))
        check(scene, played)
    rows.append(row_of(scene, played))


def test_the_judge_passes_an_apache_zookeeper_that_is_killed(tmp_path: Path) -> None:
    scene = SOLE_SCENES[0]
    with skipped_where_missing(), Sole(SoleApache) as sole:
        played = play(sole, scene.play, tmp_path / "kept.gz", clients=FEW, around_s=SHORT_S)
        check_short(scene, played)


def test_a_history_that_was_kept_is_judged_as_before(tmp_path: Path) -> None:
    scene, file = SOLE_SCENES[0], tmp_path / "kept.gz"
    with Sole(SoleServer) as sole:
        played = play(sole, scene.play, file, clients=FEW, around_s=SHORT_S)
        check_short(scene, played)
    kept = Kept.read(file)
    assert kept.history == played.verdict.history
    assert kept.judge().is_good
    for name, (rule, tamper) in TAMPERINGS.items():
        Kept(tamper(kept.history)).write(file)
        rules = {one.rule for one in Kept.read(file).judge().violations}
        assert rule in rules, f"{name}: {rules}"
