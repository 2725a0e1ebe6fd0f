"""The desk of a master: what it sees of tasks and workers, and what it does about it.

It keeps nothing that is not in the service. Whatever it does is fenced by the master's grant, and
says on what it is founded: if things are no more as they were seen, it is refused, and everything
is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Self, TypeAlias

from paddock.client.transaction import Transaction
from paddock.errors import (
    BadVersionError,
    ConnectionLostError,
    NodeExistsError,
    NoNodeError,
    RecipeError,
    TransactionFailedError,
)
from paddock.recipes.common.retry import Signal, child, until_answered
from paddock.recipes.locks.grant import Grant
from paddock.recipes.tasks.task_paths import (
    Listing,
    Office,
    TaskState,
    TaskStatus,
    WorkerLoad,
    decode_worker,
    refresh_all,
    tasks_in_order,
)

# Chooses one of the workers that have room, by its id.
Assign: TypeAlias = Callable[[bytes, Sequence[WorkerLoad]], str]


def least_loaded(data: bytes, workers: Sequence[WorkerLoad]) -> str:
    """Choose the worker that has the least to do."""
    return min(workers, key=lambda worker: (worker.load / worker.capacity, worker.id)).id


class Desk:
    """What a master has before it: the lists of tasks, workers and assignments."""

    def __init__(self, office: Office, grant: Grant, assign: Assign, attempts_max: int) -> None:
        self._office = office
        self._client = office.client
        self._grant = grant
        self._assign = assign
        self._attempts_max = attempts_max
        self._signal = Signal()
        self._tasks = Listing(office.client, office.tasks, self._signal)
        self._workers = Listing(office.client, office.workers, self._signal)
        self._folders = Listing(office.client, office.assign, self._signal)
        # What each worker that ever was has to do, by its id.
        self._assigned: dict[str, Listing] = {}
        # What each worker says about itself.
        self._known: dict[str, tuple[str, int]] = {}
        # Tasks that have an attempt left, and wait for a worker to have room.
        self._waiting: set[str] = set()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for listing in (self._tasks, self._workers, self._folders, *self._assigned.values()):
            listing.close()

    async def work(self) -> None:
        """Assign what is to be assigned, whenever something has changed."""
        # What the master before us has done last must not be missed.
        await until_answered(self._client, self._client.sync)
        while True:
            if await self._look() and await self._tidy() and await self._distribute():
                await self._signal.wait()

    async def _look(self) -> bool:
        await refresh_all((self._tasks, self._folders))
        # Not before: a worker registers, then it has a folder. So one that has a folder and is not
        # listed after it is dead, and not just new.
        await self._workers.refresh()
        for worker in self._folders.names:
            if worker not in self._assigned:
                path = child(self._office.assign, worker)
                self._assigned[worker] = Listing(self._client, path, self._signal)
        for worker in [*self._assigned]:
            if worker not in self._folders.names:
                self._assigned.pop(worker).close()
        await refresh_all([*self._assigned.values()])
        for worker in self._living():
            if worker not in self._known:
                await self._meet(worker)
        return True

    async def _meet(self, worker: str) -> None:
        path = child(self._office.workers, worker)
        try:
            data, _ = await until_answered(self._client, lambda: self._client.get(path))
            self._known[worker] = decode_worker(data)
        except (NoNodeError, ValueError):
            # It has gone again, or it is none.
            pass

    def _living(self) -> list[str]:
        return [worker for worker in self._assigned if worker in self._workers.names]

    async def _tidy(self) -> bool:
        """Take their tasks from workers that have died; tell whether nothing was in the way."""
        for worker, assigned in [*self._assigned.items()]:
            if worker in self._workers.names:
                continue
            for task in tasks_in_order(assigned.names):
                if not await self._take_back(worker, task):
                    return False
            await self._remove(worker)
        return True

    async def _take_back(self, worker: str, task: str) -> bool:
        transaction = self._grant.guard().delete(self._office.assignment(worker, task))
        path = child(self._office.tasks, task)
        try:
            data, stat = await until_answered(self._client, lambda: self._client.get(path))
        except NoNodeError:
            # Somebody has deleted it by hand, and so the assignment is of no use.
            return await self._carry_out(transaction)
        name = self._known.get(worker, ("", 0))[0]
        transaction.set(path, data, version=stat.version)
        status = TaskStatus(TaskState.RETRYING, b"its worker is gone", name, stat.version + 1)
        await self._office.put_status(transaction, task, status)
        return await self._carry_out(transaction)

    async def _remove(self, worker: str) -> None:
        self._known.pop(worker, None)
        await self._office.remove_folder(worker)
        self._folders.spoil()

    async def _distribute(self) -> bool:
        """Assign tasks as long as workers have room; tell whether nothing was in the way."""
        taken = {task for listing in self._assigned.values() for task in listing.names}
        free = [task for task in tasks_in_order(self._tasks.names) if task not in taken]
        # What was assigned meanwhile, by whomever, may have failed.
        self._waiting.intersection_update(free)
        for task in free:
            if task in self._waiting and not self._with_room():
                continue
            if not await self._give_away(task):
                return False
        return True

    async def _give_away(self, task: str) -> bool:
        path = child(self._office.tasks, task)
        with_room = self._with_room()
        try:
            data, stat = await until_answered(self._client, lambda: self._client.get(path))
        except NoNodeError:
            self._tasks.spoil()
            return True
        transaction = self._grant.guard()
        if stat.version >= self._attempts_max:
            last = await self._office.read_status(task)
            reason, name = (b"", "") if last is None else (last.data, last.worker)
            transaction.delete(path, version=stat.version)
            status = TaskStatus(TaskState.FAILED, reason, name, stat.version)
            await self._office.put_status(transaction, task, status)
            return await self._carry_out(transaction)
        if not with_room:
            self._waiting.add(task)
            return True
        self._waiting.discard(task)
        chosen = self._assign(data, with_room)
        if chosen not in {worker.id for worker in with_room}:
            raise RecipeError(f"assign: {chosen!r} is not the id of a worker that has room")
        # Not to a worker that has died, nor a task that is done, whatever we have seen last.
        transaction.check(child(self._office.workers, chosen))
        transaction.check(path, version=stat.version)
        transaction.create(self._office.assignment(chosen, task), acl=self._office.acl)
        is_done = await self._carry_out(transaction)
        if is_done:
            self._assigned[chosen].names.append(task)
        return is_done

    def _with_room(self) -> list[WorkerLoad]:
        found = []
        for worker in self._living():
            if worker in self._known:
                name, capacity = self._known[worker]
                load = len(self._assigned[worker].names)
                if load < capacity:
                    found.append(WorkerLoad(worker, name, load, capacity))
        return found

    async def _carry_out(self, transaction: Transaction) -> bool:
        """Commit it; if that is not as we thought, everything is read again."""
        if await has_happened(transaction):
            return True
        await until_answered(self._client, self._client.sync)
        for listing in (self._tasks, self._workers, self._folders, *self._assigned.values()):
            listing.spoil()
        return False


async def has_happened(transaction: Transaction) -> bool:
    """Commit a transaction; False: it was refused as things are not as we thought, or was lost."""
    try:
        await transaction.commit()
    except ConnectionLostError:
        return False
    except TransactionFailedError as failed:
        if isinstance(failed.cause, NoNodeError | NodeExistsError | BadVersionError):
            return False
        raise
    return True
