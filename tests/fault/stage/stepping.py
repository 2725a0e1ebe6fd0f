"""The steps of a task: where it goes on after an await, and so where it can be cancelled.

A task can be cancelled in any pass of the event loop, but from one step to the next what it is in
the middle of hardly changes; `moments` has those in which it does.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Generator, Sequence
from itertools import pairwise
from typing import Any


class Stepped:
    """An awaitable that tells of every step that it takes."""

    def __init__(self, work: Awaitable[None], on_step: Callable[[], None]) -> None:
        self._work = work
        self._on_step = on_step

    def __await__(self) -> Generator[Any, Any, None]:
        inner = self._work.__await__()
        try:
            self._on_step()
            awaited = next(inner)
            while True:
                try:
                    yield awaited
                except BaseException as error:
                    self._on_step()
                    awaited = inner.throw(error)
                else:
                    self._on_step()
                    awaited = next(inner)
        except StopIteration:
            return


def moments(steps: Sequence[int]) -> list[int]:
    """Return the passes of the event loop at which cancelling a task makes a difference.

    At a step the reply has arrived, and the task has not resumed; one pass later it has made its
    next request, which is not sent yet; then the request is in flight. A long wait is sampled at a
    few passes.
    """
    chosen = {step + later for step in steps for later in range(3)}
    for step, following in pairwise(steps):
        chosen |= {step + (following - step) * part // 4 for part in range(4)}
    return sorted(one for one in chosen if 0 < one <= steps[-1])
