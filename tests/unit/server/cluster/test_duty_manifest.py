"""What one server does for all: snapshots in etcd."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.manifest import ManifestReplacedError, read_manifest
from paddock.server.cluster import duty
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import staged


@in_virtual_time
async def test_the_snapshot_in_etcd_is_read_again_after_another_server_has_replaced_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with staged("a") as stage:
        ours = stage.cluster(stage.servers["a"])._duty
        assert ours is not None
        raised = asyncio.Event()

        async def trim(*arguments: Any, **options: Any) -> int:
            raised.set()
            raise ManifestReplacedError("by another server")

        monkeypatch.setattr(duty, "trim", trim)
        ours.wants_snapshot = True
        await raised.wait()
        await asyncio.sleep(0)
        assert ours.manifest is None
        monkeypatch.undo()
        await asyncio.sleep(10)
        stored = await read_manifest(stage.etcd.store("other"), Keys("shop"))
        assert stored is not None
        assert ours.manifest == stored
