"""The blocking twin of `paddock.recipes.locks.election`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Self

from paddock.protocol.acl import ACL, OPEN_TO_ALL
from paddock.recipes.locks.election import Election as AsyncElection
from paddock.recipes.locks.election import ElectionEvent, ElectionListener
from paddock.recipes.locks.line import Contender
from paddock.sync.bridge import Twin
from paddock.sync.client import Client
from paddock.sync.recipes.grant import Grant
from paddock.sync.scopes import Scope
from paddock.sync.streams import Stream
from paddock.sync.wrapping import WrappedValue


class Election(Twin[AsyncElection]):
    """One candidate, which leads at most as long as the client's session lives.

        election = Election(client, "/election", data=b"worker 7")
        election.start()
        leadership = election.wait_leader()
        print(election.is_leader, leadership.is_held)  # True True
        election.stop()

    `with election` starts it, and stops it at the end. Others read `data` in `candidates`.
    """

    def __init__(
        self, client: Client, path: str, *, data: bytes = b"", acl: Sequence[ACL] = OPEN_TO_ALL
    ) -> None:
        self._make(
            "client", client, lambda bridge: AsyncElection(client._inner, path, data=data, acl=acl)
        )

    @property
    def is_leader(self) -> bool:
        """Whether we surely lead, at this moment."""
        return self._inner.is_leader

    def lead(self) -> Scope[Grant]:
        """Wait to be elected, and lead; the end of the scope steps down.

            with election.lead() as leadership:
                print(leadership.is_held)  # True

        When the leadership is lost, it tells its body when that leaves and raises GrantLostError.
        Raises SessionExpiredError; and LockStateError if it stands in the line already, or if our
        node was deleted while we waited.
        """
        return Scope(
            self._bridge.portal,
            WrappedValue(
                self._bridge.run(self._inner.lead), lambda _one: Grant._of(self._bridge, _one)
            ),
        )

    def start(self) -> None:
        """Stand in the line from now on; returns when we do.

        After a leadership is lost, or stepped down from, we stand at the end of the line again.
        Raises SessionExpiredError, NoAuthError and the like; and LockStateError if we stand there
        already, or have stopped. If it is given up, the election is stopped.
        """
        self._bridge.call(self._inner.start)

    def wait_leader(self) -> Grant:
        """Wait until we lead; return the leadership.

        It may be called before `start`. Raises the error that the election has failed with, and
        LockStateError if it was stopped.
        """
        return Grant._of(self._bridge, self._bridge.call(self._inner.wait_leader))

    def stop(self) -> None:
        """Step down, or leave the line, for good; when this returns, our node is gone.

        While the connection is lost it waits for the next one, but not longer than the session
        surely lives. If it is given up, the node is deleted all the same. Stopping again does
        nothing. Raises LockStateError while a scope of `lead` is open.
        """
        self._bridge.call(self._inner.stop)

    def __enter__(self) -> Self:
        self._enter_scope(self._inner)
        return self

    def step_down(self) -> None:
        """Give up the leadership; when this returns, the next candidate leads or can.

        In the background we stand at the end of the line then. The body of a scope goes on, but
        leads no more. Raises LockStateError if we do not lead, but not if the leadership was lost.
        """
        self._bridge.call(self._inner.step_down)

    def leader(self) -> Contender | None:
        """Return the leader, or None if there is none."""
        return self._bridge.call(self._inner.leader)

    def candidates(self) -> list[Contender]:
        """Return all candidates, in order: the leader first."""
        return self._bridge.call(self._inner.candidates)

    def events(self) -> Stream[ElectionEvent]:
        """Return a stream of events: the last one, then every later one, until FAILED or STOPPED.

            election.start()
            for event in election.events():
                print(event)  # ...elected
                if event is ElectionEvent.ELECTED:
                    break

        For a slow reader, the last thousand are kept.
        """
        return Stream(self._bridge.portal, self._bridge.run(self._inner.events))

    def add_listener(self, listener: ElectionListener) -> None:
        """Call a function with every later event.

        It may make calls. What it raises is logged.
        """
        self._bridge.run(self._inner.add_listener, self._bridge.callbacks.relay(listener))

    def remove_listener(self, listener: ElectionListener) -> None:
        """Remove a listener, if it is there."""
        self._bridge.run(self._inner.remove_listener, self._bridge.callbacks.relay(listener))
