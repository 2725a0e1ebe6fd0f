"""The stage: where an act is played, by processes that can be started, waited for and killed.

A story waits for what a worker reports or the service holds; nothing goes on because time has
passed, but for the pauses in which the viewer looks.
"""

import asyncio
import contextlib
import inspect
import sys
import textwrap
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from paddock.cli.demo.notebook import FAILS, KILLS, SERVICE, Happening, Notebook, write
from paddock.cli.demo.processes import Server, environment, kill, last_line
from paddock.cli.demo.tree import Tree
from paddock.cli.demo.worker import Part
from paddock.cli.output import CannotBeDone

# How long something may take that is bound to happen, also on a machine that has much to do.
_DEADLINE: Final = 60.0
# How long the viewer may look at what has come of an act.
_LAST_PAUSE: Final = 5.0
# How the demo begins to report what has come of an act.
SAW: Final = "saw that "


class Remote:
    """The remote control: how fast the acts are played, and what the viewer's keys do to them."""

    def __init__(self, speed: float) -> None:
        # Twice the speed halves the time that work and pauses take.
        self.speed = speed
        # End this act and begin with the next one; end the demo.
        self.skip: Callable[[], object] = lambda: None
        self.quit: Callable[[], object] = lambda: None
        # Cleared while the story waits for the viewer. The workers do not, they are real.
        self.may_go_on = asyncio.Event()
        self.may_go_on.set()


@dataclass(slots=True)
class Player:
    """One worker process, and what is known of it."""

    name: str
    process: asyncio.subprocess.Process
    session: int = 0
    last: Happening | None = None
    killed: Happening | None = None
    # When the service was seen to have deleted the last node of its session.
    gone_at: float | None = None
    is_dismissed: bool = False


# How the act goes: it starts workers, waits until something is seen, kills. It gives what was seen.
Story: TypeAlias = "Callable[[Stage], Awaitable[str]]"


@dataclass(frozen=True, slots=True)
class Act:
    """One thing that the demo shows; its name is also that of its file."""

    name: str
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
        return "\n".join(textwrap.dedent(inspect.getsource(part)) for part in self.parts)


@dataclass(slots=True)
class Stage:
    """An act that is being played."""

    act: Act
    server: Server
    notebook: Notebook
    tree: Tree
    remote: Remote
    players: dict[str, Player] = field(default_factory=dict)
    _watching: asyncio.TaskGroup = field(default_factory=asyncio.TaskGroup)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def start(self, name: str, part: Part, *, work: float = 0.0) -> None:
        """Start a worker, whose work takes so many seconds each time."""
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "paddock.cli.demo.worker"),
            *(self.act.name, part.__name__, name, self.server.hosts),
            *(str(self.server.session_timeout), str(work / self.remote.speed)),
            stdin=asyncio.subprocess.PIPE,
            stdout=self.notebook.file,
            stderr=self.server.log,
            start_new_session=True,
            env=environment(),
        )
        player = self.players[name] = Player(name, process)
        self._watching.create_task(self._watch(player))

    async def kill(self, name: str) -> Happening:
        """Kill a worker at once, as `kill -9` does; gives when.

        It must have something to lose: only by its nodes can be seen when its session ends.
        """
        player = self.players[name]
        await self._until(lambda: player.session in self.tree.sessions(), f"{name} has no nodes")
        player.killed = await self.notebook.write(KILLS, worker=name)
        kill(player.process)
        return player.killed

    async def stop(self, name: str) -> Happening:
        """Ask a worker to end in good order; gives when."""
        stopped = await self.notebook.write("asks to end", worker=name)
        _let_go(self.players[name])
        return stopped

    async def see(
        self,
        what: str,
        *,
        by: str | None = None,
        after: Happening | None = None,
        times: int = 1,
        **facts: object,
    ) -> Happening:
        """Wait until something was reported, this often; give the report.

        By a certain worker, after a certain happening, with certain facts, if that is said.
        """
        number = 0 if after is None else after.number

        def is_it(happening: Happening) -> bool:
            nonlocal times
            is_one = (
                happening.what == what
                and happening.number > number
                and by in (None, happening.who)
                and facts.items() <= happening.facts.items()
            )
            times -= is_one
            return is_one and times <= 0

        async with deadline(f"nobody {what}"):
            return await self.notebook.wait(is_it)

    async def see_nodes(self, path: str, count: int) -> None:
        """Wait until the service has so many nodes that go with sessions below a path."""

        def are_there() -> bool:
            owned = [one for one, owner in self.tree.owners.items() if owner]
            return sum(one.startswith(f"{path}/") for one in owned) == count

        await self._until(are_there, f"there are not {count} nodes below {path}")

    async def pause(self, seconds: float) -> None:
        """Let the viewer look, for so long at the usual speed."""
        await asyncio.sleep(seconds / self.remote.speed)
        await self.remote.may_go_on.wait()

    def seen(self, what: str) -> list[Happening]:
        """Return all reports of something so far."""
        return [one for one in self.notebook.page if one.what == what]

    def check(self, is_so: bool, claim: str) -> None:
        """Raise CannotBeDone if what we claim is not what was reported."""
        if not is_so:
            raise CannotBeDone(f"{self.act.name}: it does not hold that {claim}")

    async def play(self) -> None:
        """Play the act; afterwards, however it ended, all its workers have ended."""
        self.tree.on_change = self._on_change
        try:
            async with self._watching:
                try:
                    await self.notebook.write(f"{SAW}{await self.act.story(self)}")
                    await self.pause(_LAST_PAUSE)
                    for player in self.players.values():
                        _let_go(player)
                except BaseException:
                    for player in self.players.values():
                        kill(player.process)
                    raise
        finally:
            self.tree.on_change = lambda: None

    def note(self, happening: Happening) -> None:
        """Take down what is known of a worker, when it has reported something."""
        player = self.players.get(happening.who)
        if player is not None:
            player.last = happening
            if happening.what == "connects":
                player.session = int(happening.facts["session"], 16)

    async def _until(self, is_so: Callable[[], bool], otherwise: str) -> None:
        """Wait until the tree is as it should be."""
        async with deadline(otherwise):
            while not is_so():
                self._changed.clear()
                await self._changed.wait()

    async def _watch(self, player: Player) -> None:
        """Wait for the end of a worker, and see that there was a reason for it."""
        try:
            status = await player.process.wait()
        finally:
            if player.process.returncode is None:
                kill(player.process)
                await player.process.wait()
        if status != 0 and player.killed is None and not player.is_dismissed:
            has_said = player.last is not None and player.last.what == FAILS
            reason = f": {player.last}" if has_said else last_line(self.server.log)
            raise CannotBeDone(f"{player.name} ended with status {status}{reason}")

    def _on_change(self) -> None:
        self._changed.set()
        owners = self.tree.sessions()
        for player in self.players.values():
            if player.killed is None or player.gone_at is not None or player.session in owners:
                continue
            player.gone_at = time.monotonic()
            seconds = player.gone_at - player.killed.at
            what = f"ends the session of {player.name}"
            write(self.notebook.file, SERVICE, what, {"after": f"{seconds:.2f} s"})


def _let_go(player: Player) -> None:
    assert player.process.stdin is not None, "it is a pipe"
    player.is_dismissed = True
    player.process.stdin.close()


@contextlib.asynccontextmanager
async def deadline(otherwise: str) -> AsyncIterator[None]:
    """Bound what is bound to happen; raise CannotBeDone if it does not."""
    try:
        async with asyncio.timeout(_DEADLINE):
            yield
    except TimeoutError:
        raise CannotBeDone(f"{otherwise}, for {_DEADLINE:.0f} s") from None
