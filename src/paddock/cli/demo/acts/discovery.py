"""Discovery: a client always sees the current instances of a service."""

import math
import os
from typing import Final

from paddock.cli.demo.stage import Act, Stage
from paddock.cli.demo.worker import Worker
from paddock.recipes import ServiceInstance, ServiceRegistry


async def instance(me: Worker) -> None:
    async with ServiceRegistry(me.client, "/services") as registry:
        myself = ServiceInstance("search", me.name, payload=os.getpid())
        await registry.register(myself)
        me.tell("is registered")
        await me.work()


async def user(me: Worker) -> None:
    async with ServiceRegistry(me.client, "/services") as registry:
        async for instances in registry.watch("search"):
            me.tell("sees", instances=[one.id for one in instances])


async def _story(stage: Stage) -> str:
    await stage.start("web", user)
    for name in ("search-1", "search-2", "search-3"):
        await stage.start(name, instance, work=math.inf)
    await stage.see("sees", instances=["search-1", "search-2", "search-3"])
    await stage.pause(3)
    killed = await stage.kill("search-2")
    missing = await stage.see("sees", after=killed, instances=["search-1", "search-3"])
    await stage.pause(3)
    await stage.start("search-4", instance, work=math.inf)
    await stage.see("sees", after=missing, instances=["search-1", "search-3", "search-4"])
    await stage.pause(3)
    stopped = await stage.stop("search-1")
    left = await stage.see("sees", after=stopped, instances=["search-3", "search-4"])
    return (
        f"web saw that search-2 was gone {missing.at - killed.at:.2f} s after it was killed, and"
        f" that search-1 was {(left.at - stopped.at) * 1000:.0f} ms after it was asked to end"
    )


DISCOVERY: Final = Act(
    "discovery",
    "instances of a service come, go and are killed, and its user sees it",
    "Processes register as instances of a service, and web is told of every change: one is killed,"
    " another one comes, a third one ends.",
    (instance, user),
    "is registered",
    _story,
)
