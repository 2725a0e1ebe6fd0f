"""Ten incidents, always the same ones, and what `paddock explain` makes of them afterwards.

`make incidents` plays as many as one likes.
"""

from __future__ import annotations

import dataclasses
from collections import Counter
from pathlib import Path
from random import Random

import pytest

from paddock.history.stories import lock as lock_story
from paddock.history.stories import session as session_story
from tests.fault.stage.incident_cluster import CLUSTER_KINDS
from tests.fault.stage.incident_holder import PATIENT
from tests.fault.stage.incident_kinds import CLOSED, GONE, KINDS, NOTHING, SILENT
from tests.fault.stage.incident_scene import Holder, Plan
from tests.fault.stage.incidents import (
    NOT_TOLD,
    RIGHT,
    WRONG,
    Incident,
    Told,
    ask,
    explained,
    judge,
    make_cluster_incident,
    play,
)
from tests.support import requests as rq
from tests.support import wire
from tests.support.command import ended_here
from tests.support.holding import wait_until
from tests.support.judges import skipped_where_missing
from tests.support.server import Server

# Ten of one round, in which each kind comes once, and among them what everybody fears.
SEEDS = range(330, 340)
FEARED = {
    "client_paused",
    "server_killed_and_left",
    "server_paused_and_left",
    "network_cut",
    "disk_slow_and_left",
    "lock_deleted_by_another",
}


@pytest.fixture(scope="module")
def stories(tmp_path_factory: pytest.TempPathFactory) -> list[tuple[Incident, Told]]:
    """What has happened, and what is told of it."""
    with skipped_where_missing():
        played = play(SEEDS, tmp_path_factory.mktemp("incidents"), len(SEEDS))
        incidents = [one.result() for one in played]
    return [(one, ask(one)) for one in incidents]


@pytest.mark.judge
def test_causes_are_named_rightly_or_not_at_all(stories: list[tuple[Incident, Told]]) -> None:
    assert {one.kind for one, _ in stories} > FEARED
    verdicts = {str(one): judge(one, told) for one, told in stories}
    counts = Counter(verdict for verdict, _ in verdicts.values())
    assert counts[WRONG] == 0, verdicts
    assert counts[RIGHT] >= 9, verdicts


@pytest.mark.judge
def test_the_judge_finds_what_is_wrong(stories: list[tuple[Incident, Told]]) -> None:
    """If something else had happened, these stories would not be right."""
    for one, told in stories:
        for truth in (SILENT, GONE, CLOSED, NOTHING):
            if one.truth != truth:
                assert judge(dataclasses.replace(one, truth=truth), told)[0] == WRONG
        assert judge(dataclasses.replace(one, waiters=(*one.waiters, 0x123)), told)[0] == WRONG
        assert judge(one, told._replace(neighbour={"cause": None, "text": None}))[0] == WRONG
        unknown = {**told.session, "cause": session_story.NOT_KNOWN}
        assert judge(one, told._replace(session=unknown))[0] == NOT_TOLD


@pytest.mark.judge
@pytest.mark.long
def test_causes_of_many_incidents_are_named(tmp_path: Path) -> None:
    seeds = range(4 * len(KINDS))
    with skipped_where_missing():
        incidents = [one.result() for one in play(seeds, tmp_path, 8)]
    verdicts = [judge(one, ask(one)) for one in incidents]
    wrong = [found for verdict, found in verdicts if verdict == WRONG]
    assert wrong == []
    assert sum(verdict == RIGHT for verdict, _ in verdicts) >= 0.9 * len(verdicts)


@pytest.mark.judge
@pytest.mark.cluster
@pytest.mark.long
def test_causes_in_a_cluster_are_named_by_the_server_that_is_left(tmp_path: Path) -> None:
    with skipped_where_missing():
        played = play(range(len(CLUSTER_KINDS)), tmp_path, 2, make_cluster_incident)
        incidents = [one.result() for one in played]
    verdicts = {str(one): judge(one, ask(one)) for one in incidents}
    assert {verdict for verdict, _ in verdicts.values()} == {RIGHT}, verdicts


@pytest.mark.judge
@pytest.mark.foreign
def test_the_story_of_a_lock_from_a_folder_of_apache(shared_apache: Server, tmp_path: Path) -> None:
    """The holder is killed, and somebody else deletes the node of the next one."""
    path, data = "/incident", shared_apache.data
    plan = dataclasses.replace(Plan.draw(Random(1)), layout="kazoo", path=path)
    second, third, culprit = (wire.connect(shared_apache.address) for _ in range(3))
    culprit.call(rq.create(path))
    first = Holder(shared_apache.hosts, plan, PATIENT, tmp_path / "holder.log")
    for name, waiter in (("a" * 32, second), ("b" * 32, third)):
        waiter.call(rq.create(f"{path}/{name}__lock__", flags=3))
    first.kill()
    wait_until(lambda: culprit.call(rq.exists(first.node)).err != 0, "end of the first session")
    node = f"{path}/{'a' * 32}__lock__0000000001"
    assert culprit.call(rq.delete(node)).err == 0

    told = explained(data, "lock", path)
    assert [(one["session"], one["how"]) for one in told["former"]] == [
        (f"0x{first.session:x}", lock_story.EXPIRED),
        (f"0x{second.session_id:x}", lock_story.DELETED_BY_OTHER),
    ]
    killed, deleted = told["former"]
    assert deleted["held"] == killed["went"]
    assert told["holder"]["session"] == f"0x{third.session_id:x}"
    assert told["holder"]["held"] == deleted["went"]
    assert {one["layout"] for one in (told["holder"], *told["former"])} == {"kazoo"}
    assert explained(data, "node", node)["last"][-1]["session"] == f"0x{culprit.session_id:x}"
    # That the first one was silent is there, and why it was is not.
    assert "do not say who a client was" in told["unknown"]
    assert explained(data, "session", killed["session"])["cause"] == session_story.NOT_KNOWN
    text = ended_here("explain", "lock", path, "--data", str(data)).output
    assert f"deleted by another session, 0x{culprit.session_id:x}\n" in text
    assert text.endswith("why a session that expired was silent\n")
    first.leave()
    for client in (second, third, culprit):
        client.close()
