"""Duty goes on after whatever has failed."""

import asyncio

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
