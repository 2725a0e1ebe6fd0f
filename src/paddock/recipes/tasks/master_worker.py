"""Master and workers: those who want something done, and those who do it.

    tasks = TaskClient(client, "/office")
    status = await tasks.run(b"apples")
    print(status.data)  # b'APPLES'

A `TaskClient` submits tasks; one of the masters gives each to a worker that has room; the worker's
handler does it, and its result is recorded. All there is to know is in the service, so masters,
workers and clients may come and go at any time:

* Guaranteed is one result for each task that was submitted: recorded once, in the transaction that
  ends the task, by a worker that was alive and had it then, or, when it has failed as often as the
  master allows, as FAILED. A handler may run more than once, for an attempt that was cut short.
* A master that dies, or may have, is followed by another one, and cannot assign anything any more:
  all that it writes is fenced by its grant. There is nothing that only a master knows.
* A worker that dies, or may have: its handlers are cancelled, and its tasks are given to others. It
  registers anew as soon as it can.
* Suspension: masters and workers go on, up to the end of the session timeout. Expiry:
  SessionExpiredError ends whoever serves. Cancellation: whoever serves stops; a worker's tasks go
  to others.
* Never promised: that a handler has stopped when another one begins with the same task. What it
  does to the outside world should be such that doing it twice does no harm.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Sequence
from contextlib import aclosing, suppress
from typing import TypeAlias

from paddock.client.client import Client
from paddock.client.requests.arguments import (
    check_count,
    check_watcher,
    checked_acl,
    checked_path,
)
from paddock.errors import (
    GrantLostError,
    InvalidArgumentError,
    NoNodeError,
    RecipeError,
    SessionExpiredError,
)
from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.common.retry import Signal, child, create_numbered, make_node, until_answered
from paddock.recipes.locks.grant import Grant, GrantListener
from paddock.recipes.locks.holder import Holder
from paddock.recipes.locks.line import Line, Place
from paddock.recipes.locks.lock import SimpleMutex
from paddock.recipes.tasks.assigner import Assign, Desk, has_happened, least_loaded
from paddock.recipes.tasks.task_paths import (
    TASK_KIND,
    WORKER_KIND,
    Listing,
    Office,
    TaskState,
    TaskStatus,
    checked_result,
    checked_size,
    encode_worker,
    reason_of,
    tasks_in_order,
)


class TaskClient:
    """Submits tasks, and waits for their results."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._office = _office(client, path, acl)
        self._client = client

    async def submit(self, data: bytes) -> str:
        """Submit a task; give its name, by which it is asked for.

        A lost reply is no matter. If it is cancelled, it may have been submitted.
        """
        checked_size("data", data)
        path = child(self._office.tasks, TASK_KIND)
        return await create_numbered(self._client, path, data, acl=self._office.acl)

    async def result(self, task: str) -> TaskStatus:
        """Wait for the result of a task: what a worker has made of it, or that it has failed.

        Raises RecipeError if there is no such task.
        """
        async with aclosing(self._follow(task)) as stream:
            return [status async for status in stream][-1]

    async def progress(self, task: str) -> AsyncIterator[TaskStatus]:
        """Give everything that is said of a task, from now on, up to its result.

            async for status in tasks.progress(task):
                print(status.state)  # done

        What follows quickly on each other may come as one. Raises RecipeError if there is no such
        task.
        """
        async with aclosing(self._follow(task)) as stream:
            async for status in stream:
                yield status

    async def forget(self, task: str) -> None:
        """Delete the result of a task, when nobody wants it any more; that it is gone is fine."""
        path = child(self._office.status, task)

        async def delete() -> None:
            try:
                await self._client.delete(path)
            except NoNodeError:
                pass

        await until_answered(self._client, delete)

    async def run(self, data: bytes) -> TaskStatus:
        """Submit a task, wait for its result, and forget it.

        If it is cancelled, the task is done nevertheless, and its result is kept.
        """
        task = await self.submit(data)
        status = await self.result(task)
        await self.forget(task)
        return status

    async def _follow(self, task: str) -> AsyncGenerator[TaskStatus, None]:
        path = child(self._office.status, task)
        async with aclosing(self._client.watch(path)) as changes:
            async for change in changes:
                if change.data is not None:
                    status = TaskStatus.decode(change.data)
                    yield status
                    if status.state.is_final:
                        return
                elif not await self._is_there(task):
                    raise RecipeError(f"{task}: there is no such task in {self._office.path}")

    async def _is_there(self, task: str) -> bool:
        """Tell whether a task, or its status, is there."""

        async def look() -> bool:
            _, *found = await asyncio.gather(
                self._client.sync(),
                self._client.exists(child(self._office.tasks, task)),
                self._client.exists(child(self._office.status, task)),
            )
            return any(found)

        return await until_answered(self._client, look)


class Task:
    """Something to be done, as a worker's handler gets it."""

    def __init__(self, worker: Worker, grant: Grant, name: str, data: bytes, version: int) -> None:
        # What it is called.
        self.name: str = name
        # What is to be done.
        self.data: bytes = data
        # Which attempt this is, from 1 on.
        self.attempt: int = version + 1
        self._worker = worker
        self._grant = grant

    async def report(self, data: bytes) -> None:
        """Tell whoever follows the task how far it is."""
        checked_size("data", data)
        await self._worker._say(self._grant, self, TaskState.RUNNING, data)


# Does a task, and gives its result; what it raises makes the attempt a failed one.
Handler: TypeAlias = Callable[[Task], Awaitable[bytes]]


class Worker:
    """Does what masters assign to it.

    `handler` is called with each task, and gives its result; what it raises makes the attempt a
    failed one. `name` is what others call it, and `capacity` how many tasks it takes at a time.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        handler: Handler,
        *,
        name: str = "",
        capacity: int = 1,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        if not callable(handler):
            raise InvalidArgumentError(f"handler: {handler!r} cannot be called")
        check_count("capacity", capacity)
        self._office = _office(client, path, acl)
        self._client = client
        self._handler = handler
        self._name = name
        self._registration = _Registration(self._office, encode_worker(name, capacity))

    @property
    def is_registered(self) -> bool:
        """Whether masters see us, for all we know."""
        return self._registration.is_held

    async def serve(self) -> None:
        """Register, and do what is assigned, until this is cancelled or the session is over."""
        while True:
            # Before we register: that would make a node that goes again with the last worker.
            await self._office.make()
            try:
                async with self._registration as grant:
                    await self._work(grant)
            except GrantLostError:
                # The session lives, or the next request says that it is over.
                continue

    async def _work(self, grant: Grant) -> None:
        worker = _name_of(grant.path)
        folder = child(self._office.assign, worker)
        await make_node(self._client, folder)
        signal = Signal()
        assigned = Listing(self._client, folder, signal)
        under_way: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                for name, task in [*under_way.items()]:
                    if task.done():
                        # Raises what no handler is to blame for.
                        under_way.pop(name).result()
                        # If it is there from now on, it is there again.
                        assigned.spoil()
                await assigned.refresh()
                if not assigned.is_there:
                    # Somebody has deleted it, and without it nothing is assigned to us.
                    await make_node(self._client, folder)
                    assigned.spoil()
                    continue
                for name in tasks_in_order(assigned.names):
                    if name not in under_way:
                        under_way[name] = asyncio.create_task(self._do(grant, name))
                        under_way[name].add_done_callback(lambda _: signal.set())
                await signal.wait()
        finally:
            assigned.close()
            for task in under_way.values():
                task.cancel()
            await asyncio.gather(*under_way.values(), return_exceptions=True)
            # What is left in it a master takes care of.
            self._client.start_task(self._leave(worker))

    async def _leave(self, worker: str) -> None:
        with suppress(SessionExpiredError):
            await self._office.remove_folder(worker)

    async def _do(self, grant: Grant, name: str) -> None:
        path = child(self._office.tasks, name)
        try:
            data, stat = await until_answered(self._client, lambda: self._client.get(path))
        except NoNodeError:
            # Somebody has deleted it by hand.
            await self._drop(grant, name)
            return
        task = Task(self, grant, name, data, stat.version)
        try:
            result = checked_result(await self._handler(task))
        except asyncio.CancelledError as error:
            doing = asyncio.current_task()
            if doing is None or doing.cancelling():
                raise
            # Not us, but something that the handler has waited for.
            await self._say(grant, task, TaskState.RETRYING, reason_of(error))
        except Exception as error:
            await self._say(grant, task, TaskState.RETRYING, reason_of(error))
        else:
            await self._say(grant, task, TaskState.DONE, result)

    async def _say(self, grant: Grant, task: Task, state: TaskState, data: bytes) -> None:
        """Record how far a task is, as long as it is ours, by this very attempt."""
        office, worker = self._office, _name_of(grant.path)
        assignment = office.assignment(worker, task.name)
        path = child(office.tasks, task.name)
        status = TaskStatus(state, data, self._name, task.attempt)
        while await self._is_there(assignment):
            stat = await until_answered(self._client, lambda: self._client.exists(path))
            if stat is None:
                # Somebody has deleted it by hand.
                await self._drop(grant, task.name)
                return
            if stat.version != task.attempt - 1:
                # That it has failed was recorded before a reply was lost, and it is ours anew.
                return
            transaction = grant.guard()
            if state is TaskState.RUNNING:
                transaction.check(assignment)
            else:
                transaction.delete(assignment)
            if state is TaskState.DONE:
                transaction.delete(path)
            elif state is TaskState.RETRYING:
                # Its version counts the attempts that have failed.
                transaction.set(path, task.data, version=task.attempt - 1)
            await office.put_status(transaction, task.name, status)
            if await has_happened(transaction):
                return

    async def _drop(self, grant: Grant, name: str) -> None:
        assignment = self._office.assignment(_name_of(grant.path), name)
        while await self._is_there(assignment):
            if await has_happened(grant.guard().delete(assignment)):
                return

    async def _is_there(self, path: str) -> bool:
        await until_answered(self._client, self._client.sync)
        return await until_answered(self._client, lambda: self._client.exists(path)) is not None


class Master:
    """Assigns tasks to workers, while it is the one master.

    `assign` chooses a worker for a task, by its data, among those that have room, and gives its id.
    It must be quick and make no calls. A task that has failed `attempts_max` times, or whose worker
    died as often, is recorded as FAILED.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        assign: Assign = least_loaded,
        attempts_max: int = 3,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        check_watcher("assign", assign)
        check_count("attempts_max", attempts_max)
        self._office = _office(client, path, acl)
        self._client = client
        self._assign = assign
        self._attempts_max = attempts_max
        self._seat = SimpleMutex(client, path, "master", acl=acl)

    @property
    def is_master(self) -> bool:
        """Whether we surely are the master, at this moment."""
        return self._seat.is_held

    def add_listener(self, listener: GrantListener) -> None:
        """Have something called when we become master, and when we are it no more.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._seat.add_listener(listener)

    def remove_listener(self, listener: GrantListener) -> None:
        """Call it no more; that it was never called is fine."""
        self._seat.remove_listener(listener)

    async def serve(self) -> None:
        """Become master as soon as there is none, and assign tasks, until this is cancelled."""
        while True:
            try:
                async with self._seat as grant:
                    await self._office.make()
                    with Desk(self._office, grant, self._assign, self._attempts_max) as desk:
                        await desk.work()
            except GrantLostError:
                # The session lives, or the next request says that it is over.
                continue


class _Registration(Holder):
    """A worker's own node, which masters see."""

    def __init__(self, office: Office, data: bytes) -> None:
        super().__init__(office.client, office.workers)
        self._line = Line(office.client, office.workers, [WORKER_KIND], data, office.acl)

    def _new_place(self) -> Place:
        # Nobody waits for anybody here.
        return self._line.new_place(WORKER_KIND, lambda before: None)


def _office(client: Client, path: str, acl: Sequence[ACL]) -> Office:
    checked_path(path)
    checked_acl(acl)
    return Office(client, path, acl)


def _name_of(path: str) -> str:
    return path[path.rfind("/") + 1 :]
