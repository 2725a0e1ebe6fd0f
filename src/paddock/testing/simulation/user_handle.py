"""A process of a user's world, as its test has it, and what a world has failed of."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias

from paddock.testing.simulation.user_process import UserProcess

Errors: TypeAlias = type[BaseException] | tuple[type[BaseException], ...]

# The process that is the test itself.
TEST: Final = "test"


class Stage(Protocol):
    """What a process needs of its world."""

    def say(self, text: str) -> None: ...

    def kill(self, process: UserProcess, silently: bool) -> None: ...


@dataclass(eq=False)
class Failure:
    """What has failed a world: who, and the error."""

    who: str
    error: BaseException

    def kind(self) -> str:
        """Return what a shrunk world should show as well: the error, and where it was raised."""
        trace = self.error.__traceback__
        while trace is not None and trace.tb_next is not None:
            trace = trace.tb_next
        place = "" if trace is None else f"{trace.tb_frame.f_code.co_name} {trace.tb_lineno}"
        return f"{type(self.error).__name__} {place}"

    def __str__(self) -> str:
        # pytest adds lines to the text of an assertion; it shows them above.
        said = str(self.error).partition("\n")[0]
        text = f"{type(self.error).__name__}: {said}".rstrip(": ")
        return text if self.who == TEST else f"{self.who}: {text}"


class ProcessHandle:
    """A process that the test has spawned."""

    def __init__(
        self,
        stage: Stage,
        name: str,
        function: Callable[..., Any],
        arguments: tuple[Any, ...],
        *,
        may_raise: Errors,
        restarts: bool,
        background: bool,
    ) -> None:
        self.name = name
        # What its function has returned.
        self.result: Any = None
        self._stage = stage
        self.function = function
        self.arguments = arguments
        self.may_raise = may_raise
        self.restarts = restarts
        self.is_background = background
        self.starts = 0
        self.is_over = False
        self.loop: UserProcess

    def __repr__(self) -> str:
        return f"<process {self.name}{' (ended)' if self.is_over else ''}>"

    @property
    def is_running(self) -> bool:
        """Whether it has neither ended nor been killed; one that restarts runs for ever."""
        return not self.is_over

    def pause(self) -> None:
        """Stop it, until `resume`."""
        self._stage.say(f"pauses {self.name}")
        self.loop.pause()

    def resume(self) -> None:
        """Let it go on."""
        self._stage.say(f"lets {self.name} go on")
        self.loop.resume()

    def kill(self) -> None:
        """Kill it; what it has connected to learns of it."""
        self._stage.say(f"kills {self.name}")
        self._stage.kill(self.loop, silently=False)
