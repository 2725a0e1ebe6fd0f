"""The blocking twin of `paddock.recipes.queue`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock import recipes
from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes import DeadLetter, QueueEntry
from paddock.sync.bridge import Twin
from paddock.sync.client import Client, Transaction
from paddock.sync.scopes import Scope


class Queue(Twin[recipes.Queue]):
    """Items that producers put and consumers take.

        queue = Queue(client, "/jobs")
        first = queue.put(b"send the letters", priority=5)
        with queue.take() as item:
            print(item.id == first, item.attempts)  # True 1

    With `attempts_max`, a consumer moves an item that was taken so often to the dead letters. All
    consumers of a queue should use the same number.
    """

    def __init__(
        self,
        client: Client,
        path: str,
        *,
        attempts_max: int | None = None,
        acl: Sequence[ACL] = OPEN_TO_ALL,
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: recipes.Queue(client._inner, path, attempts_max=attempts_max, acl=acl),
        )

    def put(self, data: bytes, *, priority: int = 100, delay: float = 0.0) -> str:
        """Put an item into the queue; return its id.

            queue.put(b"now, before others", priority=1)
            queue.put(b"in a minute, at the earliest", delay=60)

        A lower priority number comes first. The delay is in seconds, by the service's clock.
        After a SessionExpiredError it may have been put, or not.
        """
        return self._bridge.call(self._inner.put, data, priority=priority, delay=delay)

    def take(self) -> Scope[QueueItem]:
        """Wait for an item, and take it for the length of a scope.

            with queue.take() as item:
                print(item.data)

        At its end the item is acknowledged. If it is left with an error, the item is given back.
        When the item is lost, its body hears of it when it leaves, and GrantLostError is raised:
        another consumer gets it. That is also raised if the outcome of the acknowledgement is
        unknown.
        """
        return Scope(
            self._bridge.portal,
            self._bridge.run(self._inner.take),
            lambda _one: QueueItem._of(self._bridge, _one),
        )

    def try_take(self) -> Scope[QueueItem | None]:
        """Take an item for the length of a scope, as `take` does, or None if none is free.

            with queue.try_take() as item:
                print("nothing is free" if item is None else item.data)

        It does not wait.
        """
        return Scope(
            self._bridge.portal,
            self._bridge.run(self._inner.try_take),
            lambda _one: None if _one is None else QueueItem._of(self._bridge, _one),
        )

    def size(self) -> int:
        """Return the number of items: free, taken and delayed ones, without dead letters."""
        return self._bridge.call(self._inner.size)

    def items(self) -> list[QueueEntry]:
        """Return all items, in the order in which they are taken.

        It reads each of them: for inspection and for tests.
        """
        return self._bridge.call(self._inner.items)

    def dead_letters(self) -> list[DeadLetter]:
        """Return the items that were taken too often; delete the node of one to drop it."""
        return self._bridge.call(self._inner.dead_letters)

    def put_back(self, letter_id: str) -> str:
        """Put a dead letter into the queue again, at the end; return its new id.

            for letter in queue.dead_letters():
                queue.put_back(letter.id)

        Its attempts are counted anew. Raises NoNodeError if there is no such letter.
        """
        return self._bridge.call(self._inner.put_back, letter_id)


class QueueItem(Twin[recipes.QueueItem]):
    """An item that we have until the end of its scope, or until it is lost."""

    @property
    def id(self) -> str:
        """The id that `put` has returned."""
        return self._inner.id

    @property
    def data(self) -> bytes:
        return self._inner.data

    @property
    def priority(self) -> int:
        return self._inner.priority

    @property
    def attempts(self) -> int:
        """How often it was taken, this time included."""
        return self._inner.attempts

    @property
    def token(self) -> int:
        """The fencing token: it is larger for every later consumer of the item."""
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
