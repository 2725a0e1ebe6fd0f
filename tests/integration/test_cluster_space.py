"""A real etcd that becomes full: writes are refused in time, and everything else goes on."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest

import paddock
from paddock.server.cluster import etcd_watch
from paddock.server.config.config import ServerConfig
from paddock.server.config.log_url import LogUrl
from paddock.server.replication.cluster_view import LogView
from paddock.server.server import Server
from tests.support.etcd import Etcd
from tests.support.recipes import until
from tests.support.server import POLL_S

pytestmark = pytest.mark.judge

MIB = 1 << 20
QUOTA = 24 * MIB
DEADLINE_S = 90.0


def server_on(etcd: Etcd) -> Server:
    return Server(
        ServerConfig(
            port=0,
            shared_log=LogUrl((etcd.endpoint,), "shop"),
            etcd_quota_bytes=QUOTA,
            advertise="shop.example:2181",
        ),
        wall_clock_ms=lambda: time.time_ns() // 1_000_000,
        random_bytes=os.urandom,
        lease_clock=time.monotonic,
    )


def test_writes_are_refused_before_etcd_is_full_until_deletes_have_made_room(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(etcd_watch, "PAUSE", 0.02)

    async def write_until_refused(client: paddock.Client, log: Callable[[], LogView]) -> int:
        def is_counted(before: int) -> bool:
            return log().used_bytes != before or log().is_tight

        for number in range(1_000):
            used = log().used_bytes
            try:
                await client.create(f"/n{number}", bytes(250_000))
            except paddock.SystemFailureError:
                return number
            # etcd counts what its database has when it has written it there, which is later.
            await until(partial(is_counted, used))
        raise AssertionError("nothing was refused")

    async def write_until_accepted(client: paddock.Client) -> None:
        while True:
            try:
                await client.create("/again", bytes(250_000))
            except paddock.SystemFailureError:
                await asyncio.sleep(POLL_S)
            else:
                return

    async def scenario(etcd: Etcd) -> None:
        server = server_on(etcd)
        await server.start()
        try:
            async with asyncio.timeout(DEADLINE_S):
                async with paddock.connect("{}:{}".format(*server.address)) as client:
                    assert server._core is not None
                    assert server._core.cluster is not None
                    written = await write_until_refused(client, server._core.cluster.log)
                    assert 30 < written < 96
                    log = server._core.cluster.log()
                    assert (log.is_tight, log.is_full) == (True, False)
                    for number in range(written):
                        await client.delete(f"/n{number}")
                    # A session can still be had.
                    async with paddock.connect("{}:{}".format(*server.address)) as other:
                        assert await other.children("/") == ["zookeeper"]
                    # Snapshots have the deleted nodes trimmed from the log.
                    await write_until_accepted(client)
        finally:
            await server.stop()

    etcd = Etcd(tmp_path / "etcd", quota_bytes=QUOTA)
    etcd.arguments += ["--backend-batch-interval", "10ms"]
    with etcd:
        asyncio.run(scenario(etcd))
