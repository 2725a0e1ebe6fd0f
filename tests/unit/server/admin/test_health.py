"""Health: when clients should come, and why not."""

from __future__ import annotations

import asyncio
import json

from paddock.server.admin.health import LIVEZ, READYZ, Health
from paddock.testing.virtual import in_virtual_time
from tests.support import requests as rq
from tests.support.logs import Durability
from tests.unit.server.cluster.stage import staged
from tests.unit.server.harness import Harness, run, with_node


def serving(harness: Harness) -> Health:
    health = Health(harness.service)
    health.is_starting = False
    return health


def test_a_server_that_takes_writes_is_ready() -> None:
    async def scenario() -> None:
        status, body = serving(Harness()).answer(READYZ)
        assert (status, json.loads(body)) == (200, {"status": "ok", "reasons": []})

    run(scenario)


def test_it_is_alive_whatever_it_does_and_ready_only_in_between() -> None:
    async def scenario() -> None:
        health = Health(Harness().service)
        assert (health.answer(LIVEZ)[0], health.answer(READYZ)[0]) == (200, 503)
        assert health.reasons() == ["It starts."]
        health.is_starting = False
        assert health.is_ready()
        health.is_stopping = True
        assert health.reasons() == ["It stops."]
        assert health.answer(LIVEZ)[0] == 200
        assert json.loads(health.answer(READYZ)[1])["status"] == "unavailable"

    run(scenario)


def test_it_is_not_ready_while_its_log_fails_or_it_serves_only_reads() -> None:
    async def scenario() -> None:
        harness = Harness()
        health = serving(harness)
        harness.service.is_open = False
        assert health.reasons() == ["The log has failed."]
        harness.service.is_read_only = True
        assert health.reasons() == ["The log has failed.", "Only reads are served."]
        harness.service.is_open = True
        assert health.is_ready()

    run(scenario)


def test_it_is_not_ready_after_its_state_was_given_up() -> None:
    async def scenario() -> None:
        harness = Harness()
        harness.replica.on_fatal = lambda _: None
        harness.replica.fail(MemoryError())
        assert serving(harness).reasons() == ["The state was given up; the process ends."]

    run(scenario)


def test_it_is_not_ready_for_a_while_after_writes_were_refused() -> None:
    async def scenario() -> None:
        harness = Harness()
        health = serving(harness)
        client = await with_node(harness, "/a", b"")
        client.send(rq.set_data("/a", b"x"))
        await harness.settle(Durability.NOT_WRITTEN)
        assert health.reasons() == ["Writes are refused: the log has no room."]
        # Nobody comes, so nobody would find out that there is room again.
        await asyncio.sleep(31.0)
        assert health.is_ready()
        client.send(rq.set_data("/a", b"x"))
        await harness.settle(Durability.NOT_WRITTEN)
        assert not health.is_ready()
        client.send(rq.set_data("/a", b"x"))
        await harness.settle()
        assert health.is_ready()

    run(scenario)


@in_virtual_time
async def test_a_server_that_is_cut_off_from_the_shared_log_is_not_ready() -> None:
    async with staged() as stage:
        for name in "ab":
            await stage.start(name)
        await stage.settle()
        core = stage.core(stage.servers["a"])
        health = Health(core)
        health.is_starting = False
        assert health.is_ready()
        stage.etcd.link("a").cut()
        await asyncio.sleep(60.0)
        assert health.reasons() == ["It is cut off from the log, or no member."]
