"""The demo in a pipe: one line for each happening, in their order, and no colours.

    election     1.37  alice     leads: token 12

Which act, how many seconds after its beginning, who, and what.
"""

import click

from paddock.cli.demo.notebook import DEMO, Happening
from paddock.cli.demo.stage import Stage


class PlainView:
    """Writes what happens, as it happens."""

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._began_at = 0.0
        self._broken: BrokenPipeError | None = None

    async def introduce(self, stage: Stage) -> None:
        """Say once where the server is; the code is for those who look."""
        if self._stage is None:
            terms = stage.terms
            self._write(
                stage,
                f"{'demo':<10} {0:6.2f}  server    listens: at {terms.hosts},"
                f" session timeout {terms.session_timeout:g} s, tick {terms.tick_ms} ms",
            )

    def begin(self, stage: Stage, at: float) -> None:
        """Begin with the act itself."""
        self._stage = stage
        self._began_at = at
        self._write_happening(stage, at, DEMO, stage.act.title)

    def note(self, happening: Happening) -> None:
        """Write one thing that has happened."""
        assert self._stage is not None, "an act has begun"
        self._write_happening(self._stage, happening.at, happening.who, str(happening))

    async def run(self) -> None:
        """Do nothing more: everything is written when it comes."""

    def sum_up(self) -> None:
        """Raise BrokenPipeError if the reader has gone."""
        if self._broken is not None:
            raise self._broken

    def _write_happening(self, stage: Stage, at: float, who: str, what: str) -> None:
        self._write(stage, f"{stage.act.name:<10} {at - self._began_at:6.2f}  {who:<9} {what}")

    def _write(self, stage: Stage, line: str) -> None:
        if self._broken is not None:
            return
        try:
            click.echo(line)
        except BrokenPipeError as error:
            # The reader has gone, as `head` does.
            self._broken = error
            stage.remote.quit()
