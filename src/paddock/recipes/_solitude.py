"""What somebody knows who was alone in a line, left it, and comes back.

The service numbers the nodes under a parent as they are created. So whoever was alone, has left and
gets the very next number is alone again: nobody else has come meanwhile. A lock that nobody
contends for then costs two requests, a create and a delete, and need not ask who else is there.

Numbers begin anew with a new parent, so all that holds for one parent only. That is watched: the
service tells of its end before it answers a create under the next one. Whatever else is told, such
as a lost connection, may hide that, and what was known is forgotten.
"""

from __future__ import annotations

import asyncio
import weakref

from paddock.client.client import Client
from paddock.client.states import Event
from paddock.client.watches import Watcher
from paddock.protocol.records import Stat


class Solitude:
    """Whether one contender is surely alone in a line."""

    def __init__(self, client: Client, path: str) -> None:
        self._client = client
        self._path = path
        # The number that we had when we were alone, and whether our node has surely gone.
        self._number: int | None = None
        self._has_left = False
        # Whether the parent has been watched from before that node went until now; and what we
        # have asked to have it watched.
        self._is_watched = False
        self._asked: asyncio.Future[Stat | None] | None = None
        self._watcher = _forgetting(self)
        # Many lines may come and go while their client stays.
        weakref.finalize(self, client.forget_watcher, self._watcher)

    def is_likely(self) -> bool:
        """Tell, when we come, whether we are likely to know without asking that we are alone."""
        if self._number is None:
            return False
        if not self._has_watch():
            # We come again, and may come often: next time we want to know.
            self._watch()
            return False
        return self._has_left

    def is_certain(self, number: int) -> bool:
        """Tell whether we are alone, now that we have come and got this number."""
        is_next = self._number is not None and number == self._number + 1
        is_certain = is_next and self._has_left and self._has_watch()
        self.came(number, is_alone=is_certain)
        return is_certain

    def came(self, number: int, *, is_alone: bool) -> None:
        """Take note of our number, and whether there was nobody else."""
        self._number = number if is_alone else None
        self._has_left = False

    def left(self, number: int) -> None:
        """Take note that our node has gone."""
        if number == self._number:
            self._has_left = True

    def forget(self) -> None:
        """Know nothing any more."""
        self._number = None
        self._is_watched = False
        self._asked = None

    def _has_watch(self) -> bool:
        # Somebody else may have removed it.
        return self._is_watched and self._client.has_watcher(self._path, self._watcher)

    def _watch(self) -> None:
        self._is_watched = False
        self._asked = self._client.exists(self._path, watch=self._watcher)
        self._asked.add_done_callback(self._on_answer)

    def _on_answer(self, asked: asyncio.Future[Stat | None]) -> None:
        if asked.cancelled() or asked.exception() is not None or asked is not self._asked:
            # The last means that its watch has fired already.
            return
        self._is_watched = asked.result() is not None


def _forgetting(solitude: Solitude) -> Watcher:
    """Give a watcher that keeps nothing alive."""
    known = weakref.ref(solitude)

    def forget(_: Event) -> None:
        found = known()
        if found is not None:
            found.forget()

    return forget
