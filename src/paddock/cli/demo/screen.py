"""The demo on a terminal: one live screen for each act.

An act begins with a card, which says what is to be seen and shows the code that does it. Then come
the workers with what each of them reported last, the tree as the service has it, and everything
that has happened. A narrow screen has no room for the tree, a wide one keeps the code.
"""

import asyncio
import contextlib
import os
import sys
import termios
import time
import tty
from collections.abc import Callable, Iterator
from typing import Final

from rich.align import Align
from rich.console import Console, RenderableType
from rich.layout import Layout
from rich.live import Live
from rich.padding import Padding
from rich.panel import Panel
from rich.syntax import Syntax
from rich.text import Text

from paddock.cli.demo.director import View
from paddock.cli.demo.notebook import DEMO, KILLS, SERVICE, Happening
from paddock.cli.demo.stage import SAW, Act, Player, Stage
from paddock.cli.demo.tree import drawn
from paddock.cli.output import counted

# How long the card of an act stays, in seconds, and how often the screen is drawn in one.
_CARD: Final = 8.0
_FRAMES: Final = 10
# With less, nothing could be seen. Then the tree has room beside the workers, and at last the code
# below both.
_COLUMNS_MIN: Final = 50
_ROWS_MIN: Final = 18
_COLUMNS_FOR_TREE: Final = 76
_COLUMNS_FOR_CODE: Final = 110
_ROWS_FOR_CODE: Final = 34
_BORDER: Final = 2
_HAPPENINGS_ROWS_MIN: Final = 5

_TREE: Final = "what the service holds"
_COLORS: Final = ("cyan", "magenta", "yellow", "bright_blue", "green")
_KEYS: Final = "space hold · n next act · q quit"


class ScreenView(View):
    """Draws what is known, several times a second."""

    def __init__(self, console: Console, acts: tuple[Act, ...]) -> None:
        super().__init__()
        self._console = console
        self._acts = acts
        self._is_card = True
        # What has come of each act, for when the screen is gone.
        self._results: dict[str, str] = {}

    async def introduce(self, stage: Stage) -> None:
        """Show the card of an act, for as long as it takes to read it."""
        self._stage = stage
        self._is_card = True
        await stage.pause(_CARD)

    def begin(self, stage: Stage, at: float) -> None:
        """Begin with the act itself."""
        self._is_card = False
        self._began_at = at

    def note(self, happening: Happening) -> None:
        """Keep the result of an act; all else is drawn from the stage."""
        assert self._stage is not None, "an act has begun"
        if happening.what.startswith(SAW):
            self._results[self._stage.act.name] = happening.what.removeprefix(SAW)

    async def run(self) -> None:
        """Draw, for as long as the task lives."""
        with (
            _listening(self._press),
            Live(console=self._console, screen=True, auto_refresh=False) as live,
        ):
            while True:
                live.update(self._screen(), refresh=True)
                await asyncio.sleep(1 / _FRAMES)

    def sum_up(self) -> None:
        """Leave what has come of the acts on the terminal."""
        for name, result in self._results.items():
            self._console.print(Text.assemble((f"{name}: ", "bold"), result))

    def _press(self, key: str) -> None:
        if self._stage is None:
            return
        remote = self._stage.remote
        match key:
            case " " if remote.may_go_on.is_set():
                remote.may_go_on.clear()
            case " ":
                remote.may_go_on.set()
            case "n":
                # Held, the next act would stop at once, and be seen no more than the key.
                remote.may_go_on.set()
                remote.skip()
            case "q":
                remote.quit()

    def _screen(self) -> RenderableType:
        if self._stage is None:
            return Text(" A server starts …", style="dim")
        stage = self._stage
        columns, rows = self._console.size
        if columns < _COLUMNS_MIN or rows < _ROWS_MIN:
            return Text(f"The demo needs a window of {_COLUMNS_MIN} × {_ROWS_MIN} or more.")
        shows = Padding(Text(stage.act.shows), (0, 1))
        foot = Padding(self._foot(stage), (0, 1))
        screen = Layout()
        screen.split_column(
            Layout(self._head(stage), size=1),
            Layout(shows, size=self._rows(shows)),
            Layout(name="body"),
            Layout(foot, size=self._rows(foot)),
        )
        room = rows - 1 - self._rows(shows) - self._rows(foot)
        body = screen["body"]
        if self._is_card:
            body.update(Align.left(_code(stage.act, room), vertical="top"))
        elif columns < _COLUMNS_FOR_TREE:
            self._split_narrow(body, stage, room)
        elif columns < _COLUMNS_FOR_CODE or rows < _ROWS_FOR_CODE:
            self._split_medium(body, stage, room)
        else:
            self._split_wide(body, stage, room)
        return screen

    def _split_narrow(self, body: Layout, stage: Stage, room: int) -> None:
        upper = max(1, min(len(stage.players) + _BORDER, room - _HAPPENINGS_ROWS_MIN))
        body.split_column(
            Layout(self._workers(stage), size=upper), Layout(self._happenings(stage, room - upper))
        )

    def _split_medium(self, body: Layout, stage: Stage, room: int) -> None:
        tree = self._tree(stage)
        upper = max(len(stage.players), len(tree.plain.splitlines())) + _BORDER
        upper = min(max(upper, room // 2), room - _HAPPENINGS_ROWS_MIN)
        body.split_column(
            Layout(name="upper", size=upper), Layout(self._happenings(stage, room - upper))
        )
        body["upper"].split_row(
            Layout(self._workers(stage), ratio=5), Layout(_panel(tree, _TREE), ratio=4)
        )

    def _split_wide(self, body: Layout, stage: Stage, room: int) -> None:
        lower = len(stage.act.code.splitlines()) + _BORDER
        body.split_column(Layout(name="upper"), Layout(_code(stage.act, lower), size=lower))
        body["upper"].split_row(
            Layout(name="left", ratio=4), Layout(self._happenings(stage, room - lower), ratio=5)
        )
        body["left"].split_column(
            Layout(self._workers(stage), size=max(len(stage.players), 4) + _BORDER),
            Layout(_panel(self._tree(stage), _TREE)),
        )

    def _rows(self, renderable: RenderableType) -> int:
        return len(self._console.render_lines(renderable, self._console.options, pad=False))

    def _head(self, stage: Stage) -> Text:
        names = (
            (f" {act.name} ", "bold cyan reverse" if act is stage.act else "dim")
            for act in self._acts
        )
        head = Text.assemble((" Paddock ", "reverse bold"), " ", *names)
        head.truncate(self._console.width)
        return head

    def _foot(self, stage: Stage) -> Text:
        foot = Text()
        result = self._results.get(stage.act.name)
        is_over = any(one.what.startswith(SAW) for one in stage.notebook.page)
        if is_over and result is not None:
            foot.append(f"Seen: {result}.", style="bold green")
        elif self._is_card:
            foot.append(
                "Each worker is a process of its own, and this is what it runs. Its client is"
                f' paddock.connect("{stage.server.hosts}",'
                f" session_timeout={stage.server.session_timeout:g})."
            )
        else:
            # Why some time passes between the death of a worker and the end of its session.
            for player in stage.players.values():
                if player.killed is not None and player.gone_at is None:
                    says = f"{player.name} is dead, but to the service it may be slow. "
                    foot.append(says, "bold red")
            foot.append(
                "A session lives until its process has been silent for"
                f" {stage.server.session_timeout:g} s;"
                f" the server looks every {stage.server.tick_ms} ms."
            )
        foot.append("\n")
        if not stage.remote.may_go_on.is_set():
            foot.append("held: space goes on · n next act · q quit", style="reverse")
        else:
            foot.append(_KEYS, style="dim")
        foot.append(f" · server {stage.server.hosts}", style="dim")
        return foot

    def _workers(self, stage: Stage) -> Panel:
        width = max(map(len, stage.players), default=0)
        lines = _lines()
        for player in stage.players.values():
            mark, style, says = _state(player, stage)
            name = f"{player.name:<{width}} "
            lines.append_text(
                Text.assemble((f"{mark} ", style), (name, self._color(player.name)), (says, style))
            ).append("\n")
        return _panel(lines, "processes")

    def _happenings(self, stage: Stage, rows: int) -> Panel:
        lines = _lines()
        shown = [one for one in stage.notebook.page if not one.what.startswith(SAW)]
        for one in shown[-max(1, rows - _BORDER) :]:
            lines.append(f"{one.at - self._began_at:4.1f}  ", style="dim")
            lines.append(f"{one.who:<9} ", style=self._color(one.who))
            lines.append(f"{one}\n", style="bold red" if one.what == KILLS else "")
        return _panel(lines, "what happens, in order")

    def _tree(self, stage: Stage) -> Text:
        owners = {one.session: one.name for one in stage.players.values() if one.session}
        text = _lines()
        for branch in drawn(stage.tree.owners):
            text.append("  " * branch.depth + branch.name)
            if branch.hidden:
                text.append(f"  {counted(branch.hidden, 'node')}", style="dim")
            if branch.owner:
                name = owners.get(branch.owner, "?")
                text.append(f"  {name}", style=self._color(name))
            text.append("\n")
        text.rstrip()
        return text

    def _color(self, name: str) -> str:
        if name in (DEMO, SERVICE):
            return "bold red" if name == DEMO else "bold"
        players = [] if self._stage is None else list(self._stage.players)
        return _COLORS[players.index(name) % len(_COLORS)] if name in players else ""


@contextlib.contextmanager
def _listening(on_key: Callable[[str], None]) -> Iterator[None]:
    """Call a function for every key, if stdin is a terminal; Ctrl-C stays a signal."""
    if not sys.stdin.isatty():
        yield
        return
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    loop = asyncio.get_running_loop()

    def read() -> None:
        keys = os.read(terminal, 64)
        if not keys:
            loop.remove_reader(terminal)
        for key in keys.decode("ascii", errors="replace"):
            on_key(key)

    tty.setcbreak(terminal)
    loop.add_reader(terminal, read)
    try:
        yield
    finally:
        loop.remove_reader(terminal)
        termios.tcsetattr(terminal, termios.TCSAFLUSH, before)


def _panel(content: RenderableType, title: str) -> Panel:
    return Panel(content, title=title, title_align="left", border_style="dim", padding=(0, 1))


def _code(act: Act, rows: int) -> Panel:
    shown = "\n".join(act.code.splitlines()[: max(1, rows - _BORDER)])
    code = Syntax(shown, "python", theme="ansi_dark", word_wrap=False)
    return _panel(code, f"paddock/cli/demo/acts/{act.name}.py")


def _state(player: Player, stage: Stage) -> tuple[str, str, str]:
    """Return the mark, style and text for the state of a worker."""
    if player.killed is not None:
        if player.gone_at is not None:
            return "✗", "dim red", f"killed, over after {player.gone_at - player.killed.at:.2f} s"
        silent = time.monotonic() - player.killed.at
        return "✗", "bold red", f"killed, silent for {silent:.1f} s"
    if player.process.returncode is not None:
        return "–", "dim", "has ended"
    if player.last is None:
        return "·", "dim", f"starts, pid {player.process.pid}"
    if player.last.what == stage.act.possession:
        return "●", "bold green", str(player.last)
    return "○", "", str(player.last)


def _lines() -> Text:
    return Text(no_wrap=True, overflow="ellipsis")
