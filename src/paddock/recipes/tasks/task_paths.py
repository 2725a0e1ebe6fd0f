"""The nodes of masters, workers and task clients, and their data.

    /base/master            the master: ephemeral
    /base/workers/…         a live worker: ephemeral, with its name and capacity
    /base/tasks/…-task-7    a task; its version counts the attempts that have failed
    /base/assign/worker/…   an assignment: a node with the name of the task
    /base/status/…-task-7   the progress or result of a task

A task is in `tasks` until its result is in `status`: one transaction ends a task and does both, so
there is one result for each.
"""

from __future__ import annotations

import asyncio
import enum
import json
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Final

from paddock.client.client import Client
from paddock.client.requests.arguments import checked_bytes
from paddock.client.states import Event
from paddock.client.transaction import Transaction
from paddock.errors import InvalidArgumentError, NoNodeError, NotEmptyError
from paddock.layouts import NUMBER, WORKER, in_order
from paddock.protocol.acl import ACL
from paddock.protocol.paths import child_path
from paddock.recipes.common.encoding import decode_object
from paddock.recipes.common.retry import Signal, check_recipe, make_node, read_node, retry

TASK_KIND: Final = "task-"
WORKER_KIND: Final = WORKER
# Leaves room for the paths in the largest request that servers accept.
_DATA_BYTES_MAX: Final = 1_000_000
# How much of a failure is recorded.
_REASON_BYTES_MAX: Final = 10_000
_TASK: Final = re.compile(TASK_KIND + NUMBER)


class TaskState(enum.StrEnum):
    """The state of a task."""

    #: A worker has reported progress.
    RUNNING = "running"
    #: An attempt has failed, and another follows.
    RETRYING = "retrying"
    DONE = "done"
    FAILED = "failed"

    @property
    def is_final(self) -> bool:
        """Whether it is the last state."""
        return self in (TaskState.DONE, TaskState.FAILED)


@dataclass(frozen=True, slots=True)
class TaskStatus:
    """The status of a task."""

    state: TaskState
    #: Its result, its progress, or the reason of a failure.
    data: bytes
    #: The name of the worker, if there was one.
    worker: str
    #: How many attempts have begun.
    attempts: int

    def encode(self) -> bytes:
        """Return the data of the node: a line of JSON, then the task's own data."""
        head = {"state": self.state.value, "worker": self.worker, "attempts": self.attempts}
        return json.dumps(head).encode() + b"\n" + self.data

    @classmethod
    def decode(cls, kept: bytes) -> TaskStatus:
        """Return the status in the data of a node; raise ValueError for anything else."""
        head, _, data = kept.partition(b"\n")
        fields = decode_object(head)
        try:
            return cls(TaskState(fields["state"]), data, fields["worker"], fields["attempts"])
        except (TypeError, KeyError) as error:
            raise ValueError(f"not the status of a task: {head!r}") from error


@dataclass(frozen=True, slots=True)
class WorkerLoad:
    """A live worker and its load."""

    #: The name of its node, which is unique.
    id: str
    #: What it calls itself.
    name: str
    #: How many tasks it has now.
    load: int
    #: How many it takes at a time.
    capacity: int


def encode_worker(name: str, capacity: int) -> bytes:
    """Return the data of a worker's node."""
    return json.dumps({"name": name, "capacity": capacity}).encode()


def decode_worker(kept: bytes) -> tuple[str, int]:
    """Return a worker's name and capacity; raise ValueError for other data."""
    fields = decode_object(kept)
    try:
        return str(fields["name"]), int(fields["capacity"])
    except (TypeError, KeyError) as error:
        raise ValueError(f"not a worker: {kept!r}") from error


def checked_size(name: str, data: bytes) -> bytes:
    """Return data that fit into a task; raise InvalidArgumentError for others."""
    if len(checked_bytes(name, data)) > _DATA_BYTES_MAX:
        raise InvalidArgumentError(f"{name}: {len(data)} bytes, the limit is {_DATA_BYTES_MAX}")
    return data


def reason_of(error: BaseException) -> bytes:
    """Return the text that records a failed attempt."""
    try:
        said = f"{type(error).__name__}: {error}"
    except Exception:
        # The error of a handler may fail to describe itself.
        said = type(error).__name__
    return said.encode(errors="backslashreplace")[:_REASON_BYTES_MAX]


def tasks_in_order(names: Sequence[str]) -> list[str]:
    """Return the names of tasks, in the order in which they were submitted."""
    return [found.string for found in in_order(names, _TASK)]


class TaskPaths:
    """The nodes below a base path."""

    def __init__(self, client: Client, path: str, acl: Sequence[ACL]) -> None:
        check_recipe(client, path, acl)
        self.client = client
        self.path = path
        self.acl = acl
        self.workers = child_path(path, "workers")
        self.tasks = child_path(path, "tasks")
        self.assign = child_path(path, "assign")
        self.status = child_path(path, "status")

    async def make(self) -> None:
        """Create the nodes that do not exist yet."""
        for path in (self.workers, self.tasks, self.assign, self.status):
            await make_node(self.client, path)

    async def remove_folder(self, worker: str) -> None:
        """Delete the node above a worker's assignments, unless there are some."""
        with suppress(NoNodeError, NotEmptyError):
            await retry(self.client, lambda: self.client.delete(child_path(self.assign, worker)))

    def assignment(self, worker: str, task: str) -> str:
        return f"{self.assign}/{worker}/{task}"

    async def read_status(self, task: str) -> TaskStatus | None:
        """Return the status of a task, or None."""
        path = child_path(self.status, task)
        found = await retry(self.client, lambda: read_node(self.client, path))
        return None if found is None else TaskStatus.decode(found.data)

    async def put_status(self, transaction: Transaction, task: str, status: TaskStatus) -> None:
        """Add the status of a task to a transaction.

        The transaction is refused if the status was created or deleted meanwhile.
        """
        path = child_path(self.status, task)
        if await retry(self.client, lambda: self.client.exists(path)) is None:
            transaction.create(path, status.encode(), acl=self.acl)
        else:
            transaction.set(path, status.encode())


class Listing:
    """The names of a node's children, read again after each change."""

    def __init__(self, client: Client, path: str, signal: Signal) -> None:
        self.path = path
        self.names: list[str] = []
        # Whether the node existed.
        self.is_there = False
        self._client = client
        self._signal = signal
        self._is_stale = True

    def __call__(self, event: Event) -> None:
        self._is_stale = True
        self._signal(event)

    def spoil(self) -> None:
        """Read it again, even without an event."""
        self._is_stale = True

    async def refresh(self) -> None:
        """Read it if it has changed; a missing node has no children."""
        if not self._is_stale:
            return
        self._is_stale = False
        try:
            self.names = await retry(
                self._client, lambda: self._client.children(self.path, watch=self)
            )
            self.is_there = True
        except NoNodeError:
            # A missing node has no watch, so it is read each time.
            self.names, self.is_there, self._is_stale = [], False, True
        except BaseException:
            self._is_stale = True
            raise

    def close(self) -> None:
        self._client.forget_watcher(self)


async def refresh_all(listings: Sequence[Listing]) -> None:
    """Refresh several at once."""
    await asyncio.gather(*(one.refresh() for one in listings))
