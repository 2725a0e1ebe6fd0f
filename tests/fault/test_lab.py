"""Real partitions, pauses, clocks and full disks, on servers in network namespaces."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest

from tests.fault.stage.lab import T, Lab
from tests.fault.stage.lab_load import Load, Played, play
from tests.support.judges import skip_or_fail
from tests.support.server import ServerMissingError

pytestmark = pytest.mark.judge


@pytest.fixture
def lab() -> Iterator[Lab]:
    try:
        with Lab() as lab:
            yield lab
    except ServerMissingError as missing:
        skip_or_fail(str(missing))


async def cut_off(load: Load) -> None:
    lab = load.lab
    struck = load.busiest()
    await asyncio.to_thread(lab.network.part, [lab.place_of(struck)], lab.etcd_places)
    await asyncio.sleep(1.5 * T)


def test_a_server_that_is_cut_off_from_etcd(lab: Lab) -> None:
    played = play(lab, cut_off)
    print(
        played.acknowledged,
        played.unknown,
        played.ended_sessions,
        played.counts,
        len(played.struck),
    )
    print(
        played.longest_wait(played.struck, writes=True),
        played.longest_wait(played.struck, writes=False),
        played.longest_wait(played.clients - played.struck, writes=True),
    )
    assert not played.problems, played.report()
