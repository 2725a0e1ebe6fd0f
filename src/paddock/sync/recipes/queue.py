"""The blocking twin of `paddock.recipes.queue.queue`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL
from paddock.protocol.acl import OPEN as OPEN_TO_ALL
from paddock.recipes.queue.queue import DeadLetter, QueueEntry
from paddock.recipes.queue.queue import Queue as AsyncQueue
from paddock.recipes.queue.queue import QueueItem as AsyncQueueItem
from paddock.sync.bridge import Twin, bridge_of
from paddock.sync.client import Client
from paddock.sync.scopes import Scope
from paddock.sync.transaction import Transaction
from paddock.sync.wrapping import WrappedValue


class Queue(Twin[AsyncQueue]):
    """Items that producers put and consumers take, each of them until somebody is done with it.

        queue = Queue(client, "/jobs")
        first = queue.put(b"send the letters", priority=5)
        with queue.take() as item:
            print(item.id == first, item.attempts)  # True 1

    With `attempts_max`, whoever comes upon an item that was taken so often before moves it to the
    dead letters. It is for each consumer to say; those of one queue had better agree.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        attempts_max: int | None = None,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        bridge = bridge_of("client", client)
        super().__init__(
            bridge,
            bridge.run(AsyncQueue, client._inner, path, attempts_max=attempts_max, acl=acl),
            client,
        )

    def put(self, data: bytes, *, priority: int = 100, delay: float = 0.0) -> str:
        """Put an item into the queue; give its id.

            queue.put(b"now, before others", priority=1)
            queue.put(b"in a minute, at the earliest", delay=60)

        A lower priority number comes first. The delay is in seconds, by the service's clock.
        Raises SessionExpiredError, and then nobody knows whether it was put.
        """
        return self._bridge.call(self._inner.put, data, priority=priority, delay=delay)

    def take(self) -> Scope[QueueItem]:
        """Wait for an item, and have it for the length of a scope.

            with queue.take() as item:
                print(item.data)

        At its end the item is acknowledged. If it is left with an error, the item is given back.
        When the item is lost, its body hears of it when it leaves, and GrantLostError is raised:
        another consumer has it or will have it. That is raised, too, if nobody knows whether the
        acknowledgement came in time.
        """
        return Scope(
            self._bridge.portal,
            WrappedValue(
                self._bridge.run(self._inner.take), lambda _one: QueueItem._of(self._bridge, _one)
            ),
        )

    def try_take(self) -> Scope[QueueItem | None]:
        """Have an item for the length of a scope, as `take` does, or None if none is free now.

            with queue.try_take() as item:
                print("nothing is free" if item is None else item.data)

        It waits for nobody.
        """
        return Scope(
            self._bridge.portal,
            WrappedValue(
                self._bridge.run(self._inner.try_take),
                lambda _one: None if _one is None else QueueItem._of(self._bridge, _one),
            ),
        )

    def size(self) -> int:
        """Give how many items there are: free, taken and delayed ones, without dead letters."""
        return self._bridge.call(self._inner.size)

    def items(self) -> list[QueueEntry]:
        """Give all items that there are, in the order in which they are to be taken.

        It reads every one of them: for people who look at a queue, and for tests.
        """
        return self._bridge.call(self._inner.items)

    def dead_letters(self) -> list[DeadLetter]:
        """Give the items that were taken too often; deleting its node is the end of one."""
        return self._bridge.call(self._inner.dead_letters)

    def put_back(self, letter_id: str) -> str:
        """Put a dead letter into the queue again, behind what is there; give its new id.

            for letter in queue.dead_letters():
                queue.put_back(letter.id)

        Its attempts are counted anew. Raises NoNodeError if there is no such letter, or no more.
        """
        return self._bridge.call(self._inner.put_back, letter_id)


class QueueItem(Twin[AsyncQueueItem]):
    """An item that we have taken, and have until the end of its scope or until it is lost."""

    @property
    def id(self) -> str:
        """What `put` has returned."""
        return self._inner.id

    @property
    def data(self) -> bytes:
        return self._inner.data

    @property
    def priority(self) -> int:
        return self._inner.priority

    @property
    def attempts(self) -> int:
        """How often it has been taken, this time included."""
        return self._inner.attempts

    @property
    def token(self) -> int:
        """The fencing token: it is larger for whoever takes the item later."""
        return self._inner.token

    @property
    def is_held(self) -> bool:
        """Whether it is surely ours, at this moment."""
        return self._inner.is_held

    def guard(self) -> Transaction:
        """Begin a transaction that only succeeds while the item is ours, by this very attempt.

            with item.guard() as transaction:
                transaction.set("/result", b"done")

        It begins with two checks, whose results are None. Raises GrantLostError if the item is lost
        already; the commit raises TransactionFailedError if the service finds that it is.
        """
        return Transaction._of(self._bridge, self._bridge.run(self._inner.guard))
