"""The differential run, bounded: some thousand random operations without a difference."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tests.differ.__main__ import JUDGED, OPTIONS, SERVERS, explain
from tests.differ.generate import SEGMENT_OPERATIONS
from tests.differ.run import Pair
from tests.support.server import ServerMissingError

pytestmark = pytest.mark.judge

FIXED_SEED = 20_240_229


@pytest.fixture(
    scope="module", params=["apache", pytest.param("apache-3.9", marks=pytest.mark.long)]
)
def pair(request: pytest.FixtureRequest) -> Iterator[Pair]:
    """Apache ZooKeeper and Paddock, both new."""
    yield from _new_pair(request.param, "paddock")


@pytest.fixture(scope="module")
def cluster_pair() -> Iterator[Pair]:
    """Apache ZooKeeper and three Paddocks, all new."""
    yield from _new_pair("apache", "cluster")


def _new_pair(left: str, right: str) -> Iterator[Pair]:
    try:
        with SERVERS[left](OPTIONS) as apache, JUDGED[right](OPTIONS) as paddock:
            both = Pair(apache, paddock)
            yield both
            both.close()
    except ServerMissingError as missing:
        pytest.skip(str(missing))


@pytest.mark.parametrize("segment", range(2))
@pytest.mark.parametrize("seed", [FIXED_SEED, None], ids=["fixed", "random"])
def test_two_servers_say_the_same(pair: Pair, seed: int | None, segment: int) -> None:
    play(pair, seed, segment)


@pytest.mark.cluster
@pytest.mark.parametrize("seed", [FIXED_SEED, None], ids=["fixed", "random"])
def test_a_server_and_a_cluster_say_the_same(cluster_pair: Pair, seed: int | None) -> None:
    play(cluster_pair, seed, segment=0)


def play(pair: Pair, seed: int | None, segment: int) -> None:
    if seed is None:
        seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, segment {segment}")
    difference = pair.play_segment(f"{seed}:{segment}", SEGMENT_OPERATIONS)
    if difference is not None:
        pytest.fail(explain(pair, seed, segment, difference, few=True))
