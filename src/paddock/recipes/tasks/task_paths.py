"""Where a master, its workers and their clients keep their things, and what is in them.

    /base/master            whoever is master: ephemeral
    /base/workers/…         one for each worker that lives: ephemeral, with its name and capacity
    /base/tasks/…-task-7    what is to be done; its version counts the attempts that have failed
    /base/assign/worker/…   which worker is to do it: a node with the name of the task
    /base/status/…-task-7   how far it is, and its result

A task is in `tasks` until its result is in `status`: what ends a task does both in one transaction,
so there is one result for each.
"""

from __future__ import annotations

import asyncio
import enum
import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_bytes
from paddock.client.states import Event
from paddock.client.transaction import Transaction
from paddock.errors import InvalidArgumentError, NoNodeError, NotEmptyError
from paddock.protocol.acl import ACL
from paddock.recipes.common.retry import Signal, child, make_node, until_answered

TASK_KIND: Final = "task-"
WORKER_KIND: Final = "worker-"
# Room for the rest of the largest request that servers take, which moves a task and its status.
_DATA_BYTES_MAX: Final = 1_000_000
# So much is kept of why an attempt has failed.
_REASON_BYTES_MAX: Final = 10_000
_NUMBER: Final = re.compile(rf"{TASK_KIND}(-?\d+)$")


class TaskState(enum.Enum):
    """How far a task is."""

    #: A worker has said something about its progress.
    RUNNING = "running"
    #: An attempt has failed, and there will be another one.
    RETRYING = "retrying"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Tell whether nothing will come after it."""
        return self in (TaskState.DONE, TaskState.FAILED)

    def __str__(self) -> str:
        return self.value


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """What is known of a task."""

    state: TaskState
    #: Its result, or what was said of its progress, or what went wrong.
    data: bytes
    #: The name of the worker that it comes from, if it comes from one.
    worker: str
    #: How many attempts have begun.
    attempts: int

    def encode(self) -> bytes:
        """Give it as it is kept: a line of JSON, and the data as they are."""
        head = {"state": self.state.value, "worker": self.worker, "attempts": self.attempts}
        return json.dumps(head).encode() + b"\n" + self.data

    @classmethod
    def decode(cls, kept: bytes) -> TaskStatus:
        """Read what `encode` has written; raises ValueError for anything else."""
        head, _, data = kept.partition(b"\n")
        fields = json.loads(head)
        try:
            return cls(TaskState(fields["state"]), data, fields["worker"], fields["attempts"])
        except (TypeError, KeyError) as error:
            raise ValueError(f"not the status of a task: {head!r}") from error


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """A worker that lives, and how much it has to do."""

    #: The name of its node, which no other worker ever has.
    id: str
    #: What it calls itself.
    name: str
    #: How many tasks it has.
    load: int
    #: How many it takes at a time.
    capacity: int


def encode_worker(name: str, capacity: int) -> bytes:
    """Give what a worker says about itself."""
    return json.dumps({"name": name, "capacity": capacity}).encode()


def decode_worker(kept: bytes) -> tuple[str, int]:
    """Give a worker's name and capacity; raises ValueError for what no worker has written."""
    fields = json.loads(kept)
    try:
        return str(fields["name"]), int(fields["capacity"])
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a worker: {kept!r}") from error


def checked_size(name: str, data: bytes) -> bytes:
    """Give data that can be kept for a task, and moved; raises InvalidArgumentError."""
    if len(checked_bytes(name, data)) > _DATA_BYTES_MAX:
        raise InvalidArgumentError(f"{name}: {len(data)} bytes, and a task has {_DATA_BYTES_MAX}")
    return data


def checked_result(result: bytes) -> bytes:
    """Give what a handler has made of a task."""
    return checked_size("result", result)


def reason_of(error: BaseException) -> bytes:
    """Give what is said of an attempt that has failed."""
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:
        # Somebody else's error may not even be able to say what it is.
        said = type(error).__name__
    return said.encode(errors="backslashreplace")[:_REASON_BYTES_MAX]


def tasks_in_order(names: Sequence[str]) -> list[str]:
    """Give those of some names that are tasks, in the order in which they were submitted."""
    numbered = [(int(found[1]), name) for name in names if (found := _NUMBER.search(name))]
    return [name for _, name in sorted(numbered)]


class Office:
    """The nodes below a base path."""

    def __init__(self, client: Client, path: str, acl: Sequence[ACL]) -> None:
        self.client = client
        self.path = path
        self.acl = acl
        self.workers = child(path, "workers")
        self.tasks = child(path, "tasks")
        self.assign = child(path, "assign")
        self.status = child(path, "status")

    async def make(self) -> None:
        """Make what is not there yet."""
        for path in (self.workers, self.tasks, self.assign, self.status):
            await make_node(self.client, path)

    async def remove_folder(self, worker: str) -> None:
        """Delete what holds a worker's assignments, unless there are some."""

        async def delete() -> None:
            try:
                await self.client.delete(child(self.assign, worker))
            except (NoNodeError, NotEmptyError):
                # Somebody was faster, or has assigned something.
                pass

        await until_answered(self.client, delete)

    def assignment(self, worker: str, task: str) -> str:
        return f"{self.assign}/{worker}/{task}"

    async def read_status(self, task: str) -> TaskStatus | None:
        """Give what is known of a task, if anything is."""
        try:
            kept, _ = await until_answered(
                self.client, lambda: self.client.get(child(self.status, task))
            )
        except NoNodeError:
            return None
        return TaskStatus.decode(kept)

    async def put_status(self, transaction: Transaction, task: str, status: TaskStatus) -> None:
        """Have a transaction say something of a task.

        It fails if there was a status and is none, or the other way round; then it is to be made
        again.
        """
        path = child(self.status, task)
        if await until_answered(self.client, lambda: self.client.exists(path)) is None:
            transaction.create(path, status.encode(), acl=self.acl)
        else:
            transaction.set(path, status.encode())


class Listing:
    """The names of a node's children, read again when they have changed."""

    def __init__(self, client: Client, path: str, signal: Signal) -> None:
        self.path = path
        self.names: list[str] = []
        # Whether the node was there.
        self.is_there = False
        self._client = client
        self._signal = signal
        self._is_stale = True

    def __call__(self, event: Event) -> None:
        self._is_stale = True
        self._signal(event)

    def spoil(self) -> None:
        """Have it read again, whatever we have been told."""
        self._is_stale = True

    async def refresh(self) -> None:
        """Read it if it has changed; without the node there are no names."""
        if not self._is_stale:
            return
        self._is_stale = False
        try:
            self.names = await until_answered(
                self._client, lambda: self._client.children(self.path, watch=self)
            )
            self.is_there = True
        except NoNodeError:
            # There is no watch on what is not there, so it is read each time.
            self.names, self.is_there, self._is_stale = [], False, True
        except BaseException:
            self._is_stale = True
            raise

    def close(self) -> None:
        self._client.forget_watcher(self)


async def refresh_all(listings: Sequence[Listing]) -> None:
    """Refresh several, together."""
    await asyncio.gather(*(one.refresh() for one in listings))
