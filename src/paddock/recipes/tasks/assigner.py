"""The assigner: gives tasks to workers, on behalf of the present master.

It keeps no state that is not in the service. All its writes are fenced by the master's grant and
check the versions they are based on: a write that is refused has everything read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from typing import TypeAlias

from paddock.client.transaction import Transaction
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    RecipeError,
    TransactionFailedError,
)
from paddock.protocol.paths import child_path
from paddock.recipes.common.retry import Signal, retry
from paddock.recipes.locks.grant import Grant
from paddock.recipes.tasks.task_paths import (
    Listing,
    TaskPaths,
    TaskState,
    TaskStatus,
    WorkerLoad,
    decode_worker,
    refresh_all,
    tasks_in_order,
)

# Returns the id of a worker for a task, of those with free capacity.
Assign: TypeAlias = Callable[[bytes, Sequence[WorkerLoad]], str]


def least_loaded(data: bytes, workers: Sequence[WorkerLoad]) -> str:
    """Return the worker with the lowest load."""
    return min(workers, key=lambda worker: (worker.load / worker.capacity, worker.id)).id


class Assigner:
    """The lists of tasks, workers and assignments, and what follows from them."""

    def __init__(self, paths: TaskPaths, grant: Grant, assign: Assign, attempts_max: int) -> None:
        self._paths = paths
        self._client = paths.client
        self._grant = grant
        self._assign = assign
        self._attempts_max = attempts_max
        self._signal = Signal()
        self._tasks = Listing(paths.client, paths.tasks, self._signal)
        self._workers = Listing(paths.client, paths.workers, self._signal)
        self._folders = Listing(paths.client, paths.assign, self._signal)
        # The assignments of each worker, alive or dead, by its id.
        self._assigned: dict[str, Listing] = {}
        # The name and capacity of each worker.
        self._known: dict[str, tuple[str, int]] = {}
        # Tasks with an attempt left, which wait for free capacity.
        self._waiting: set[str] = set()

    def close(self) -> None:
        """Remove the watches."""
        for listing in self._listings():
            listing.close()

    def _listings(self) -> list[Listing]:
        return [self._tasks, self._workers, self._folders, *self._assigned.values()]

    async def work(self) -> None:
        """Assign tasks, whenever something has changed."""
        # The last writes of the master before us must not be missed.
        await retry(self._client, self._client.sync)
        while True:
            await self._look()
            if await self._tidy() and await self._distribute():
                await self._signal.wait()

    async def _look(self) -> None:
        await refresh_all((self._tasks, self._folders))
        # After the folders: a worker registers before it has a folder. So a worker with a folder
        # that is not listed is dead, and not just new.
        await self._workers.refresh()
        for worker in self._folders.names:
            if worker not in self._assigned:
                path = child_path(self._paths.assign, worker)
                self._assigned[worker] = Listing(self._client, path, self._signal)
        for worker in [*self._assigned]:
            if worker not in self._folders.names:
                self._assigned.pop(worker).close()
        await refresh_all([*self._assigned.values()])
        for worker in self._assigned:
            if worker in self._workers.names and worker not in self._known:
                await self._meet(worker)

    async def _meet(self, worker: str) -> None:
        path = child_path(self._paths.workers, worker)
        # It may be gone again, or no worker.
        with suppress(NoNodeError, ValueError):
            data, _ = await retry(self._client, lambda: self._client.get(path))
            self._known[worker] = decode_worker(data)

    async def _tidy(self) -> bool:
        """Take back the tasks of dead workers; return False if a write was refused."""
        for worker, assigned in [*self._assigned.items()]:
            if worker in self._workers.names:
                continue
            for task in tasks_in_order(assigned.names):
                if not await self._take_back(worker, task):
                    return False
            await self._remove(worker)
        return True

    async def _take_back(self, worker: str, task: str) -> bool:
        transaction = self._grant.guard().delete(self._paths.assignment(worker, task))
        path = child_path(self._paths.tasks, task)
        try:
            data, stat = await retry(self._client, lambda: self._client.get(path))
        except NoNodeError:
            # The task was deleted by hand.
            return await self._carry_out(transaction)
        name = self._known.get(worker, ("", 0))[0]
        transaction.set(path, data, version=stat.version)
        status = TaskStatus(TaskState.RETRYING, b"its worker is gone", name, stat.version + 1)
        await self._paths.put_status(transaction, task, status)
        return await self._carry_out(transaction)

    async def _remove(self, worker: str) -> None:
        self._known.pop(worker, None)
        await self._paths.remove_folder(worker)
        self._folders.spoil()

    async def _distribute(self) -> bool:
        """Assign tasks while workers have free capacity; return False if a write was refused."""
        taken = {task for listing in self._assigned.values() for task in listing.names}
        free = [task for task in tasks_in_order(self._tasks.names) if task not in taken]
        # A task that was assigned meanwhile may have failed.
        self._waiting.intersection_update(free)
        for task in free:
            if task in self._waiting and not self._with_capacity():
                continue
            if not await self._give_away(task):
                return False
        return True

    async def _give_away(self, task: str) -> bool:
        path = child_path(self._paths.tasks, task)
        with_capacity = self._with_capacity()
        try:
            data, stat = await retry(self._client, lambda: self._client.get(path))
        except NoNodeError:
            self._tasks.spoil()
            return True
        transaction = self._grant.guard()
        if stat.version >= self._attempts_max:
            last = await self._paths.read_status(task)
            reason, name = (b"", "") if last is None else (last.data, last.worker)
            transaction.delete(path, version=stat.version)
            status = TaskStatus(TaskState.FAILED, reason, name, stat.version)
            await self._paths.put_status(transaction, task, status)
            return await self._carry_out(transaction)
        if not with_capacity:
            self._waiting.add(task)
            return True
        self._waiting.discard(task)
        chosen = self._assign(data, with_capacity)
        if chosen not in {worker.id for worker in with_capacity}:
            raise RecipeError(f"assign: {chosen!r} is not the id of a worker with free capacity")
        # Not to a dead worker, nor a task that is done, whatever we have read.
        transaction.check(child_path(self._paths.workers, chosen))
        transaction.check(path, version=stat.version)
        transaction.create(self._paths.assignment(chosen, task), acl=self._paths.acl)
        is_done = await self._carry_out(transaction)
        if is_done:
            self._assigned[chosen].names.append(task)
        return is_done

    def _with_capacity(self) -> list[WorkerLoad]:
        loads = [
            WorkerLoad(worker, self._known[worker][0], len(assigned.names), self._known[worker][1])
            for worker, assigned in self._assigned.items()
            if worker in self._workers.names and worker in self._known
        ]
        return [one for one in loads if one.load < one.capacity]

    async def _carry_out(self, transaction: Transaction) -> bool:
        """Commit it; if it is refused, everything is read again."""
        if await has_happened(transaction):
            return True
        await retry(self._client, self._client.sync)
        for listing in self._listings():
            listing.spoil()
        return False


async def has_happened(transaction: Transaction) -> bool:
    """Commit a transaction; return False if it was refused by a newer version, or lost."""
    try:
        await transaction.commit()
    except ConnectionLostError:
        return False
    except TransactionFailedError as failed:
        if isinstance(failed.cause, NoNodeError | NodeExistsError | BadVersionError):
            return False
        raise
    return True
