"""Writers that are held back for a member that cannot keep up."""

from __future__ import annotations

import asyncio
import logging

import pytest

from paddock.server.cluster.laggards import PAUSE_MAX, Laggards
from paddock.server.replication.pacing import LAG_MAX, Pacing
from paddock.state.roster import Roster
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import T, connect, staged
from tests.unit.state.shared_state import A, B, SharedState


class Case:
    """Two members, of whom the second is behind."""

    def __init__(self) -> None:
        state = SharedState()
        state.join(A)
        state.join(B)
        self.roster: Roster = state.roster
        self.silent = {A: 0.0, B: 0.0}
        self.pacing = Pacing(lambda: 0.0, 1_000)
        self.laggards = Laggards(
            self.roster, self.pacing, T, self.silent.__getitem__, "member {}".format
        )

    def hold(self, lag: int) -> float:
        """Return the pause, in ms, if the second member is so far behind."""
        self.roster.members[B].lag = lag
        self.laggards.look()
        return round(self.pacing.hold_seconds * 1000, 3)


def test_nobody_waits_for_a_member_that_keeps_up() -> None:
    assert Case().hold(LAG_MAX) == 0


def test_the_further_a_member_is_behind_the_longer_is_the_pause() -> None:
    case = Case()
    assert [case.hold(lag) for lag in (LAG_MAX + 500, 10 * LAG_MAX, 1_000 * LAG_MAX)] == [
        3.0,
        20.0,
        PAUSE_MAX * 1000,
    ]


def test_it_ends_when_the_member_is_well_below_the_limit() -> None:
    case = Case()
    assert case.hold(LAG_MAX + 1) > 0
    assert case.hold(LAG_MAX // 2 + 1) > 0
    assert case.hold(LAG_MAX // 2) == 0
    assert case.hold(LAG_MAX // 2 + 1) == 0


def test_a_member_that_is_silent_is_not_waited_for() -> None:
    case = Case()
    assert case.hold(5 * LAG_MAX) > 0
    case.silent[B] = T / 2
    assert case.hold(5 * LAG_MAX) == 0


def test_the_operator_is_told_of_whom_and_of_the_end(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "paddock.server.cluster.laggards")
    case = Case()
    for lag in (1_500, 2_500, 0, 0):
        case.hold(lag)
    assert [record.getMessage() for record in caplog.records] == [
        "writers are held back: member 2 is 1500 batches behind",
        "writers are not held back any more: all members keep up",
    ]


@in_virtual_time
async def test_a_server_that_is_behind_slows_the_others_down_and_they_recover() -> None:
    async with staged("a", "b") as stage, connect(stage, "a") as client:
        core = stage.core(stage.servers["a"])
        await client.create("/n")
        assert core.machine.roster is not None
        slow = [*core.machine.roster.members.values()][1]
        # Its first batch behind the JOIN comes soon, the next one T/4 later.
        await asyncio.sleep(T / 8)
        slow.lag = 3_000
        await asyncio.sleep(T / 8)
        pacing = core.proposer.pacing
        assert pacing is not None
        # Its next batch says that it has caught up.
        held = pacing.hold_seconds
        await client.set("/n", b"1")
        await asyncio.sleep(T)
        assert (held > 0, pacing.hold_seconds) == (True, 0)
