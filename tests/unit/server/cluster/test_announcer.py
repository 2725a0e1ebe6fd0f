"""What the operator is told of members."""

from __future__ import annotations

import asyncio
import logging

import pytest

from paddock.server.cluster.announcer import Announcer
from paddock.state.entry import DEPOSE, FORGET, LEAVE, RAISE_RULES, RULES, Entry
from paddock.state.roster_bodies import DeposeRequest, forget_body, rules_body
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import T, staged
from tests.unit.state.shared_state import A, B, C, SharedState, join_entry


class Told:
    """A shared state whose changes are told, by its first member, and the lines."""

    def __init__(self, caplog: pytest.LogCaptureFixture, settings: str = "tickTime=2000") -> None:
        caplog.set_level(logging.INFO, "paddock.server.cluster.announcer")
        self._caplog = caplog
        self.state = SharedState()
        self.state.join(A, "one:2181")
        self.announcer = Announcer(self.state.roster, settings)

    def commit(self, boot: bytes, entry: Entry) -> list[str]:
        self._caplog.clear()
        self.state.commit(boot, entry)
        for change in self.state.changes():
            self.announcer.tell(change, 1, is_ours=change.boot == A)
        return [f"{one.levelname} {one.getMessage()}" for one in self._caplog.records]

    def join(self, boot: bytes, address: str = "") -> list[str]:
        return self.commit(boot, join_entry(self.state.roster.index, address=address))


def test_who_joins_is_named_by_number_and_address(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    assert told.join(B, "two:2181") == [
        "INFO member 2 (two:2181) has joined: version 1.0; members: 1, 2"
    ]
    assert told.join(C) == ["INFO member 3 has joined: version 1.0; members: 1, 2, 3"]


def test_who_leaves_is_named_with_who_has_its_sessions(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    told.join(B, "two:2181")
    assert told.commit(B, Entry(LEAVE, b"")) == [
        "INFO member 2 (two:2181) has left; its sessions are with this server"
    ]


def test_who_is_deposed_is_named_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    told.join(B, "two:2181")
    told.join(C, "three:2181")
    last = told.state.roster.members[C].last_index
    assert told.commit(B, Entry(DEPOSE, DeposeRequest(C, last).encode())) == [
        (
            "WARNING member 3 (three:2181) was deposed: by 2: nothing was heard of it after batch"
            " 3; its sessions are with member 2 (two:2181)"
        )
    ]


def test_a_server_that_is_refused_is_told_with_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    (line,) = told.commit(B, join_entry(0, rules_max=RULES - 1))
    assert line.startswith("WARNING a server was refused: it knows the rules up to")


def test_decisions_about_the_service_are_told(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog)
    told.join(B, "two:2181")
    told.commit(B, Entry(LEAVE, b""))
    (line,) = told.commit(A, Entry(FORGET, forget_body("two:2181")))
    assert line.startswith("WARNING member 1 (one:2181) had a server forgotten")
    assert line.endswith("two:2181")
    told.state.roster.rules = RULES - 1
    (line,) = told.commit(A, Entry(RAISE_RULES, rules_body(RULES)))
    raised = f"WARNING member 1 (one:2181) has raised the rules of the service: rules {RULES}"
    assert line == raised


def test_a_server_with_other_settings_is_warned_of(caplog: pytest.LogCaptureFixture) -> None:
    told = Told(caplog, "tickTime=3000")
    _, line = told.join(B, "two:2181")
    assert line == (
        "WARNING member 2 (two:2181) has other settings than this server: tickTime=2000 (3000 here)"
    )


@in_virtual_time
async def test_an_outage_is_told_with_how_long_it_took(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "paddock.server.cluster")
    async with staged() as stage:
        await stage.start("a", advertise="a:1")
        await stage.start("b", advertise="b:1", enforce_quota=True)
        await stage.settle()
        stage.etcd.link("a").cut()
        await asyncio.sleep(2 * T)
        stage.etcd.link("a").heal()
        await asyncio.sleep(2 * T)
    told = [one.getMessage() for one in caplog.records]
    text = "\n".join(told)
    assert "member 2 (b:1) has other settings than this server: enforceQuota=yes (no here)" in text
    assert "member 1 (a:1) has other settings than this server: enforceQuota=no (yes here)" in text
    assert "member 1 (a:1) is out of service, and 0 clients are disconnected: its lease" in text
    assert "member 1 (a:1) has been silent for 4." in text
    assert "member 1 (a:1) was deposed: by 2: nothing was heard of it after batch" in text
    (back,) = [line for line in told if line.startswith("in service again after ")]
    assert back.endswith(" s, as member 3 (a:1)")
    assert 4 < float(back.split()[4]) < 3 * T
