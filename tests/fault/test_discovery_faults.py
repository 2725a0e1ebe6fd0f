"""Service discovery in every trouble, and the story of the four services in its own time."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, Final

import pytest

from paddock.api import connect
from paddock.client.client import Client
from paddock.errors import SessionExpiredError
from paddock.recipes import Choice, ServiceInstance, ServiceProvider, ServiceRegistry
from paddock.testing import EmbeddedServer, FaultProxy, expire_session, run_virtually
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_stage import Scene, Story
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES


def instance(number: int) -> ServiceInstance:
    return ServiceInstance("job", f"10.0.0.{number}", f"10.0.0.{number}")


def ids(instances: Sequence[ServiceInstance]) -> list[str]:
    return [one.id for one in instances]


# Who registers is in trouble.


async def serve(me: Player) -> None:
    """Be found for longer than a session lives that nobody hears of."""
    async with ServiceRegistry(me.client, "/recipe") as registry:
        await registry.register(instance(0))
        await asyncio.sleep(40.0)
        await registry.register(ServiceInstance("job", "10.0.0.0", "elsewhere"))
        await asyncio.sleep(20.0)
        await registry.unregister("job", "10.0.0.0")
    me.note("done")


async def look(me: Player) -> None:
    """See who is there, when trouble has come and gone."""
    async with ServiceRegistry(me.client, "/recipe") as registry:
        await asyncio.sleep(55.0)
        me.note("found", [one.address for one in await registry.instances("job")])
        await asyncio.sleep(60.0)
        me.note("found", [one.address for one in await registry.instances("job")])


async def judge_served(scene: Scene) -> None:
    found = [note.value for note in scene.notes if note.what == "found"]
    if scene.is_subject_gone:
        assert found[-1] == []
    elif not scene.is_subject_cancelled:
        assert found == [["elsewhere"], []]
        assert "done" in {note.what for note in scene.notes}


async def prepare(observer: Client) -> None:
    await observer.create("/recipe/job", make_parents=True)


SERVED: Final = Story(
    subject=serve,
    rivals=(look,),
    prepare=prepare,
    judge=judge_served,
    remains=("/recipe/job",),
    ends_with=(),
)
# A deleted node is unregistered and does not come back, which is tested separately.
# Two cuts are played with a node that is kept, which is what a registration is.
ELSEWHERE: Final = {"its nodes deleted", "every two cuts"}


@pytest.mark.parametrize("trouble", [name for name in TROUBLES if name not in ELSEWHERE])
def test_a_registration_in_every_trouble(trouble: str) -> None:
    assert TROUBLES[trouble](SERVED) > 1


# Who leaves is in trouble.


async def leave(me: Player) -> None:
    """Leave it to the end of the scope to unregister everything."""
    async with ServiceRegistry(me.client, "/recipe") as registry:
        await registry.register(instance(0))
        await registry.register(instance(1))


LEFT: Final = Story(
    subject=leave,
    rivals=(look,),
    prepare=prepare,
    remains=("/recipe/job",),
    ends_with=(),
)


@pytest.mark.parametrize("trouble", BRIEF)
def test_the_end_of_a_registry_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](LEFT) > 1


# Who watches is in trouble.


async def watch(me: Player) -> None:
    async with ServiceRegistry(me.client, "/recipe") as registry:
        async for instances in registry.watch("job"):
            me.note("saw", ids(instances))
            if "10.0.0.2" in ids(instances):
                break
        me.note("found", ids(await registry.instances("job")))


async def come_and_go(me: Player) -> None:
    async with ServiceRegistry(me.client, "/recipe") as registry:
        await registry.register(instance(0))
        await asyncio.sleep(2.0)
        await registry.register(instance(1))
        await registry.unregister("job", "10.0.0.0")
        await asyncio.sleep(20.0)
        await registry.register(instance(2))
        await asyncio.sleep(20.0)


async def judge_watched(scene: Scene) -> None:
    if not scene.is_subject_gone and not scene.is_subject_cancelled:
        assert scene.notes[-2].value == scene.notes[-1].value == ["10.0.0.1", "10.0.0.2"]
    seen = [note.value for note in scene.notes if note.what == "saw"]
    assert all(one != another for one, another in pairwise(seen))


WATCHED: Final = Story(subject=watch, rivals=(come_and_go,), judge=judge_watched, ends_with=())


@pytest.mark.parametrize("trouble", BRIEF)
def test_a_watch_of_a_service_in_trouble(trouble: str) -> None:
    assert BRIEF[trouble](WATCHED) > 1


# In its own time.


def test_four_services_come_and_go_and_each_is_told_as_it_should_be() -> None:
    """Three at the beginning, one more at 2 s, one unregistered at 4 s, and all stop at 5 s."""
    told: dict[int, list[Any]] = {number: [] for number in range(4)}

    async def work(hosts: str, number: int, everybody: asyncio.Barrier | None) -> None:
        async with connect(hosts, session_timeout=2.0) as client:
            async with ServiceRegistry(client, "/zk/services") as registry:
                await registry.register(instance(number))
                if everybody is not None:
                    await everybody.wait()
                await registry.follow(
                    "job",
                    started=lambda found: told[number].append(("started", {*ids(found)})),
                    changed=lambda found: told[number].append(("changed", {*ids(found)})),
                    stopped=lambda: told[number].append("stopped"),
                )

    async def unregister(hosts: str, number: int) -> None:
        async with connect(hosts, session_timeout=2.0) as client:
            await ServiceRegistry(client, "/zk/services").unregister("job", f"10.0.0.{number}")

    async def main() -> None:
        async with EmbeddedServer() as server:
            everybody = asyncio.Barrier(3)
            workers = [
                asyncio.create_task(work(server.hosts, number, everybody)) for number in range(3)
            ]
            await asyncio.sleep(2.0)
            workers.append(asyncio.create_task(work(server.hosts, 3, None)))
            await asyncio.sleep(2.0)
            await unregister(server.hosts, 1)
            await asyncio.sleep(1.0)
            assert not any(worker.done() for worker in workers)
            for worker in workers:
                worker.cancel()
            await asyncio.wait(workers)

    run_virtually(main())
    everyone = {f"10.0.0.{number}" for number in range(4)}
    first_three = [
        ("started", everyone - {"10.0.0.3"}),
        ("changed", everyone),
        ("changed", everyone - {"10.0.0.1"}),
        "stopped",
    ]
    assert [told[number] for number in range(3)] == [first_three] * 3
    assert told[3] == [("started", everyone), ("changed", everyone - {"10.0.0.1"}), "stopped"]


def test_an_unregistered_one_stays_gone_for_as_long_as_its_owner_lives() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as other:
            async with connect(server.hosts) as client, ServiceRegistry(client, "/a") as registry:
                await registry.register(instance(1))
                await registry.register(instance(2))
                await other.delete("/a/job/10.0.0.1")
                await asyncio.sleep(100.0)
                assert await other.children("/a/job") == ["10.0.0.2"]
                # And no session of its owner brings it back, but the other one.
                await expire_session(server.address, client.session_id, client.session_password)
                await asyncio.sleep(100.0)
                assert await other.children("/a/job") == ["10.0.0.2"]

    run_virtually(main())


def test_who_registers_anew_is_not_unregistered_by_a_delete_whose_reply_was_lost() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(server.hosts) as owner, connect(proxy.hosts) as client:
                await owner.create("/a/job/1", make_parents=True)
                lost = proxy.when(operation="delete").cut_after(stay_away=True)
                registry = ServiceRegistry(client, "/a")
                unregistering = asyncio.ensure_future(registry.unregister("job", "1"))
                await lost.happened()
                await asyncio.sleep(1.0)
                assert await owner.exists("/a/job/1") is None
                await owner.create("/a/job/1")
                proxy.heal()
                await unregistering
                assert await owner.exists("/a/job/1") is not None

    run_virtually(main())


def test_a_session_that_comes_after_the_end_of_the_registry_is_ended() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, FaultProxy(server.address) as proxy:
            async with connect(proxy.hosts) as client:
                registry = ServiceRegistry(client, "/a")
                await expire_session(server.address, client.session_id, client.session_password)
                async for _ in client.states():
                    pass
                before = asyncio.all_tasks()
                proxy.when(operation="create_session").delay_reply(1.0)
                asking = asyncio.ensure_future(registry.instances("job"))
                # Another session is on its way.
                await asyncio.sleep(0.5)
                await registry.close()
                with pytest.raises(SessionExpiredError):
                    await asking
                assert asyncio.all_tasks() <= before

    run_virtually(main())


def test_an_instance_that_was_marked_down_is_back_after_a_while() -> None:
    async def main() -> None:
        async with EmbeddedServer() as server, connect(server.hosts) as client:
            async with ServiceRegistry(client, "/a") as registry:
                await registry.register(instance(1))
                await registry.register(instance(2))
                async with ServiceProvider(
                    registry, "job", Choice.ROUND_ROBIN, errors_max=2, down_seconds=10.0
                ) as provider:
                    provider.report_error(instance(1))
                    await asyncio.sleep(11.0)
                    # The first one is too long ago.
                    provider.report_error(instance(1))
                    assert not provider.is_down(instance(1))
                    provider.report_error(instance(1))
                    await asyncio.sleep(9.0)
                    assert provider.is_down(instance(1))
                    assert provider.choose() == provider.choose() == instance(2)
                    await asyncio.sleep(2.0)
                    assert not provider.is_down(instance(1))
                    assert provider.choose() == instance(1)
                    # It has as many chances as before.
                    provider.report_error(instance(1))
                    assert not provider.is_down(instance(1))

    run_virtually(main())
