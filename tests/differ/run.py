"""Plays steps on two servers in lockstep and compares all that comes back.

After each burst its replies are awaited from both servers before anything else is sent. An event is
sent before the reply of its change, so it is in its session's stream before the answer to whatever
that session asks next: comparing each session's stream compares every event, in its place.

Of a cluster, each session is on another server, and goes to the next one when it reattaches. Before
a session asks, its server catches up with the others: a sync of another session sees to that.
"""

from __future__ import annotations

import contextlib
import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.differ.generate import SESSIONS, generate
from tests.differ.moves import Burst, Move, Reattach, Renew, Step
from tests.differ.normal import Normaliser
from tests.differ.rules import ORDER_OF_ONE_SESSIONS_END, Rules
from tests.support import requests as rq
from tests.support import wire
from tests.support.paddock_cluster import PaddockCluster
from tests.support.records import Event, Reply
from tests.support.server import SUPER_CREDENTIALS, Server

SESSION_TIMEOUT_MS = 60_000

Answer = list[Any]

_bases = itertools.count()


@dataclass(frozen=True, slots=True)
class Difference:
    """Where two servers parted: the step, and what each said."""

    index: int
    step: str
    session: int
    left: Answer
    right: Answer

    def __str__(self) -> str:
        return f"at step {self.index}: {self.step}\n" + "\n".join(
            f"  {name} said to session {self.session}:\n"
            + "\n".join(f"    {line}" for line in answer or ["(nothing)"])
            for name, answer in (("left", self.left), ("right", self.right))
        )


class Side:
    """One server, or a cluster, and its sessions."""

    def __init__(self, server: Server | PaddockCluster, only: Rules) -> None:
        self.server = server
        self._addresses = (
            server.addresses if isinstance(server, PaddockCluster) else [server.address]
        )
        # On which of them each session is.
        self._places: list[int] = []
        self.normal = Normaliser(only)
        self.last_zxid = 0
        self.clients: list[wire.Client] = []
        self._names = itertools.count()
        # One on each.
        self._overseers = [
            wire.connect(address, timeout_ms=SESSION_TIMEOUT_MS) for address in self._addresses
        ]
        self._overseer = self._overseers[0]
        assert self._overseer.call(rq.auth("digest", SUPER_CREDENTIALS)).err == 0

    def begin(self, base: str) -> None:
        """Make the segment's base; its zxids count from there."""
        self._names = itertools.count()
        start = self._overseer.call(rq.create(base)).zxid
        self.normal.begin(start)
        self.last_zxid = start
        self._places = [number % len(self._addresses) for number in range(SESSIONS)]
        self.clients = [self._connect(number) for number in range(SESSIONS)]

    def end(self) -> None:
        """Close all sessions, whatever state their connections are in."""
        for client in self.clients:
            client.disconnect()
            with contextlib.suppress(OSError, wire.ConnectionClosedError, AssertionError):
                again = wire.reattach(self._addresses[0], client)
                with again:
                    again.close()
        self.clients = []
        # Nobody else may be silent for as long as a session lasts.
        for overseer in self._overseers:
            overseer.call(rq.ping())

    def close(self) -> None:
        self.end()
        for overseer in self._overseers:
            overseer.close()

    def catch_up(self, place: int = 0) -> None:
        """Have a server catch up with the others; there is nothing to do if it is alone."""
        if len(self._addresses) > 1:
            assert self._overseers[place].call(rq.sync("/")).err == 0

    def send(self, session: int, moves: Sequence[Move]) -> None:
        client = self.clients[session]
        self.catch_up(self._places[session])
        with contextlib.suppress(OSError):
            client.send(*[move.request(self.last_zxid) for move in moves])

    def read(self, session: int, replies: int) -> Answer:
        """Return all up to the last of so many replies."""
        client = self.clients[session]
        answer: Answer = []
        while replies:
            try:
                message: Reply | Event = client.read()
            except (OSError, wire.ConnectionClosedError) as error:
                answer.append((type(error).__name__,))
                return answer
            if isinstance(message, Reply):
                replies -= 1
                self.last_zxid = max(self.last_zxid, message.zxid)
            answer.append(self.normal.message(message))
        return answer

    def look(self, path: str) -> tuple[Answer, list[str]]:
        """Return all there is to know of a node, and its children."""
        replies = self._overseer.calls(rq.get_data(path), rq.get_acl(path), rq.get_children(path))
        # The overseer's own xids count the nodes of all segments before.
        answer = [self.normal.message(replace(reply, xid=0)) for reply in replies]
        children = sorted(replies[2].strings) if replies[2].err == 0 else []
        return answer, children

    def renew(self, session: int) -> None:
        self.clients[session].wait_closed()
        self.clients[session].disconnect()
        self.clients[session] = self._connect(session)

    def reattach(self, session: int, broken: bool) -> Answer:
        old = self.clients[session]
        if broken:
            old.wait_closed()
        old.disconnect()
        self._places[session] = (self._places[session] + 1) % len(self._addresses)
        address = self._addresses[self._places[session]]
        client = wire.reattach(address, old, self.last_zxid)
        self.clients[session] = client
        kept = client.session_id == old.session_id and client.password == old.password
        return [("reattached", kept, client.handshake.timeout_ms, client.handshake.length)]

    def _connect(self, session: int) -> wire.Client:
        address = self._addresses[self._places[session]]
        client = wire.connect(address, timeout_ms=SESSION_TIMEOUT_MS)
        self.normal.add_session(client.session_id, f"session {next(self._names)}")
        return client


class Pair:
    """Two servers that should not differ."""

    def __init__(self, left: Server, right: Server | PaddockCluster) -> None:
        self.rules = Rules.between(left, right)
        self.left, self.right = Side(left, self.rules), Side(right, self.rules)
        self.operations = 0

    def close(self) -> None:
        self.left.close()
        self.right.close()

    def play_segment(
        self, seed: str, operations: int, only: Sequence[int] | None = None
    ) -> Difference | None:
        """Play a segment, or only the steps of it with these numbers."""
        base = f"/d{next(_bases):06d}"
        steps = generate(seed, base, operations, self.rules)
        numbered = list(enumerate(steps))
        if only is not None:
            numbered = [numbered[index] for index in only]
        try:
            self.left.begin(base)
            self.right.begin(base)
            return self._play(numbered) or self._walk(base, len(steps) - 1)
        finally:
            self.left.end()
            self.right.end()

    def _play(self, numbered: Sequence[tuple[int, Step]]) -> Difference | None:
        last = 0
        for last, step in numbered:
            for session, left, right in self._step(step):
                if left != right:
                    return Difference(last, str(step), session, left, right)
        for session in range(SESSIONS):
            left, right = self._exchange(session, (Move("exists", ("/",)),))
            if left != right:
                return Difference(last, "the end", session, left, right)
        return None

    def _walk(self, base: str, last: int) -> Difference | None:
        """Compare the trees that the segment has left behind."""
        self.left.catch_up()
        self.right.catch_up()
        waiting = [base, f"/zookeeper/quota{base}"]
        while waiting:
            path = waiting.pop()
            left, children = self.left.look(path)
            right, _ = self.right.look(path)
            if left != right:
                return Difference(last, f"the tree at {path}", SESSIONS, left, right)
            waiting += [f"{path}/{name}" for name in children]
        return None

    def _step(self, step: Step) -> Iterator[tuple[int, Answer, Answer]]:
        match step:
            case Burst(session, moves):
                yield session, *self._exchange(session, moves)
            case Renew(session):
                yield from self._renew(session)
            case Reattach(session, breaking, watches):
                barrier = (Move("exists", ("/",)),)
                yield session, *self._exchange(session, barrier)
                if breaking is not None:
                    yield session, *self._exchange(session, (breaking,))
                broken = breaking is not None
                left = self.left.reattach(session, broken)
                yield session, left, self.right.reattach(session, broken)
                yield session, *self._exchange(session, (watches,))

    def _exchange(self, session: int, moves: Sequence[Move]) -> tuple[Answer, Answer]:
        self.operations += len(moves)
        self.left.send(session, moves)
        self.right.send(session, moves)
        return self.left.read(session, len(moves)), self.right.read(session, len(moves))

    def _renew(self, session: int) -> Iterator[tuple[int, Answer, Answer]]:
        """Close: the order in which ephemerals go is not specified, the events as a whole are."""
        assert not self.rules.allow(ORDER_OF_ONE_SESSIONS_END)
        barrier = (Move("exists", ("/",)),)
        others = [other for other in range(SESSIONS) if other != session]
        for other in others:
            yield other, *self._exchange(other, barrier)
        left, right = self._exchange(session, (Move("close_session", ()),))
        yield session, _sorted(left), _sorted(right)
        for other in others:
            left, right = self._exchange(other, barrier)
            yield other, _sorted(left), _sorted(right)
        self.left.renew(session)
        self.right.renew(session)


def _sorted(answer: Answer) -> Answer:
    """Events sorted, in front of the one reply."""
    return sorted(answer[:-1]) + answer[-1:]
