"""The director: a server, the one who watches it, the acts one after the other, and the end of all.

Whatever ends the demo, `perform` kills what it has started and waits for its end. If it is killed
itself, the leashes do that.
"""

import asyncio
import signal
import tempfile
import time
from collections.abc import Iterable

import click

from paddock.api import connect
from paddock.cli.demo.notebook import DEMO, Happening, Notebook
from paddock.cli.demo.processes import WATCHING_SECONDS, beside, serving
from paddock.cli.demo.stage import Act, Remote, Stage
from paddock.cli.demo.tree import Tree


class View:
    """Shows the demo in a pipe: one line for each happening, in their order, and no colours.

        election     1.37  alice     leads: token 12

    Which act, how many seconds after its beginning, who, and what. A subclass shows it otherwise.
    """

    def __init__(self) -> None:
        self._stage: Stage | None = None
        self._began_at = 0.0
        self._broken: BrokenPipeError | None = None

    async def run(self) -> None:
        """Show things as they are, for as long as the task lives."""

    async def introduce(self, stage: Stage) -> None:
        """Say what an act is about, before it is played; here, once, where the server is."""
        if self._stage is None:
            self._stage = stage
            server = stage.server
            self._write(
                f"{'demo':<10} {0:6.2f}  server    listens: at {server.hosts},"
                f" session timeout {server.session_timeout:g} s, tick {server.tick_ms} ms"
            )

    def begin(self, stage: Stage, at: float) -> None:
        """Begin with the act itself."""
        self._stage = stage
        self._began_at = at
        self._write_happening(at, DEMO, stage.act.title)

    def note(self, happening: Happening) -> None:
        """Show what has happened."""
        self._write_happening(happening.at, happening.who, str(happening))

    def sum_up(self) -> None:
        """Say what has come of it, after its end; raises BrokenPipeError if the reader has gone."""
        if self._broken is not None:
            raise self._broken

    def _write_happening(self, at: float, who: str, what: str) -> None:
        assert self._stage is not None, "an act has begun"
        self._write(f"{self._stage.act.name:<10} {at - self._began_at:6.2f}  {who:<9} {what}")

    def _write(self, line: str) -> None:
        assert self._stage is not None, "an act has begun"
        try:
            if self._broken is None:
                click.echo(line)
        except BrokenPipeError as error:
            # The reader has gone, as `head` does.
            self._broken = error
            self._stage.remote.quit()


async def perform(acts: Iterable[Act], view: View, session_timeout: float, speed: float) -> None:
    """Play acts, one after the other, on a server of their own."""
    signals: list[int] = []

    def end(number: int) -> None:
        signals.append(number)
        remote.quit()

    async with asyncio.TaskGroup() as group:
        remote = Remote(speed)
        # Its end by the viewer is no failure.
        remote.quit = group.create_task(_perform(acts, view, session_timeout, remote)).cancel
        for number in (signal.SIGTERM, signal.SIGHUP):
            asyncio.get_running_loop().add_signal_handler(number, end, number)
    if signals:
        raise click.exceptions.Exit(128 + signals[0])


async def _perform(acts: Iterable[Act], view: View, session_timeout: float, remote: Remote) -> None:
    with tempfile.TemporaryFile() as log:
        async with (
            beside(view.run()),
            serving(session_timeout, log) as server,
            connect(server.hosts, session_timeout=WATCHING_SECONDS) as client,
        ):
            notebook, tree = Notebook(), Tree(client)
            async with beside(notebook.read(), tree.follow(), server.watch()):
                for act in acts:
                    notebook.page.clear()
                    stage = Stage(act, server, notebook, tree, remote)
                    async with asyncio.TaskGroup() as group:
                        remote.skip = group.create_task(_play(stage, view)).cancel
                    await tree.clear()


async def _play(stage: Stage, view: View) -> None:
    def note(happening: Happening) -> None:
        stage.note(happening)
        view.note(happening)

    await view.introduce(stage)
    view.begin(stage, time.monotonic())
    stage.notebook.on_happening = note
    await stage.play()
