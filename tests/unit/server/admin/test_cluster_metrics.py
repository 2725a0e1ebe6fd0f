"""What tools are told by a server that is one of several."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from paddock.server.admin.commands import AdminCommands
from paddock.server.admin.four_letter_words import FourLetterWords
from paddock.server.admin.metrics import Metrics
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import Stage, T, staged


def metrics_of(stage: Stage, name: str) -> Metrics:
    core = stage.core(stage.servers[name])
    return Metrics(core, None, 2181, asyncio.get_running_loop().time)


def word(stage: Stage, name: str, word: str) -> str:
    words = FourLetterWords(metrics_of(stage, name))
    pieces = words.answer(word.encode())
    assert pieces is not None
    return b"".join(pieces).decode()


def monitored(stage: Stage, name: str) -> dict[str, str]:
    lines = word(stage, name, "mntr").splitlines()
    return {key: value for key, _, value in (line.partition("\t") for line in lines)}


def command(stage: Stage, name: str, command: str) -> dict[str, Any]:
    found = json.loads(b"".join(AdminCommands(metrics_of(stage, name)).run(command, {})))
    assert isinstance(found, dict)
    return found


async def three(stage: Stage) -> None:
    for name in "abc":
        await stage.start(name, advertise=f"{name}:1", four_letter_words=frozenset("*"))
    await stage.settle()


@in_virtual_time
async def test_the_server_on_duty_is_the_leader_and_the_others_follow() -> None:
    async with staged() as stage:
        await three(stage)
        for word_ in ("srvr", "stat"):
            assert "Mode: leader\n" in word(stage, "a", word_)
            assert "Mode: follower\n" in word(stage, "c", word_)
        leading, following = monitored(stage, "a"), monitored(stage, "b")
        assert leading["zk_server_state"] == "leader"
        assert leading["zk_peer_state"] == "leading - broadcast"
        assert following["zk_server_state"] == "follower"
        assert following["zk_peer_state"] == "following - broadcast"
        assert command(stage, "a", "srvr")["server_stats"]["server_state"] == "leader"
        await stage.servers.pop("a").stop()
        await stage.settle()
        assert "Mode: leader\n" in word(stage, "b", "srvr")


@in_virtual_time
async def test_the_leader_counts_its_followers_and_who_keeps_up() -> None:
    async with staged() as stage:
        await three(stage)
        leading = monitored(stage, "a")
        counts = ("zk_learners", "zk_followers", "zk_synced_followers", "zk_quorum_size")
        assert [leading[key] for key in counts] == ["2", "2", "2", "3"]
        assert leading["zk_synced_observers"] == leading["zk_pending_syncs"] == "0"
        following = monitored(stage, "b")
        assert [following.get(key) for key in counts] == [None, None, None, "3"]
        stage.etcd.link("c").cut()
        await asyncio.sleep(0.75 * T)
        leading = monitored(stage, "a")
        assert [leading[key] for key in counts] == ["2", "2", "1", "3"]
        await asyncio.sleep(T)
        assert [monitored(stage, "a")[key] for key in counts] == ["1", "1", "1", "2"]
        stage.etcd.link("c").heal()
        await asyncio.sleep(2 * T)


@in_virtual_time
async def test_log_lease_and_database_are_measured() -> None:
    async with staged() as stage:
        await three(stage)
        await asyncio.sleep(4)
        found = monitored(stage, "b")
        assert found["zk_cluster_member"] == "2"
        assert int(found["zk_cluster_log_index"]) >= 3
        assert 0 < int(found["zk_cluster_lease_left_ms"]) <= 0.8 * T * 1000
        assert float(found["zk_cluster_log_commit_ms"]) > 0
        assert int(found["zk_cluster_etcd_database_bytes"]) > 0
        assert found["zk_cluster_snapshot_age"] == "-1"
        assert found["zk_cluster_writes_refused"] == "0"
        assert found["zk_cluster_log_lag"] == "0"


@in_virtual_time
async def test_conf_lists_the_servers() -> None:
    async with staged() as stage:
        await three(stage)
        said = word(stage, "b", "conf")
        assert "serverId=2\nsyncLimit=1\npeerType=0\nmembership: \nserver.1=a:0:1:part" in said
        assert said.endswith("server.3=c:0:1:participant;c:1\nversion=3")


@in_virtual_time
async def test_admin_commands_show_the_members() -> None:
    async with staged() as stage:
        await three(stage)
        assert command(stage, "b", "leader") == {
            "is_leader": False,
            "leader_id": 1,
            "leader_ip": "a:1",
            "command": "leader",
            "error": None,
        }
        assert command(stage, "a", "leader")["is_leader"] is True
        listed = command(stage, "a", "voting_view")["current_config"]
        assert [one["client_address"] for one in listed.values()] == ["a:1", "b:1", "c:1"]
        assert [*listed] == ["1", "2", "3"]
        state = command(stage, "a", "zabstate")
        assert (state["voting"], state["zabstate"]) == (True, "broadcast")


@in_virtual_time
async def test_a_server_that_is_cut_off_says_that_it_is_read_only() -> None:
    async with staged() as stage:
        settings: dict[str, Any] = {
            "four_letter_words": frozenset("*"),
            "read_only_mode_enabled": True,
        }
        await stage.start("a", **settings)
        stage.etcd.link("a").cut()
        await asyncio.sleep(2 * T)
        assert "Mode: read-only\n" in word(stage, "a", "srvr")
        assert (word(stage, "a", "isro"), word(stage, "a", "ruok")) == ("ro", "imok")
        assert monitored(stage, "a")["zk_server_state"] == "read-only"
        assert "zk_peer_state" not in monitored(stage, "a")
        assert command(stage, "a", "isro")["read_only"] is True
        assert command(stage, "a", "srvr")["read_only"] is True
        assert command(stage, "a", "zabstate")["voting"] is False
        stage.etcd.link("a").heal()
        await asyncio.sleep(2 * T)
        assert "Mode: leader\n" in word(stage, "a", "srvr")
