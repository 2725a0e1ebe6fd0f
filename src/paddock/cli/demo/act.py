"""What an act is: something to be seen, who takes part in it, and how it goes."""

from __future__ import annotations

import inspect
import textwrap
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    from paddock.cli.demo.stage import Stage
    from paddock.cli.demo.worker import Worker

# What one worker process does: a public function in the file of its act, named like it.
Part: TypeAlias = "Callable[[Worker], Awaitable[None]]"
# How the act goes: it starts workers, waits until something is seen, kills. It gives what was seen.
Story: TypeAlias = "Callable[[Stage], Awaitable[str]]"


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that the demo shows; its name is also that of its file."""

    name: str
    # One line for the list of acts.
    title: str
    # What the viewer sees, in a sentence or two.
    shows: str
    parts: tuple[Part, ...]
    # What a worker reports when it has what the act is about: the lock, a job.
    possession: str
    story: Story

    @property
    def code(self) -> str:
        """The parts as they stand in the file: what is shown is what the workers run."""
        return "\n".join(map(_source, self.parts))


def _source(part: Part) -> str:
    return textwrap.dedent(inspect.getsource(part))
