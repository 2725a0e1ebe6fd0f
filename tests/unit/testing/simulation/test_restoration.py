"""Worlds whose etcd is replaced by an older one: nobody serves them any more, and it is noticed."""

import itertools

import pytest

from paddock.server.cluster import startup
from paddock.testing.simulation.plan import RESTORE, Burst, ClientPlan, Fault, Plan, Wish
from paddock.testing.simulation.world import Result, run_world

STOPPED, RUNNING = 0.2, 0.8


def restored(value: float) -> Result:
    client = ClientPlan("c1", "raw", 4.0, (Burst(0.5, (Wish("create", "/a"),)),))
    fault = Fault(2.0, RESTORE, 1, 3.0, value)
    return run_world(Plan(1, 2, (client,), (fault,), 2.0, delay_max=0.001, sync_max=0.001))


@pytest.mark.parametrize("value", [STOPPED, RUNNING])
def test_no_server_goes_on(value: float) -> None:
    result = restored(value)
    assert not result.problems, result.report()
    assert result.counts["fault: restore an older etcd"] == 1
    assert result.counts["ended by itself: OtherHistoryError"] >= 2
    assert any("etcd is restored" in moment.text for moment in result.history)


@pytest.mark.source
def test_a_server_that_goes_on_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    epochs = itertools.count(1, -1)
    monkeypatch.setattr(startup, "epoch_of", lambda zxid: next(epochs))
    result = restored(STOPPED)
    assert "restored" in result.kinds()
    assert any("answers, on a log that is gone" in one for one in result.failures)
