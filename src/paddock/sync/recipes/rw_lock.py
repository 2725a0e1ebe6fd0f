"""The blocking twin of `paddock.recipes.locks.rw_lock`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.locks.rw_lock import ReadLock as AsyncReadLock
from paddock.recipes.locks.rw_lock import ReadWriteLock as AsyncReadWriteLock
from paddock.recipes.locks.rw_lock import WriteLock as AsyncWriteLock
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.recipes.holder import Holder


class ReadLock(Holder):
    """The side of a read-write lock for readers."""

    _inner: AsyncReadLock


class ReadWriteLock(Twin[AsyncReadWriteLock]):
    """A lock that many can hold to read, or one to write.

        lock = ReadWriteLock(client, "/locks/catalogue", data=b"worker 7")
        with lock.write:
            reading = lock.read.acquire()
        print(reading.is_held)  # True
        reading.release()

    It is one contender, with one place for each side. Others find `data` there.
    """

    def __init__(
        self, client: Client, path: str, *, data: bytes = b"", acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client",
            client,
            lambda bridge: AsyncReadWriteLock(client._inner, path, data=data, acl=acl),
        )

    @property
    def read(self) -> ReadLock:
        """Held by many, as long as nobody holds the other."""
        return ReadLock._of(self._bridge, self._inner.read)

    @property
    def write(self) -> WriteLock:
        """Held by one, as long as nobody else holds either."""
        return WriteLock._of(self._bridge, self._inner.write)


class WriteLock(Holder):
    """The side of a read-write lock for writers."""

    _inner: AsyncWriteLock
