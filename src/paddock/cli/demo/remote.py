"""The remote control: how fast the acts are played, and what the viewer's keys do to them."""

import asyncio
from collections.abc import Callable


class Remote:
    """Held by the director, who says what its buttons do; the stories only know `pause`."""

    def __init__(self, speed: float) -> None:
        # Twice the speed halves the time that work and pauses take.
        self.speed = speed
        # End this act and begin with the next one; end the demo.
        self.skip: Callable[[], object] = lambda: None
        self.quit: Callable[[], object] = lambda: None
        self._may_go_on = asyncio.Event()
        self._may_go_on.set()

    @property
    def is_held(self) -> bool:
        """Whether the story waits for the viewer. The workers do not, they are real."""
        return not self._may_go_on.is_set()

    def hold_or_go_on(self) -> None:
        """Hold the story at its next pause, or let it go on."""
        if self.is_held:
            self.go_on()
        else:
            self._may_go_on.clear()

    def go_on(self) -> None:
        """Let the story go on, if it was held."""
        self._may_go_on.set()

    async def pause(self, seconds: float) -> None:
        """Let the viewer look, for so long at the usual speed."""
        await asyncio.sleep(seconds / self.speed)
        await self._may_go_on.wait()
