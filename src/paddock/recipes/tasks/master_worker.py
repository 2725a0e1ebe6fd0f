"""Master and workers: tasks are submitted, assigned to workers, and their results recorded.

    tasks = TaskClient(client, "/office")
    status = await tasks.run(b"apples")
    print(status.data)  # b'APPLES'

A `TaskClient` submits tasks; the master assigns each to a worker with free capacity; the worker's
handler does it, and its result is recorded. All state is in the service, so masters, workers and
clients may come and go at any time:

* Guaranteed is one result for each submitted task: recorded once, in the transaction that ends the
  task, by a live worker that had it then, or, after as many failures as the master allows, as
  FAILED. A handler may run more than once, if an attempt was cut short.
* A master that dies, or may have, is followed by another one, and cannot assign anything any more:
  all its writes are fenced by its grant.
* A worker that dies, or may have: its handlers are cancelled, and its tasks go to others. It
  registers again as soon as it can.
* Suspension: masters and workers go on, up to the end of the session timeout. Expiry: `serve`
  raises SessionExpiredError. Cancellation: `serve` stops; a worker's tasks go to others.
* Never promised: that a handler has stopped when another one begins with the same task. Its effects
  outside the service should be idempotent.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import aclosing, closing, suppress
from typing import TypeAlias

from paddock.client.client import Client
from paddock.client.requests.arguments import check_count, check_watcher
from paddock.errors import (
    GrantLostError,
    InvalidArgumentError,
    NoNodeError,
    RecipeError,
    SessionExpiredError,
)
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.protocol.paths import child_path
from paddock.recipes.common.retry import (
    Signal,
    create_numbered,
    delete_if_exists,
    make_node,
    name_of,
    newest_stat,
    retry,
)
from paddock.recipes.locks.grant import Grant, GrantListener
from paddock.recipes.locks.holder import Holder
from paddock.recipes.locks.line import Line, Place
from paddock.recipes.locks.lock import SimpleMutex
from paddock.recipes.tasks.assigner import Assign, Assigner, has_happened, least_loaded
from paddock.recipes.tasks.task_paths import (
    TASK_KIND,
    WORKER_KIND,
    Listing,
    TaskPaths,
    TaskState,
    TaskStatus,
    checked_size,
    encode_worker,
    reason_of,
    tasks_in_order,
)


class TaskClient:
    """Submits tasks, and waits for their results."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._paths = TaskPaths(client, path, acl)
        self._client = client

    async def submit(self, data: bytes) -> str:
        """Submit a task, exactly once; return its name.

        If it is cancelled, it may have been submitted.
        """
        checked_size("data", data)
        path = child_path(self._paths.tasks, TASK_KIND)
        return await create_numbered(self._client, path, data, acl=self._paths.acl)

    async def result(self, task: str) -> TaskStatus:
        """Wait for the result of a task, or its failure.

        Raises RecipeError if there is no such task.
        """
        async with aclosing(self.progress(task)) as stream:
            return [status async for status in stream][-1]

    async def progress(self, task: str) -> AsyncGenerator[TaskStatus, None]:
        """Yield the status of a task at every change, up to its result.

            async for status in tasks.progress(task):
                print(status.state)  # done

        Intermediate ones may be left out. Raises RecipeError if there is no such task.
        """
        async with aclosing(self._client.watch(child_path(self._paths.status, task))) as changes:
            async for change in changes:
                if change.data is not None:
                    status = TaskStatus.decode(change.data)
                    yield status
                    if status.state.is_final:
                        return
                elif not await self._is_there(task):
                    raise RecipeError(f"{task}: there is no such task in {self._paths.path}")

    async def forget(self, task: str) -> None:
        """Delete the result of a task, if it exists."""
        path = child_path(self._paths.status, task)
        await retry(self._client, lambda: delete_if_exists(self._client, path))

    async def run(self, data: bytes) -> TaskStatus:
        """Submit a task, wait for its result, and delete it.

        If it is cancelled, the task is done nevertheless, and its result stays.
        """
        task = await self.submit(data)
        status = await self.result(task)
        await self.forget(task)
        return status

    async def _is_there(self, task: str) -> bool:
        """Return whether a task or its status exists."""

        async def look() -> bool:
            _, *found = await asyncio.gather(
                self._client.sync(),
                self._client.exists(child_path(self._paths.tasks, task)),
                self._client.exists(child_path(self._paths.status, task)),
            )
            return any(found)

        return await retry(self._client, look)


class Task:
    """A task, as a worker's handler gets it."""

    def __init__(self, worker: Worker, grant: Grant, name: str, data: bytes, version: int) -> None:
        # The name of its node.
        self.name: str = name
        # The data that were submitted.
        self.data: bytes = data
        # Which attempt this is, from 1 on.
        self.attempt: int = version + 1
        self._worker = worker
        self._grant = grant

    async def report(self, data: bytes) -> None:
        """Record progress, for clients that follow the task."""
        checked_size("data", data)
        await self._worker._record(self._grant, self, TaskState.RUNNING, data)


# Does a task, and returns its result; an error makes the attempt a failed one.
Handler: TypeAlias = Callable[[Task], Awaitable[bytes]]


class Worker:
    """Does the tasks that masters assign to it.

    `handler` is called with each task, and returns its result; an error makes the attempt a failed
    one. `name` is for people, and `capacity` is how many tasks it does at a time.
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
        self._paths = TaskPaths(client, path, acl)
        self._client = client
        self._handler = handler
        self._name = name
        self._registration = _Registration(self._paths, encode_worker(name, capacity))

    @property
    def is_registered(self) -> bool:
        """Whether we are surely registered, at this moment."""
        return self._registration.is_held

    async def serve(self) -> None:
        """Register, and do tasks, until this is cancelled or the session is over."""
        while True:
            # First: registering would create a container, which goes with the last worker.
            await self._paths.make()
            try:
                async with self._registration as grant:
                    await self._work(grant)
            except GrantLostError:
                # If the session is over, the next request raises.
                continue

    async def _work(self, grant: Grant) -> None:
        worker = name_of(grant.path)
        folder = child_path(self._paths.assign, worker)
        await make_node(self._client, folder)
        signal = Signal()
        assigned = Listing(self._client, folder, signal)
        under_way: dict[str, asyncio.Task[None]] = {}
        try:
            while True:
                for name, task in [*under_way.items()]:
                    if task.done():
                        # Raises errors that are not the handler's.
                        under_way.pop(name).result()
                        # If it is listed from now on, it was assigned again.
                        assigned.spoil()
                await assigned.refresh()
                if not assigned.is_there:
                    # It was deleted, and without it nothing is assigned to us.
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
            # The master takes back what is left in it.
            self._client.start_task(self._leave(worker))

    async def _leave(self, worker: str) -> None:
        with suppress(SessionExpiredError):
            await self._paths.remove_folder(worker)

    async def _do(self, grant: Grant, name: str) -> None:
        path = child_path(self._paths.tasks, name)
        try:
            data, stat = await retry(self._client, lambda: self._client.get(path))
        except NoNodeError:
            # It was deleted by hand.
            await self._drop(grant, name)
            return
        task = Task(self, grant, name, data, stat.version)
        try:
            result = checked_size("result", await self._handler(task))
        except (Exception, asyncio.CancelledError) as error:
            doing = asyncio.current_task()
            is_cancelled = isinstance(error, asyncio.CancelledError)
            if is_cancelled and (doing is None or doing.cancelling()):
                # Our own task, and not one that the handler has waited for.
                raise
            await self._record(grant, task, TaskState.RETRYING, reason_of(error))
        else:
            await self._record(grant, task, TaskState.DONE, result)

    async def _record(self, grant: Grant, task: Task, state: TaskState, data: bytes) -> None:
        """Record the state of a task, as long as it is ours, by this very attempt."""
        paths, worker = self._paths, name_of(grant.path)
        assignment = paths.assignment(worker, task.name)
        path = child_path(paths.tasks, task.name)
        status = TaskStatus(state, data, self._name, task.attempt)
        while await self._is_there(assignment):
            stat = await retry(self._client, lambda: self._client.exists(path))
            if stat is None:
                # It was deleted by hand.
                await self._drop(grant, task.name)
                return
            if stat.version != task.attempt - 1:
                # The failure was recorded before a reply was lost, and it is ours again.
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
            await paths.put_status(transaction, task.name, status)
            if await has_happened(transaction):
                return

    async def _drop(self, grant: Grant, name: str) -> None:
        assignment = self._paths.assignment(name_of(grant.path), name)
        while await self._is_there(assignment):
            if await has_happened(grant.guard().delete(assignment)):
                return

    async def _is_there(self, path: str) -> bool:
        return await retry(self._client, lambda: newest_stat(self._client, path)) is not None


class Master:
    """Assigns tasks to workers, while it is the master.

    `assign` returns the id of a worker for a task's data, of those with free capacity. It must be
    quick and make no calls. A task that has failed `attempts_max` times, or whose worker died as
    often, is recorded as FAILED.
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
        self._paths = TaskPaths(client, path, acl)
        self._client = client
        self._assign = assign
        self._attempts_max = attempts_max
        self._seat = SimpleMutex(client, path, "master", acl=acl)

    @property
    def is_master(self) -> bool:
        """Whether we are surely the master, at this moment."""
        return self._seat.is_held

    def add_listener(self, listener: GrantListener) -> None:
        """Call a function when we become master, and when we are no more.

        It must not block. What it raises goes to the event loop's exception handler.
        """
        self._seat.add_listener(listener)

    def remove_listener(self, listener: GrantListener) -> None:
        """Remove a listener, if it is there."""
        self._seat.remove_listener(listener)

    async def serve(self) -> None:
        """Become master once there is none, and assign tasks, until this is cancelled."""
        while True:
            try:
                async with self._seat as grant:
                    await self._paths.make()
                    assigner = Assigner(self._paths, grant, self._assign, self._attempts_max)
                    with closing(assigner):
                        await assigner.work()
            except GrantLostError:
                # If the session is over, the next request raises.
                continue


class _Registration(Holder):
    """A worker's own node, which masters watch."""

    def __init__(self, paths: TaskPaths, data: bytes) -> None:
        super().__init__(paths.client, paths.workers)
        self._line = Line(paths.client, paths.workers, [WORKER_KIND], data, paths.acl)

    def _new_place(self) -> Place:
        # Workers do not wait for each other.
        return self._line.new_place(WORKER_KIND, lambda before: None)
