"""Duty goes on after whatever has failed."""

import asyncio
from typing import Any

import pytest

from paddock.log.etcd import snapshots
from paddock.log.etcd.manifest import Manifest
from paddock.log.interface import LogError
from paddock.server.cluster import duty as module
from paddock.testing.virtual import in_virtual_time
from tests.unit.server.cluster.stage import staged


@in_virtual_time
async def test_duty_looks_again_after_an_unforeseen_error() -> None:
    async with staged("a") as stage:
        duty = stage.cluster(stage.servers["a"])._duty
        assert duty is not None
        looks: list[int] = []

        async def look() -> None:
            looks.append(len(looks))
            raise ValueError("a defect")

        duty._look = look  # type: ignore[method-assign]
        await asyncio.sleep(60)
        assert len(looks) > 1


@in_virtual_time
async def test_a_snapshot_that_is_wanted_and_fails_is_still_wanted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async def no_upload(*args: object, **kwargs: object) -> Manifest:
        raise LogError("etcd is away")

    async with staged("a") as stage:
        duty = stage.cluster(stage.servers["a"])._duty
        assert duty is not None
        monkeypatch.setattr(module, "upload", no_upload)
        duty.wants_snapshot = True
        await asyncio.sleep(10)
        assert duty.wants_snapshot
        monkeypatch.undo()
        await asyncio.sleep(60)
        assert duty.manifest is not None


@in_virtual_time
async def test_a_snapshot_may_be_purged_while_it_is_uploaded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with staged("a") as stage:
        duty = stage.cluster(stage.servers["a"])._duty
        assert duty is not None
        folder = duty._folder

        async def upload(*args: Any, **kwargs: Any) -> Manifest:
            (path,) = folder.iterdir()
            path.unlink()
            return await snapshots.upload(*args, **kwargs)

        monkeypatch.setattr(module, "upload", upload)
        duty.wants_snapshot = True
        await asyncio.sleep(10)
        assert duty.manifest is not None
