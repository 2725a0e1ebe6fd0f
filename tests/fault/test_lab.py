"""Real partitions, pauses, clocks and full disks, on servers in network namespaces.

Whatever is done: nothing that was acknowledged is lost, nothing happens twice, no client sees time
go back, no session ends of which a server has said within its timeout that it lives, and all
servers have one state. `make lab` plays all scenes and prints a table of what clients noticed.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fault.stage.lab import Lab, T
from tests.fault.stage.lab_load import SESSION_S, Played, play
from tests.fault.stage.lab_scenes import SCENES, Scene
from tests.support.judges import skip_or_fail
from tests.support.server import ServerMissingError

pytestmark = pytest.mark.judge

HEAD = (
    "| scene | its clients: writes | reads | other clients: writes | reads"
    " | sessions ended | writes acknowledged | of unknown outcome |"
)


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


def row_of(scene: Scene, played: Played) -> str:
    others = played.clients - played.struck
    waits = [
        f"{played.longest_wait(clients, writes=writes):.1f} s" if clients else "–"
        for clients in (played.struck, others)
        for writes in (True, False)
    ]
    figures = (played.ended_sessions, played.acknowledged, played.unknown)
    return f"| {scene.title} | {' | '.join(waits)} | {' | '.join(map(str, figures))} |"


@pytest.mark.parametrize("scene", long_but_the_first(), ids=str)
def test_a_scene_loses_nothing_and_misleads_nobody(scene: Scene, rows: list[str]) -> None:
    try:
        with Lab(scene.rates) as lab:
            played = play(lab, scene.play, clock_rate_max=max(scene.rates))
            assert not played.problems, played.report()
            assert scene.caused(played), f"the scene did not happen: {played.counts}"
            assert played.ended_sessions == scene.ended
            assert played.acknowledged > 0
    except ServerMissingError as missing:
        skip_or_fail(str(missing))
    rows.append(row_of(scene, played))
