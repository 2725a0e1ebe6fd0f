"""A master, its workers and their clients: one result per task, while processes come and go."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from functools import partial
from typing import Any

import pytest

from paddock.client.client import Client
from paddock.errors import InvalidArgumentError, NoNodeError, RecipeError, SessionExpiredError
from paddock.recipes import (
    Master,
    TaskClient,
    TaskState,
    TaskStatus,
    Worker,
    WorkerLoad,
    least_loaded,
)
from tests.support.apis import asyncio_only, recipe
from tests.support.recipes import clients, expire, run, stand_in_line, until
from tests.support.server import Service


async def upper(task: Any) -> bytes:
    data: bytes = task.data
    return data.upper()


@asynccontextmanager
async def serving(*those: Any) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Have masters and workers serve while something is tested."""
    tasks = [asyncio.ensure_future(_serve(one)) for one in those]
    try:
        yield tasks
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)


async def _serve(one: Any) -> None:
    await one.serve()


@pytest.mark.everywhere
def test_tasks_are_done_and_their_results_are_forgotten(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 4) as [one, two, three, four]:
            async with serving(
                recipe(Master)(one, path),
                recipe(Worker)(two, path, upper, name="two", capacity=3),
                recipe(Worker)(three, path, upper, name="three"),
            ):
                tasks = recipe(TaskClient)(four, path)
                wanted = [b"task %d" % number for number in range(20)]
                results = await asyncio.gather(*(_run(tasks, data) for data in wanted))
                assert [one.data for one in results] == [data.upper() for data in wanted]
                assert {one.state for one in results} == {TaskState.DONE}
                assert {one.worker for one in results} == {"two", "three"}
            for name in ("tasks", "status"):
                # Where nothing is, there may be no container either.
                assert await stand_in_line(four, f"{path}/{name}", 0)

    run(scenario)


async def _run(tasks: Any, data: bytes) -> TaskStatus:
    status: TaskStatus = await tasks.run(data)
    return status


def test_what_fails_is_tried_again_and_then_called_failed(service: Service, path: str) -> None:
    async def scenario() -> None:
        attempts: list[int] = []

        async def handler(task: Any) -> bytes:
            attempts.append(task.attempt)
            if task.data == b"bad" or task.attempt < 2:
                raise ValueError("no way")
            return b"in the end"

        async with clients(service, 3) as [one, two, three]:
            async with serving(
                recipe(Master)(one, path, attempts_max=3), recipe(Worker)(two, path, handler)
            ):
                tasks = recipe(TaskClient)(three, path)
                status = await tasks.run(b"good")
                assert (status.state, status.data) == (TaskState.DONE, b"in the end")
                assert status.attempts == 2
                assert attempts == [1, 2]
                status = await tasks.run(b"bad")
                assert (status.state, status.data) == (TaskState.FAILED, b"ValueError: no way")
                assert status.attempts == 3
                assert attempts == [1, 2, 1, 2, 3]

    run(scenario)


def test_progress_is_seen_up_to_the_result(service: Service, path: str) -> None:
    async def scenario() -> None:
        seen = asyncio.Event()

        async def handler(task: Any) -> bytes:
            await task.report(b"half")
            await seen.wait()
            return b"whole"

        async with clients(service, 3) as [one, two, three]:
            async with serving(recipe(Master)(one, path), recipe(Worker)(two, path, handler)):
                tasks = recipe(TaskClient)(three, path)
                task = await tasks.submit(b"")
                said = []
                async for status in tasks.progress(task):
                    said.append((status.state, status.data))
                    seen.set()
                assert said == [(TaskState.RUNNING, b"half"), (TaskState.DONE, b"whole")]
                # It is there until it is forgotten.
                assert (await tasks.result(task)).data == b"whole"
                await tasks.forget(task)
                await tasks.forget(task)
                with pytest.raises(RecipeError, match="there is no such task"):
                    await tasks.result(task)

    run(scenario)


def test_the_tasks_of_a_dead_worker_go_to_others(service: Service, path: str) -> None:
    async def scenario() -> None:
        begun = asyncio.Event()

        async def hang(task: Any) -> bytes:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError("nobody wakes it up")

        async with clients(service, 4) as [one, two, three, four]:
            dies = recipe(Worker)(two, path, hang, name="dies")
            async with serving(recipe(Master)(one, path), dies) as [_, dying]:
                tasks = recipe(TaskClient)(four, path)
                task = await tasks.submit(b"a task")
                await begun.wait()
                await expire(service, two)
                with pytest.raises(SessionExpiredError):
                    await dying
                async with serving(recipe(Worker)(three, path, upper, name="lives")):
                    status = await tasks.result(task)
                assert (status.data, status.worker, status.attempts) == (b"A TASK", "lives", 2)
            # Nothing of the dead one is left.
            assert len(await four.children(f"{path}/assign")) <= 1

    run(scenario)


def test_workers_are_seen_also_where_their_node_was_deleted(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, three]:
            async with serving(recipe(Master)(one, path)):
                tasks = recipe(TaskClient)(three, path)
                task = await tasks.submit(b"a task")
                await until(lambda: _is_there(three, f"{path}/status"))
                await three.delete(f"{path}/workers")
                # The master hears of that, and looks.
                other = await tasks.submit(b"another")
                async with serving(recipe(Worker)(two, path, upper, capacity=2)):
                    assert (await tasks.result(task)).data == b"A TASK"
                    assert (await tasks.result(other)).data == b"ANOTHER"

    run(scenario)


async def _is_there(client: Client, path: str) -> bool:
    return await client.exists(path) is not None


def test_a_worker_that_dies_of_a_task_again_and_again_makes_it_fail(
    service: Service, path: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 4) as [one, two, three, four]:
            tasks = recipe(TaskClient)(four, path)
            async with serving(recipe(Master)(one, path, attempts_max=2)):
                task = await tasks.submit(b"deadly")
                for victim in (two, three):

                    async def die(_: Any, victim: Client = victim) -> bytes:
                        await expire(service, victim)
                        await asyncio.Event().wait()
                        raise AssertionError("nobody wakes it up")

                    with pytest.raises(SessionExpiredError):
                        await recipe(Worker)(victim, path, die).serve()
                status = await tasks.result(task)
                assert (status.state, status.attempts) == (TaskState.FAILED, 2)
                assert status.data == b"its worker is gone"

    run(scenario)


def test_a_master_that_fails_is_followed_by_another(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 4) as [one, two, three, four]:
            first, second = recipe(Master)(one, path), recipe(Master)(two, path)
            async with serving(first, recipe(Worker)(three, path, upper)) as [leading, _]:
                await until(lambda: _is_master(first))
                async with serving(second):
                    tasks = recipe(TaskClient)(four, path)
                    assert (await tasks.run(b"before")).data == b"BEFORE"
                    assert not second.is_master
                    await expire(service, one)
                    with pytest.raises(SessionExpiredError):
                        await leading
                    assert (await tasks.run(b"after")).data == b"AFTER"
                    assert second.is_master

    run(scenario)


async def _is_master(master: Any) -> bool:
    return bool(master.is_master)


def test_who_gets_a_task_can_be_chosen(service: Service, path: str) -> None:
    async def scenario() -> None:
        def by_name(data: bytes, workers: Sequence[WorkerLoad]) -> str:
            named = [worker for worker in workers if worker.name == data.decode()]
            return named[0].id if named else least_loaded(data, workers)

        async with clients(service, 4) as [one, two, three, four]:
            workers = [
                recipe(Worker)(client, path, upper, name=name, capacity=10)
                for client, name in ((two, "red"), (three, "blue"))
            ]
            async with serving(recipe(Master)(one, path, assign=by_name), *workers):
                for worker in workers:
                    await until(partial(_is_registered, worker))
                await until(lambda: _has_folders(four, path, 2))
                tasks = recipe(TaskClient)(four, path)
                for name in ("red", "blue", "red"):
                    assert (await tasks.run(name.encode())).worker == name

    run(scenario)


async def _is_registered(worker: Any) -> bool:
    return bool(worker.is_registered)


async def _has_folders(client: Client, path: str, count: int) -> bool:
    try:
        return len(await client.children(f"{path}/assign")) == count
    except NoNodeError:
        return False


def test_the_least_loaded_by_its_capacity_is_chosen() -> None:
    workers = [WorkerLoad("a", "a", 1, 2), WorkerLoad("b", "b", 2, 8), WorkerLoad("c", "c", 3, 4)]
    assert least_loaded(b"", workers) == "b"


def test_strangers_among_tasks_and_workers_are_of_no_matter(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, three]:
            for name in ("tasks/stranger", "workers/stranger", "assign/stranger", "status/x"):
                await three.create(f"{path}/{name}", b"junk", make_parents=True)
            async with serving(recipe(Master)(one, path), recipe(Worker)(two, path, upper)):
                assert (await recipe(TaskClient)(three, path).run(b"a")).data == b"A"
            assert await three.exists(f"{path}/tasks/stranger") is not None

    run(scenario)


def test_a_task_that_is_deleted_by_hand_is_in_nobodys_way(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, three]:
            tasks = recipe(TaskClient)(three, path)
            task = await tasks.submit(b"unwanted")
            await three.delete(f"{path}/tasks/{task}")
            with pytest.raises(RecipeError, match="there is no such task"):
                await tasks.result(task)
            async with serving(recipe(Master)(one, path), recipe(Worker)(two, path, upper)):
                assert (await tasks.run(b"wanted")).data == b"WANTED"

    run(scenario)


def test_a_worker_whose_folder_is_deleted_by_hand_has_another(service: Service, path: str) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, three]:
            async with serving(recipe(Master)(one, path), recipe(Worker)(two, path, upper)):
                await until(partial(_has_folders, three, path, 1))
                [folder] = await three.children(f"{path}/assign")
                await three.delete(f"{path}/assign/{folder}")
                assert (await recipe(TaskClient)(three, path).run(b"a")).data == b"A"

    run(scenario)


class MuteError(Exception):
    """An error that cannot say what it is."""

    def __str__(self) -> str:
        raise ValueError("nothing to say")


FAILURES: dict[str, Exception] = {
    "said at length": ValueError("x" * 2_000_000),
    "not to be encoded": ValueError("\ud800"),
    "not to be said": MuteError(),
}


@pytest.mark.parametrize("how", ["nothing", "too much", "cancelled", *FAILURES])
@asyncio_only
def test_no_handler_can_end_its_worker(service: Service, path: str, how: str) -> None:
    async def strange(task: Any) -> Any:
        if task.data == b"good":
            return b"done"
        match how:
            case "nothing":
                return None
            case "too much":
                return b"x" * 1_048_000
            case "cancelled":
                # As by something that it has waited for.
                raise asyncio.CancelledError
        raise FAILURES[how]

    async def scenario() -> None:
        async with clients(service, 3) as [one, two, three]:
            master = recipe(Master)(one, path, attempts_max=2)
            async with serving(master, recipe(Worker)(two, path, strange)):
                tasks = recipe(TaskClient)(three, path)
                status = await tasks.run(b"bad")
                assert (status.state, status.attempts) == (TaskState.FAILED, 2)
                assert (await tasks.run(b"good")).state is TaskState.DONE

    run(scenario)


def test_a_task_that_could_not_be_moved_is_refused(service: Service, path: str) -> None:
    async def fail(task: Any) -> bytes:
        raise ValueError("not this one")

    async def scenario() -> None:
        async with clients(service, 3) as [one, two, three]:
            tasks = recipe(TaskClient)(three, path)
            with pytest.raises(InvalidArgumentError, match="data: 1000001 bytes"):
                await tasks.submit(b"x" * 1_000_001)
            master = recipe(Master)(one, path, attempts_max=2)
            async with serving(master, recipe(Worker)(two, path, fail)):
                assert (await tasks.run(b"x" * 1_000_000)).data == b"ValueError: not this one"

    run(scenario)


@pytest.mark.parametrize("outcome", ["done", "failed"])
@pytest.mark.parametrize("change", ["deleted", "changed"])
def test_a_task_that_somebody_meddles_with_keeps_no_worker_busy(
    service: Service, path: str, change: str, outcome: str
) -> None:
    async def scenario() -> None:
        async with clients(service, 3) as [one, two, three]:

            async def handle(task: Any) -> bytes:
                if task.data == b"a":
                    node = f"{path}/tasks/{task.name}"
                    await (three.delete(node) if change == "deleted" else three.set(node, b"b"))
                    if outcome == "failed":
                        raise ValueError
                data: bytes = task.data
                return data.upper()

            async with serving(recipe(Master)(one, path), recipe(Worker)(two, path, handle)):
                tasks = recipe(TaskClient)(three, path)
                task = await tasks.submit(b"a")
                assert (await tasks.run(b"c")).data == b"C"
                if change == "changed":
                    assert (await tasks.result(task)).data == b"B"

    run(scenario)


def test_bad_arguments_are_named(service: Service) -> None:
    async def scenario() -> None:
        async with clients(service, 1) as [client]:
            for make, named in (
                (lambda: recipe(TaskClient)(client, "office"), "path: "),
                (lambda: recipe(Master)(client, "/office", attempts_max=0), "attempts_max: "),
                (lambda: recipe(Master)(client, "/office", assign=None), "assign: "),
                (lambda: recipe(Worker)(client, "/office", None), "handler: "),
                (lambda: recipe(Worker)(client, "/office", upper, capacity=0), "capacity: "),
            ):
                with pytest.raises(InvalidArgumentError, match=named):
                    make()
            text: Any = "text"
            with pytest.raises(InvalidArgumentError, match="data: "):
                await recipe(TaskClient)(client, "/office").submit(text)

    run(scenario)
