"""The commands of the admin server, where no other server can be asked for comparison."""

from __future__ import annotations

import asyncio
import json
from typing import Any

from paddock.server.admin.commands import AdminCommands
from paddock.server.admin.metrics import Metrics
from paddock.testing.clock import run_virtually
from tests.support import requests as rq
from tests.unit.server.harness import Harness


def commands(made: Harness) -> AdminCommands:
    return AdminCommands(Metrics(made.service, None, 2181, asyncio.get_running_loop().time))


def answer(made: Harness, name: str) -> dict[str, Any]:
    answer = json.loads(b"".join(commands(made).run(name, {})))
    assert isinstance(answer, dict)
    return answer


def test_a_connection_over_tls_is_listed_apart() -> None:
    async def scenario() -> None:
        made = Harness()
        plain, secure = await made.client(), await made.client(tls=True)
        for name in ("connections", "stats"):
            found = answer(made, name)
            assert [one["packets_sent"] for one in found["connections"]] == [1]
            assert [one["packets_sent"] for one in found["secure_connections"]] == [1]
        found = answer(made, "connections")
        assert found["connections"][0]["session_id"] == plain.session
        assert found["secure_connections"][0]["session_id"] == secure.session

    run_virtually(scenario())


def test_every_event_is_a_packet_also_where_many_are_sent_as_one() -> None:
    async def scenario() -> None:
        made = Harness()
        watcher, writer = await made.client(), await made.client()
        watcher.send(rq.add_watch("/", 1))
        writer.send(rq.multi(*[rq.create(f"/n{number}") for number in range(30)]))
        await made.settle()
        # The handshake was taken before.
        received = 1 + len(watcher.transport.frames())
        assert received == 1 + 1 + 30
        report = watcher.connection.report()
        assert report.sent == received
        written = len(writer.transport.frames())
        assert made.service.statistics.packets_sent == received + 1 + written

    run_virtually(scenario())


def test_while_sessions_are_not_served_every_command_says_so() -> None:
    async def scenario() -> None:
        made = Harness()
        made.service.is_open = False
        for name in commands(made).names:
            error = "This ZooKeeper instance is not currently serving requests"
            assert answer(made, name) == {"command": name, "error": error}

    run_virtually(scenario())


def test_the_configuration_is_the_one_that_counts() -> None:
    async def scenario() -> None:
        found = answer(Harness(listen_backlog=7, tick_time_ms=300), "configuration")
        assert (found["client_port_listen_backlog"], found["tick_time"]) == (7, 300)
        assert (found["min_session_timeout"], found["max_session_timeout"]) == (600, 6000)

    run_virtually(scenario())


def test_without_a_snapshot_the_last_one_is_none() -> None:
    async def scenario() -> None:
        found = answer(Harness(), "last_snapshot")
        assert (found["zxid"], found["timestamp"]) == ("ffffffffffffffff", -1)

    run_virtually(scenario())


def test_any_path_is_valid_json() -> None:
    async def scenario() -> None:
        made = Harness()
        client = await made.client()
        for path in (b'/"quoted"\\', b"/\xff", b"/\n", "/ü".encode()):
            made.watches.data.add(path, client.connection, 0)
        (paths,) = answer(made, "watches")["session_id_to_watched_paths"].values()
        assert paths == ['/"quoted"\\', "/\ufffd", "/\\x0a", "/ü"]
        assert set(answer(made, "watches_by_path")["path_to_session_ids"]) == set(paths)

    run_virtually(scenario())
