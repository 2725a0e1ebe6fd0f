"""The judge: whether the model allows a history, and how much else it would have allowed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Final

from paddock.log.etcd.keys import Keys
from paddock.testing.simulation.key_space import KeySpace
from tests.etcd_model.calls import UNKNOWN, Answer, Batch, OfOperator
from tests.etcd_model.history import (
    Answered,
    Called,
    Closed,
    Ended,
    Event,
    Filling,
    History,
    Opened,
    Shown,
    Trouble,
)
from tests.etcd_model.worlds import Worlds

TAIL: Final = "tail"
SILENT: Final = Answer("silent")


@dataclass(frozen=True, slots=True)
class Step:
    """An answer, and what the model allowed in its place."""

    call: str
    given: Answer
    allowed: frozenset[Answer]


@dataclass(slots=True)
class Verdict:
    """What the judge says of a history."""

    history: History
    steps: list[Step] = field(default_factory=list)
    # Empty if all of it is allowed.
    objection: str = ""
    # Whether there were too many possibilities to say more.
    is_undecided: bool = False
    # How many possibilities there were at once, at most.
    worlds: int = 1


class Judge:
    """The judge of one history, by one model."""

    def __init__(
        self,
        history: History,
        space_type: Callable[[], KeySpace] = KeySpace,
        worlds_type: Callable[[KeySpace, Keys], Worlds] = Worlds,
    ) -> None:
        self._history = history
        space = space_type()
        space.revision = space.compacted = history.base
        self._worlds = worlds_type(space, history.keys)
        self._is_troubled = False
        # The tails that are open, and whether the cluster was in trouble meanwhile.
        self._tails: dict[int, bool] = {}
        self._verdict = Verdict(history)

    def run(self) -> Verdict:
        verdict = self._verdict
        for number, event in enumerate(self._history.events):
            allowed = self._take(event)
            verdict.worlds = max(verdict.worlds, len(self._worlds))
            if not allowed and self._worlds.is_cut:
                verdict.is_undecided = True
                break
            if not allowed:
                choice = "\n".join(f"    {one}" for one in sorted(map(str, self._last.allowed)))
                verdict.objection = (
                    f"{self._history.name}: etcd gave what the model does not allow\n"
                    f"{self._history.story(number + 1)}\nThe model allows\n{choice[:4000]}"
                )
                break
        return verdict

    @property
    def _last(self) -> Step:
        return self._verdict.steps[-1]

    def _take(self, event: Event) -> bool:
        """Go on by an event; return whether it is allowed."""
        worlds = self._worlds
        match event:
            case Called(at, number, _, call):
                worlds.call(number, call, at, self._is_troubled)
            case Answered(at, number, answer):
                return self._answered(at, number, answer)
            case Opened(_, number, _, after):
                self._tails[number] = self._is_troubled
                worlds.watch(number, after)
            case Shown(at, number, record):
                return self._tail(at, number, Answer("record", record))
            case Ended(at, number, answer):
                return self._tail(at, number, answer)
            case Closed(_, number):
                del self._tails[number]
                worlds.close(number)
            case Trouble(_, is_on):
                self._is_troubled = is_on
                if is_on:
                    worlds.trouble()
                    self._tails = dict.fromkeys(self._tails, True)
            case Filling(_, is_on):
                worlds.is_filling = is_on
        return True

    def _answered(self, at: float, number: int, answer: Answer) -> bool:
        worlds, one = self._worlds, self._worlds.open[number]
        if isinstance(one.call, OfOperator):
            # Nothing can be learnt from its answer.
            return worlds.answer(number, answer, at)
        allowed = worlds.possible(number, at)
        if answer == UNKNOWN:
            worlds.abandon(number, at)
            is_allowed = one.is_troubled
        else:
            is_allowed = worlds.answer(number, answer, at)
        self._count(
            one.call.name, answer, is_allowed, allowed, {UNKNOWN} if one.is_troubled else ()
        )
        return is_allowed

    def _tail(self, at: float, number: int, answer: Answer) -> bool:
        worlds, is_troubled = self._worlds, self._tails[number]
        allowed = worlds.showable(number, at)
        if isinstance(answer.value, Batch):
            is_allowed = worlds.show(number, answer.value, at)
        else:
            del self._tails[number]
            if answer in (UNKNOWN, SILENT):
                worlds.close(number)
                is_allowed = is_troubled
            else:
                is_allowed = worlds.refuse(number, answer, at)
        self._count(TAIL, answer, is_allowed, allowed, {UNKNOWN, SILENT} if is_troubled else ())
        return is_allowed

    def _count(
        self,
        call: str,
        answer: Answer,
        is_allowed: bool,
        allowed: set[Answer],
        in_trouble: Iterable[Answer],
    ) -> None:
        # What is possible was not looked at to its end, perhaps.
        found = {*allowed, *in_trouble, *([answer] if is_allowed else [])}
        self._verdict.steps.append(Step(call, answer, frozenset(found)))
