"""Instances whose owners are killed, as processes: they go, and others may take their place."""

from __future__ import annotations

from paddock.client.client import Client
from paddock.recipes import ServiceInstance, ServiceRegistry
from tests.fault.stage.recipe_processes import HOLDING, PATH, Actor, Killing, play_kills

SERVICE = f"{PATH}/search"


async def be_the_instance(me: Actor) -> None:
    async with ServiceRegistry(me.client, me.path) as registry:
        await registry.register(ServiceInstance("search", "1"))
        stat = await me.client.exists(f"{SERVICE}/1")
        assert stat is not None
        assert stat.ephemeral_owner == me.client.session_id
        me.say(HOLDING, stat.czxid)
        await me.wait_to_go_on()


async def make_service(observer: Client) -> None:
    await observer.create(SERVICE, container=True, make_parents=True)


def test_an_instance_is_another_ones_when_its_owner_is_killed() -> None:
    play_kills(
        Killing(be_the_instance, waits_with="exists", prepare=make_service, remains=(SERVICE,))
    )
