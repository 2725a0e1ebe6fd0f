"""A master, a worker or a client in every trouble: one result for each task."""

from __future__ import annotations

import asyncio
from typing import Final

import pytest

import paddock
from paddock.client.client import Client
from paddock.recipes import Master, Task, TaskClient, TaskState, TaskStatus, Worker
from paddock.testing import EmbeddedServer, FaultProxy, run_virtually
from tests.fault.stage.recipe_players import Player
from tests.fault.stage.recipe_processes import Actor, Aftermath, Killing, play_kills
from tests.fault.stage.recipe_stage import Part, Scene, Story
from tests.fault.stage.recipe_troubles import BRIEF, TROUBLES

PATH: Final = "/recipe"
# In virtual time. Longer than everything together takes, with sessions that run out meanwhile.
SERVED_S: Final = 80.0
# How long a handler takes: longer than a session lives that nobody hears of.
LONG_S: Final = 12.0
# The office itself stays.
OFFICE: Final = tuple(f"{PATH}/{name}" for name in ("tasks", "workers", "assign", "status"))


def worker_of(player: Player, for_s: float) -> Worker:
    async def handle(task: Task) -> bytes:
        player.note("begun", task.data)
        await task.report(b"begun")
        await asyncio.sleep(for_s)
        return task.data + b" by " + player.name.encode()

    return Worker(player.client, PATH, handle, name=player.name)


def worker(for_s: float, served_s: float = SERVED_S) -> Part:
    async def work(me: Player) -> None:
        try:
            async with asyncio.timeout(served_s):
                await worker_of(me, for_s).serve()
        except TimeoutError:
            pass

    return work


def master(after_s: float = 0.0, served_s: float = SERVED_S + LONG_S) -> Part:
    async def lead(me: Player) -> None:
        await asyncio.sleep(after_s)
        try:
            async with asyncio.timeout(served_s):
                await Master(me.client, PATH, attempts_max=5).serve()
        except TimeoutError:
            pass

    return lead


def customer(after_s: float = 0.0) -> Part:
    async def want(me: Player) -> None:
        await asyncio.sleep(after_s)
        tasks = TaskClient(me.client, PATH)
        data = me.name.encode()
        me.note("wants", data)
        task = await tasks.submit(data)
        me.note("submitted", task)
        status = await tasks.result(task)
        me.note("result", (task, status))
        # Longer than anybody might still be at it.
        await asyncio.sleep(2 * LONG_S)
        assert await tasks.result(task) == status, "there is one result"
        await tasks.forget(task)

    return want


async def judge(scene: Scene) -> None:
    """See that everybody who is there to the end has its result, and what was done was wanted."""
    results = {note.who: note.value[1] for note in scene.notes if note.what == "result"}
    wanting = {note.who for note in scene.notes if note.what == "wants"}
    assert wanting - {"the subject"} <= set(results)
    for who, status in results.items():
        assert isinstance(status, TaskStatus)
        assert status.state is TaskState.DONE
        assert status.data.startswith(who.encode() + b" by ")
    wanted = {note.value for note in scene.notes if note.what == "wants"}
    assert {note.value for note in scene.notes if note.what == "begun"} <= wanted
    if scene.is_undisturbed:
        assert wanting == set(results)
    names = await scene.observer.children(f"{PATH}/tasks")
    assert not names or scene.story is A_CLIENT, "a task is left"


A_WORKER: Final = Story(
    subject=worker(LONG_S, 20.0),
    rivals=(master(), worker(1.0), customer(0.5)),
    judge=judge,
    remains=OFFICE,
)
A_MASTER: Final = Story(
    subject=master(0.0, 20.0),
    rivals=(worker(1.0), master(3.0), customer(1.0)),
    judge=judge,
    remains=OFFICE,
)
# A client that leaves after `submit` leaves a result behind that is never fetched.
A_CLIENT: Final = Story(
    subject=customer(1.0),
    rivals=(master(), worker(1.0), customer(0.5)),
    judge=judge,
    remains=(*OFFICE, f"{PATH}/status/*"),
)
STORIES: Final = {"worker": A_WORKER, "master": A_MASTER, "client": A_CLIENT}


@pytest.mark.parametrize("trouble", BRIEF)
@pytest.mark.parametrize("who", STORIES)
def test_the_subject_in_trouble(who: str, trouble: str) -> None:
    assert BRIEF[trouble](STORIES[who]) > 1


@pytest.mark.long
@pytest.mark.parametrize("trouble", TROUBLES)
@pytest.mark.parametrize("who", STORIES)
def test_the_subject_in_every_trouble(who: str, trouble: str) -> None:
    assert TROUBLES[trouble](STORIES[who]) > 1


def test_a_worker_that_has_its_task_anew_before_it_hears_that_it_failed() -> None:
    """The reply to "it has failed" is lost, and by the next connect the task is ours again."""
    begun: list[int] = []

    async def fail_once(task: Task) -> bytes:
        begun.append(task.attempt)
        if task.attempt == 1:
            raise ValueError
        return b"done"

    async def play() -> TaskStatus:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            paddock.connect(server.hosts) as good,
            paddock.connect(proxy.hosts) as cut_off,
        ):
            those = (Master(good, PATH), Worker(cut_off, PATH, fail_once))
            serving = [asyncio.ensure_future(one.serve()) for one in those]
            fault = proxy.when(operation="multi").cut_after(stay_away=True)
            tasks = TaskClient(good, PATH)
            task = await tasks.submit(b"a task")
            await fault.happened()
            await asyncio.sleep(1.0)
            proxy.heal()
            # So that time goes on, should it ask for ever.
            proxy.when(times=None).delay(0.01)
            async with asyncio.timeout(30.0):
                status = await tasks.result(task)
            for one in serving:
                one.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
            return status

    status = run_virtually(play())
    assert (status.state, status.attempts, begun) == (TaskState.DONE, 2, [1, 2])


def test_a_worker_that_comes_while_a_master_looks_is_not_taken_for_dead() -> None:
    async def play() -> TaskStatus:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            paddock.connect(server.hosts) as good,
            paddock.connect(proxy.hosts) as slow,
        ):
            # The master sees what there was before the worker came, then what there is since.
            fault = proxy.when(operation="get_children", path=f"{PATH}/assign").delay(5.0)
            serving = [asyncio.ensure_future(Master(slow, PATH).serve())]
            await fault.happened()
            worker = Worker(good, PATH, finish)
            serving.append(asyncio.ensure_future(worker.serve()))
            async with asyncio.timeout(30.0):
                status = await TaskClient(good, PATH).run(b"a task")
            assert not [one for one in proxy.requests if one.name == "delete"]
            for one in serving:
                one.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
            return status

    assert run_virtually(play()).state is TaskState.DONE


async def finish(task: Task) -> bytes:
    return b"done"


def test_what_waits_for_room_is_not_read_again_whenever_something_changes() -> None:
    async def play() -> int:
        async with (
            EmbeddedServer() as server,
            FaultProxy(server.address) as proxy,
            paddock.connect(server.hosts) as good,
            paddock.connect(proxy.hosts) as watched,
        ):
            tasks = TaskClient(good, PATH)
            names = [await tasks.submit(b"%d" % number) for number in range(30)]
            those = (Master(watched, PATH), Worker(good, PATH, finish))
            serving = [asyncio.ensure_future(one.serve()) for one in those]
            for name in names:
                assert (await tasks.result(name)).state is TaskState.DONE
            for one in serving:
                one.cancel()
            await asyncio.gather(*serving, return_exceptions=True)
            return sum(1 for one in proxy.requests if one.name == "get")

    # Each once to see how often it has failed, once to be assigned, and some for the worker.
    assert run_virtually(play()) < 80


async def take_part(me: Actor) -> None:
    """Be master and worker, until the one task is done."""

    async def handle(task: Task) -> bytes:
        me.say("holding", task.attempt)
        await me.wait_to_go_on()
        return task.data.upper()

    names = await me.client.children(f"{PATH}/tasks")
    serving = [
        asyncio.ensure_future(one.serve())
        for one in (Master(me.client, PATH), Worker(me.client, PATH, handle, name=me.name))
    ]
    await TaskClient(me.client, PATH).result(names[0])
    for one in serving:
        one.cancel()
    await asyncio.gather(*serving, return_exceptions=True)


async def submit_one(observer: Client) -> None:
    await TaskClient(observer, PATH).submit(b"a task")


async def judge_kill(aftermath: Aftermath) -> None:
    tasks = TaskClient(aftermath.observer, PATH)
    [name] = await aftermath.observer.children(f"{PATH}/status")
    status = await tasks.result(name)
    assert (status.state, status.data, status.worker) == (TaskState.DONE, b"A TASK", "behind")
    # The attempt of the one who was killed counts, if it had begun.
    assert status.attempts == (2 if aftermath.moment == "holding" else 1)


def test_a_master_and_worker_that_is_killed_is_followed_by_another() -> None:
    remains = (*OFFICE, f"{PATH}/status/*")
    play_kills(
        Killing(
            take_part,
            moments=("holding", "creating"),
            prepare=submit_one,
            judge=judge_kill,
            remains=remains,
        )
    )
