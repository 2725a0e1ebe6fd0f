"""A judge that never finds anything would pass everything: a proxy that lies must be failed.

The proxy stands before a real server, Paddock's or Apache ZooKeeper's, tells one lie, and the judge
names the rule that it breaks: from what clients saw and the log, and also from what they saw alone.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest

from paddock.testing import EmbeddedServer
from paddock.testing.simulation.history import History
from paddock.testing.simulation.kept import Kept
from paddock.testing.simulation.witness import add_log
from tests.conformance.differences import EVENTS_HAVE_A_ZXID
from tests.fault.stage.lab_sole import Sole, SoleApache, read_file_log
from tests.fault.stage.tapped_loop import TappedLoop
from tests.fault.stage.wrong_proxy import LIES, Address, Lie, tell_story
from tests.support.judges import skipped_where_missing
from tests.support.tampering import without_log

TRUTH = "nothing is changed"
RULES: dict[str, tuple[str, Callable[[], Lie]]] = {TRUTH: ("", Lie), **LIES}


def record(lie: Lie, address: Address | None, data: Path) -> History:
    """Return what clients saw in the story, on a server at an address or one of our own."""
    servers: dict[str, str] = {}
    loop = TappedLoop(servers)

    async def play() -> None:
        if address is not None:
            await tell_story(servers, address, lie)
            return
        async with EmbeddedServer(data) as server:
            await tell_story(servers, server.address, lie)

    with contextlib.closing(loop), asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(play())
    return loop.recorder.history


def rules_of(kept: Kept) -> set[str]:
    return {one.rule for one in kept.judge().violations}


def check(name: str, lie: Lie, history: History, *, events_have_zxids: bool) -> None:
    rule, _ = RULES[name]
    assert lie.is_told == (name != TRUTH)
    for judged in (history, without_log(history)):
        found = rules_of(Kept(judged, events_have_zxids=events_have_zxids))
        assert rule in found if rule else not found, found


@pytest.mark.parametrize("name", RULES)
def test_a_lie_of_a_proxy_is_found(name: str, tmp_path: Path) -> None:
    lie = RULES[name][1]()
    history = record(lie, None, tmp_path)
    add_log(history, read_file_log(tmp_path / "log"))
    check(name, lie, history, events_have_zxids=True)


@pytest.mark.long
@pytest.mark.judge
@pytest.mark.parametrize("name", RULES)
def test_a_lie_of_a_proxy_before_apache_zookeeper_is_found(name: str, tmp_path: Path) -> None:
    lie = RULES[name][1]()
    with skipped_where_missing(), Sole(SoleApache) as sole:
        history = record(lie, sole.server.address, tmp_path)
        add_log(history, sole.server.read_log())
    check(name, lie, history, events_have_zxids=EVENTS_HAVE_A_ZXID.on(sole.server))
