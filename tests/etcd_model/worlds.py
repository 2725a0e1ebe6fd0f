"""All that could have happened by the model, narrowed by each answer.

A world is one possibility: a key space, and how far each call is that is not over. Between two
events every call that is under way may be carried out, in any order: each order is a world. An
answer keeps the worlds that would give it. The rules of `__init__` say what is open.

Nothing is carried out before an answer needs it: what is still under way after that answer may just
as well be carried out later. So a world is followed until it gives the answer, and no further.

What a call would answer without changing anything is kept in the world as a possible answer, state
by state; so a read takes no world of its own, however late it is answered.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from typing import Final

from paddock.log.etcd.keys import Keys
from paddock.log.etcd.store import CompactedError, Page, Read
from paddock.testing.simulation.key_space import KeySpace
from tests.etcd_model.calls import DONE, FULL, Answer, Append, Backup, Batch, Call, Compact, Restore
from tests.etcd_model.world import OpenCall, Outcome, Progress, State, Watched, World

# More possibilities than this are not followed: no more can be said of an answer that is not found.
WORLDS_MAX: Final = 4_000
# So many possibilities are looked at for what else could have been answered.
FOLLOWING_MAX: Final = 300


class Worlds:
    """The worlds that are possible so far."""

    def __init__(self, space: KeySpace, keys: Keys) -> None:
        self.keys = keys
        # Whether any put may cross the quota.
        self.is_filling = False
        # Whether some of them were not followed.
        self.is_cut = False
        self.open: dict[int, OpenCall] = {}
        self._states: dict[Hashable, State] = {}
        self._worlds = [World(self._state(space), None, {}, {})]

    def __len__(self) -> int:
        return len(self._worlds)

    # Calls.

    def call(self, number: int, call: Call, at: float, is_troubled: bool) -> None:
        self.open[number] = OpenCall(call, at, is_troubled)
        self._worlds = [world.with_calls({**world.calls, number: Progress()}) for world in self]

    def trouble(self) -> None:
        """Take note that the cluster is in trouble while calls are under way."""
        self.open = {number: replace(one, is_troubled=True) for number, one in self.open.items()}

    def possible(self, number: int, at: float) -> set[Answer]:
        """Return what a call may answer by now; not all of it, if that is very much."""
        return {one for world in self._following(at) for one in world.calls[number].answers}

    def answer(self, number: int, answer: Answer, at: float) -> bool:
        """Keep the worlds that give an answer; return whether there are any."""

        def gives(world: World) -> bool:
            # Nobody is told that etcd is full before the alarm is raised.
            return answer in world.calls[number].answers and (
                answer != FULL or world.state.space.is_full
            )

        kept = self._until(gives, _revision_of(answer), at)
        # The attempt that was answered may have changed nothing, but was made.
        self._leave(number, kept, at, made=1)
        return bool(kept)

    def abandon(self, number: int, at: float) -> None:
        """Take note that nobody knows what became of a call."""
        self._leave(number, self._worlds, at, made=0)

    def _leave(self, number: int, worlds: Iterable[World], at: float, made: int) -> None:
        """Forget a call; but not where it may be carried out once more."""
        one = replace(self.open[number], is_abandoned=True)
        attempts = one.attempts(at)
        is_open = False
        left: list[World] = []
        for world in worlds:
            calls = {**world.calls}
            done = max(calls.pop(number).done, made)
            if done < attempts and one.call.changes:
                calls[number] = Progress(done=done)
                is_open = True
            left.append(world.with_calls(calls))
        if is_open:
            self.open[number] = one
        else:
            del self.open[number]
        self._worlds = list(_distinct(left))

    # Tails.

    def watch(self, number: int, after: int) -> None:
        self._worlds = [
            world.with_tails({**world.tails, number: self._watched(world.state.space, after)})
            for world in self
        ]

    def showable(self, number: int, at: float) -> set[Answer]:
        """Return what a tail may show next, or be refused with; not all, if that is very much."""
        found: set[Answer] = set()
        for world in self._following(at):
            tail = world.tails[number]
            found |= tail.refusals
            if tail.coming:
                found.add(Answer("record", tail.coming[0]))
        return found

    def show(self, number: int, record: Batch, at: float) -> bool:
        """Keep the worlds in which a tail shows a record next; return whether there are any."""

        def shows(world: World) -> bool:
            coming = world.tails[number].coming
            return coming is not None and coming[:1] == (record,)

        kept: list[World] = []
        for world in self._until(shows, record.revision, at):
            tail = world.tails[number]
            assert tail.coming is not None, "it shows something"
            # One that has caught up with a compaction is not refused for it any more.
            left = frozenset(
                one
                for one in tail.refusals
                if isinstance(one.value, int) and one.value > record.revision
            )
            shown = replace(tail, coming=tail.coming[1:], refusals=left, is_open=True)
            kept.append(world.with_tails({**world.tails, number: shown}))
        self._worlds = list(_distinct(kept))
        return bool(kept)

    def refuse(self, number: int, answer: Answer, at: float) -> bool:
        """Keep the worlds in which a tail is refused; return whether there are any."""
        self._worlds = self._until(lambda world: answer in world.tails[number].refusals, None, at)
        self.close(number)
        return bool(self._worlds)

    def close(self, number: int) -> None:
        self._worlds = list(
            _distinct(
                world.with_tails({key: one for key, one in world.tails.items() if key != number})
                for world in self
            )
        )

    def _watched(self, space: KeySpace, after: int) -> Watched:
        try:
            return Watched(after, tuple(map(Batch.of, space.appended(self.keys, after))))
        except CompactedError as error:
            return Watched(after, None, frozenset({Answer("compacted", error.revision)}))

    # What may happen between two events.

    def __iter__(self) -> Iterator[World]:
        return iter(self._worlds)

    def _until(
        self, is_wanted: Callable[[World], bool], revision: int | None, at: float
    ) -> list[World]:
        """Return the first worlds on each way that are wanted; none is behind a revision."""
        found: dict[Hashable, World] = {}
        kept: list[World] = []
        # The nearest first: they are the likeliest.
        todo = deque(self._asked(world, at) for world in self)
        while todo:
            if len(found) >= WORLDS_MAX:
                self.is_cut = True
                break
            world = todo.popleft()
            if world.identity in found:
                continue
            found[world.identity] = world
            if is_wanted(world):
                kept.append(world)
            elif revision is None or world.state.space.revision <= revision or self._goes_back():
                todo += self._next(world, at)
        return kept

    def _following(self, at: float) -> Iterable[World]:
        """Return the worlds that follow from those that are possible, up to a number of them."""
        found: dict[Hashable, World] = {}
        todo = deque(self._asked(world, at) for world in self)
        while todo and len(found) < FOLLOWING_MAX:
            world = todo.popleft()
            if world.identity not in found:
                found[world.identity] = world
                todo += self._next(world, at)
        return found.values()

    def _next(self, world: World, at: float) -> Iterator[World]:
        """Yield the worlds that follow from one by one step of what is under way."""
        if self.is_filling and not world.state.space.is_full:
            yield self._asked(self._alarmed(world), at)
        for number in world.calls:
            for after in self._carried_out(world, number, at):
                yield self._asked(after, at)

    def _goes_back(self) -> bool:
        """Return whether a restore is under way, after which revisions are smaller."""
        return any(isinstance(one.call, Restore) for one in self.open.values())

    def _asked(self, world: World, at: float) -> World:
        """Note what each call would answer here without changing anything."""
        calls = world.calls
        for number, progress in world.calls.items():
            one = self.open[number]
            if one.is_abandoned or progress.done >= one.attempts(at):
                continue
            outcomes = self._outcomes(world, number)
            answers = {answer for after, answer in outcomes if after is None}
            if not answers <= progress.answers:
                answers |= progress.answers
                calls = {**calls, number: replace(progress, answers=frozenset(answers))}
        return world if calls is world.calls else world.with_calls(calls)

    def _carried_out(self, world: World, number: int, at: float) -> Iterator[World]:
        """Yield each world in which a call has changed something."""
        one, progress = self.open[number], world.calls[number]
        attempts = one.attempts(at)
        if progress.done >= attempts:
            return
        for state, answer in self._outcomes(world, number):
            if state is None:
                continue
            answers = frozenset() if one.is_abandoned else frozenset({answer})
            if attempts > 1:
                # Any of the attempts may be the one that is answered.
                answers |= progress.answers
            calls = {**world.calls, number: Progress(answers, progress.done + 1)}
            tails, backup = world.tails, world.backup
            match one.call:
                case Append() if state.space.revision > world.state.space.revision:
                    tails = self._published(state.space, tails)
                case Compact():
                    compacted = state.space.compacted
                    tails = {key: _compacted(tail, compacted) for key, tail in tails.items()}
                case Backup():
                    backup = state
                case Restore():
                    tails = {key: replace(tail, is_broken=True) for key, tail in tails.items()}
                    calls = {key: gone for key, gone in calls.items() if not self._is_lost(key)}
            yield World(state, backup, calls, tails)

    def _is_lost(self, number: int) -> bool:
        """Return whether a restore ends a call: no process has it any more."""
        return self.open[number].is_abandoned

    def _outcomes(self, world: World, number: int) -> list[Outcome]:
        call = self.open[number].call
        if isinstance(call, Backup):
            return [(world.state, DONE)]
        if isinstance(call, Restore):
            assert world.backup is not None, "there is a backup"
            return [(world.backup, DONE)]
        known = world.state.outcomes
        found = known.get((number, self.is_filling))
        if found is None:
            found = known[number, self.is_filling] = [*self._carry_out(world.state, call)]
        return found

    def _carry_out(self, state: State, call: Call) -> Iterator[Outcome]:
        space = state.space.copy()
        answer = call.outcome(space, self.keys)
        after = self._state(space)
        yield (None if after is state else after), answer
        if self.is_filling and call.puts and not state.space.is_full:
            # Any put may cross the quota: it is carried out, and its caller is refused.
            space = state.space.copy()
            space.quota_bytes, space.crosses_quota = 1, True
            call.outcome(space, self.keys)
            space.quota_bytes = 0
            after = self._state(space)
            yield (None if after is state else after), FULL

    def _alarmed(self, world: World) -> World:
        """Return the world in which a member has raised the alarm."""
        space = world.state.space.copy()
        space.is_full = True
        return World(self._state(space), world.backup, world.calls, world.tails)

    def _state(self, space: KeySpace) -> State:
        content = space.content()
        return self._states.setdefault(content, State(space, content))

    def _published(self, space: KeySpace, tails: dict[int, Watched]) -> dict[int, Watched]:
        (record,) = map(Batch.of, space.appended(self.keys, space.revision - 1))
        return {
            number: replace(tail, coming=(*tail.coming, record))
            if tail.coming is not None and not tail.is_broken and record.revision > tail.after
            else tail
            for number, tail in tails.items()
        }


def _compacted(tail: Watched, compacted: int) -> Watched:
    """Return a tail after a compaction, which may be told of it if it is behind."""
    is_late = not tail.is_open and tail.after + 1 < compacted
    is_behind = tail.coming is not None and any(one.revision < compacted for one in tail.coming)
    if not (is_late or is_behind) or tail.is_broken:
        return tail
    return replace(tail, refusals=tail.refusals | {Answer("compacted", compacted)})


def _revision_of(answer: Answer) -> int | None:
    """Return the revision at which an answer was given, if it says so."""
    value = answer.value
    if isinstance(value, Page | Read):
        return value.revision
    return value if isinstance(value, int) else None


def _distinct(worlds: Iterable[World]) -> Iterator[World]:
    return iter({world.identity: world for world in worlds}.values())
