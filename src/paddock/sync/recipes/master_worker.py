"""The blocking twin of `paddock.recipes.tasks.master_worker`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.locks.grant import GrantListener
from paddock.recipes.tasks.assigner import Assign, least_loaded
from paddock.recipes.tasks.master_worker import Master as AsyncMaster
from paddock.recipes.tasks.master_worker import Task as AsyncTask
from paddock.recipes.tasks.master_worker import TaskClient as AsyncTaskClient
from paddock.recipes.tasks.master_worker import Worker as AsyncWorker
from paddock.recipes.tasks.task_paths import TaskStatus
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Master(Twin[AsyncMaster]):
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
        bridge = bridge_of("client", client)
        super().__init__(
            bridge,
            bridge.run(
                AsyncMaster, client._inner, path, assign=assign, attempts_max=attempts_max, acl=acl
            ),
            client,
        )

    @property
    def is_master(self) -> bool:
        """Whether we surely are the master, at this moment."""
        return self._inner.is_master

    def add_listener(self, listener: GrantListener) -> None:
        """Have something called when we become master, and when we are it no more.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: GrantListener) -> None:
        """Call it no more; that it was never called is fine."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))

    def serve(self) -> None:
        """Become master as soon as there is none, and assign tasks, until this is given up."""
        self._bridge.call(self._inner.serve)


class Task(Twin[AsyncTask]):
    """Something to be done, as a worker's handler gets it."""

    @property
    def name(self) -> str:
        """What it is called."""
        return self._inner.name

    @property
    def data(self) -> bytes:
        """What is to be done."""
        return self._inner.data

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1 on."""
        return self._inner.attempt

    def report(self, data: bytes) -> None:
        """Tell whoever follows the task how far it is."""
        self._bridge.call(self._inner.report, data)


class TaskClient(Twin[AsyncTaskClient]):
    """Submits tasks, and waits for their results."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        bridge = bridge_of("client", client)
        super().__init__(bridge, bridge.run(AsyncTaskClient, client._inner, path, acl=acl), client)

    def submit(self, data: bytes) -> str:
        """Submit a task; give its name, by which it is asked for.

        A lost reply is no matter. If it is given up, it may have been submitted.
        """
        return self._bridge.call(self._inner.submit, data)

    def result(self, task: str) -> TaskStatus:
        """Wait for the result of a task: what a worker has made of it, or that it has failed.

        Raises RecipeError if there is no such task.
        """
        return self._bridge.call(self._inner.result, task)

    def progress(self, task: str) -> Stream[TaskStatus]:
        """Give everything that is said of a task, from now on, up to its result.

            for status in tasks.progress(task):
                print(status.state)  # done

        What follows quickly on each other may come as one. Raises RecipeError if there is no such
        task.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.progress, task))

    def forget(self, task: str) -> None:
        """Delete the result of a task, when nobody wants it any more; that it is gone is fine."""
        self._bridge.call(self._inner.forget, task)

    def run(self, data: bytes) -> TaskStatus:
        """Submit a task, wait for its result, and forget it.

        If it is given up, the task is done nevertheless, and its result is kept.
        """
        return self._bridge.call(self._inner.run, data)


class Worker(Twin[AsyncWorker]):
    """Does what masters assign to it.

    `handler` is called with each task, and gives its result; what it raises makes the attempt a
    failed one. `name` is what others call it, and `capacity` how many tasks it takes at a time.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        handler: Callable[[Task], bytes],
        *,
        name: str = "",
        capacity: int = 1,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        bridge = bridge_of("client", client)
        super().__init__(
            bridge,
            bridge.run(
                AsyncWorker,
                client._inner,
                path,
                bridge.handlers.relay(handler, lambda _0: (Task._of(bridge, _0),)),
                name=name,
                capacity=capacity,
                acl=acl,
            ),
            client,
        )

    @property
    def is_registered(self) -> bool:
        """Whether masters see us, for all we know."""
        return self._inner.is_registered

    def serve(self) -> None:
        """Register, and do what is assigned, until this is given up or the session is over."""
        self._bridge.call(self._inner.serve)
