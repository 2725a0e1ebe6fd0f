"""The blocking twin of `paddock.recipes.tasks`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from paddock import recipes
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes import Assign, GrantListener, TaskStatus, least_loaded
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.streams import Stream


class Master(Twin[recipes.Master]):
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
        self._make(
            "client",
            client,
            lambda bridge: recipes.Master(
                client._inner, path, assign=assign, attempts_max=attempts_max, acl=acl
            ),
        )

    @property
    def is_master(self) -> bool:
        """Whether we are surely the master, at this moment."""
        return self._inner.is_master

    def add_listener(self, listener: GrantListener) -> None:
        """Call a function when we become master, and when we are no more.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: GrantListener) -> None:
        """Remove a listener, if it is there."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))

    def serve(self) -> None:
        """Become master once there is none, and assign tasks, until this is given up."""
        self._bridge.call(self._inner.serve)


class Task(Twin[recipes.Task]):
    """A task, as a worker's handler gets it."""

    @property
    def name(self) -> str:
        """The name of its node."""
        return self._inner.name

    @property
    def data(self) -> bytes:
        """The data that were submitted."""
        return self._inner.data

    @property
    def attempt(self) -> int:
        """Which attempt this is, from 1 on."""
        return self._inner.attempt

    def report(self, data: bytes) -> None:
        """Record progress, for clients that follow the task."""
        self._bridge.call(self._inner.report, data)


class TaskClient(Twin[recipes.TaskClient]):
    """Submits tasks, and waits for their results."""

    def __init__(self, client: Client, path: str, *, acl: Sequence[ACL] = OPEN_TO_ALL) -> None:
        self._make(
            "client", client, lambda bridge: recipes.TaskClient(client._inner, path, acl=acl)
        )

    def submit(self, data: bytes) -> str:
        """Submit a task, exactly once; return its name.

        If it is given up, it may have been submitted.
        """
        return self._bridge.call(self._inner.submit, data)

    def result(self, task: str) -> TaskStatus:
        """Wait for the result of a task, or its failure.

        Raises RecipeError if there is no such task.
        """
        return self._bridge.call(self._inner.result, task)

    def progress(self, task: str) -> Stream[TaskStatus]:
        """Yield the status of a task at every change, up to its result.

            for status in tasks.progress(task):
                print(status.state)  # done

        Intermediate ones may be left out. Raises RecipeError if there is no such task.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.progress, task))

    def forget(self, task: str) -> None:
        """Delete the result of a task, if it exists."""
        self._bridge.call(self._inner.forget, task)

    def run(self, data: bytes) -> TaskStatus:
        """Submit a task, wait for its result, and delete it.

        If it is given up, the task is done nevertheless, and its result stays.
        """
        return self._bridge.call(self._inner.run, data)


class Worker(Twin[recipes.Worker]):
    """Does the tasks that masters assign to it.

    `handler` is called with each task, and returns its result; an error makes the attempt a failed
    one. `name` is for people, and `capacity` is how many tasks it does at a time.
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
        self._make(
            "client",
            client,
            lambda bridge: recipes.Worker(
                client._inner,
                path,
                bridge.handlers.relay(handler, lambda _0: (Task._of(bridge, _0),)),
                name=name,
                capacity=capacity,
                acl=acl,
            ),
        )

    @property
    def is_registered(self) -> bool:
        """Whether we are surely registered, at this moment."""
        return self._inner.is_registered

    def serve(self) -> None:
        """Register, and do tasks, until this is given up or the session is over."""
        self._bridge.call(self._inner.serve)
