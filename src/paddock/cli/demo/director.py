"""The director: a server, the one who watches it, the acts one after the other, and the end of all.

Whatever ends the demo, the last act, a failure or Ctrl-C, no process is left when `perform` is: it
kills what it has started and waits for its end. If it is killed itself, the leashes do that.
"""

import asyncio
import contextlib
import signal
import tempfile
import time
from collections.abc import AsyncIterator, Coroutine, Iterable
from typing import Any, Protocol

import click

from paddock.api import connect
from paddock.cli.demo.notebook import Happening, Notebook
from paddock.cli.demo.remote import Remote
from paddock.cli.demo.server import WATCHING_SECONDS, serving
from paddock.cli.demo.stage import Act, Stage, Terms
from paddock.cli.demo.tree import Tree


class View(Protocol):
    """Shows the demo."""

    async def run(self) -> None:
        """Show things as they are, for as long as the task lives."""

    async def introduce(self, stage: Stage) -> None:
        """Say what an act is about, before it is played."""

    def begin(self, stage: Stage, at: float) -> None:
        """Begin with the act itself."""

    def note(self, happening: Happening) -> None:
        """Show what has happened."""

    def sum_up(self) -> None:
        """Say what has come of it, after its end."""


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
            _beside(view.run()),
            serving(session_timeout, log) as server,
            connect(server.hosts, session_timeout=WATCHING_SECONDS) as client,
        ):
            notebook, tree = Notebook(), Tree(client)
            terms = Terms(server.hosts, server.tick_ms, session_timeout, log)
            async with _beside(notebook.read(), tree.follow(), server.watch()):
                for act in acts:
                    notebook.turn()
                    stage = Stage(act, terms, notebook, tree, remote)
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


@contextlib.asynccontextmanager
async def _beside(*works: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run coroutines for the length of a scope; if one fails, the scope does."""
    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(work) for work in works]
        yield
        for task in tasks:
            task.cancel()
