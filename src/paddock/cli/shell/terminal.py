"""The shell on a terminal: a line editor with history, completion, colour and live state.

Either a line is typed, or a command runs. Ctrl-C drops the line or stops the command, and the shell
goes on. Events are printed above the line that is typed. The prompt always shows the current state.
"""

import asyncio
import contextlib
import logging
import os
import signal
import sys
import termios
from collections.abc import Awaitable, Iterator
from typing import Final

from prompt_toolkit import PromptSession
from prompt_toolkit.application import create_app_session, get_app_session
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.filters import is_searching
from prompt_toolkit.formatted_text import StyleAndTextTuples
from prompt_toolkit.key_binding import KeyBindings
from prompt_toolkit.key_binding.bindings import search
from prompt_toolkit.output import ColorDepth, Output
from prompt_toolkit.output.plain_text import PlainTextOutput
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.shortcuts import CompleteStyle
from prompt_toolkit.styles import Style
from prompt_toolkit.utils import is_dumb_terminal

from paddock import __version__
from paddock.cli.shell import help as help_pages
from paddock.cli.shell.commands import COMMANDS
from paddock.cli.shell.completion import Nodes, ShellCompleter
from paddock.cli.shell.connection import Settings
from paddock.cli.shell.history import ShellHistory, history_file
from paddock.cli.shell.parsing import words
from paddock.cli.shell.screen import Screen
from paddock.cli.shell.shell import Shell
from paddock.cli.shell.texts import CommandError

_log = logging.getLogger(__name__)

# The prompt tells of every change that there is an event for at once, and of others so soon.
_REFRESH_S: Final = 0.5
# How long a command waits for a server, while there is none.
_PATIENCE_S: Final = 2.0
_COMPLETED: Final = dict(
    sorted({**COMMANDS, "help": help_pages.HELP}.items(), key=lambda item: item[0].lower())
)
# The commands that need none, and may take longer to say good-bye to the one that is gone.
_LEAVING: Final = {"close", "connect", "quit", "exit"}
# The lines that there are for offers below the one that is typed.
_OFFERS_IN_LIST: Final = 7
_STATE_STYLES: Final = {
    "CONNECTED": "class:connected",
    "CONNECTEDREADONLY": "class:connecting",
    "CONNECTING": "class:connecting",
}
_STYLE: Final = Style.from_dict(
    {
        "hosts": "ansicyan",
        "connected": "ansigreen",
        "connecting": "ansiyellow",
        "gone": "ansired",
        # Reversed, so that it is seen without colours as well.
        "completion-menu.completion.current": "bg:ansiblack fg:ansicyan reverse",
        "completion-note": "italic",
    }
)


async def converse(hosts: str, settings: Settings) -> int:
    """Run the shell on the terminal of this process until its user leaves; give the status."""
    with create_app_session(output=_output()):
        return await _Conversation(hosts, settings).hold()


class _Conversation:
    """A shell and its line editor."""

    def __init__(self, hosts: str, settings: Settings) -> None:
        self._screen = Screen(get_app_session().output)
        self._shell = Shell(
            hosts,
            settings,
            COMMANDS,
            out=self._screen.out,
            err=self._screen.out,
            complain=lambda text, end="": self._screen.error(help_pages.reworded(text)),
            tell=self._tell,
            unknown=help_pages.unknown,
            unconnected="Not connected: connect begins a new session.",
            keeps_trying=True,
        )
        keys = KeyBindings()
        # What Ctrl-R has found is run by Enter, as in other shells.
        keys.add("enter", filter=is_searching)(search.accept_search_and_accept_input)
        self._nodes = Nodes(lambda: self._shell.connected_client)
        self._editor: PromptSession[str] = PromptSession(
            self._prompt,
            history=ShellHistory(history_file(os.environ)),
            completer=ShellCompleter(_COMPLETED, self._nodes),
            complete_while_typing=False,
            complete_style=CompleteStyle.MULTI_COLUMN,
            enable_suspend=True,
            key_bindings=keys,
            refresh_interval=_REFRESH_S,
            style=_STYLE,
        )
        self._editor.default_buffer.on_completions_changed += self._arrange_offers
        # The editor chooses by itself to be a simple one, which is not drawn.
        self._is_dumb = is_dumb_terminal()
        self._screen.editor = None if self._is_dumb else self._editor.app
        self._running: asyncio.Task[None] | None = None
        # Whether Ctrl-C came when a line was read already and its command did not run yet.
        self._is_interrupted = False

    async def hold(self) -> int:
        """Read lines and run them, until there are no more."""
        self._screen.out(f"Connecting to {self._shell.hosts}")
        self._screen.note(f"Paddock {__version__}: help lists the commands, Ctrl-D leaves.")
        with _without_echo(), self._signals(), _LoggingTo(self._screen):
            try:
                await self._shell.connect(self._shell.hosts)
                while not self._shell.is_over:
                    try:
                        typed = await self._read()
                    except KeyboardInterrupt:
                        continue
                    except EOFError:
                        break
                    await self._run_lines(typed)
            finally:
                await self._nodes.close()
                self._is_interrupted = False
                # The end of our own session is no event to print.
                self._shell.prints_watches = False
                await self._stoppable(self._shell.close())
                self._screen.flush()
        return self._shell.status

    async def _read(self) -> str:
        """Read a line; raises EOFError or KeyboardInterrupt."""
        self._screen.flush()
        self._is_interrupted = False
        if self._is_dumb:
            buffer = self._editor.default_buffer
            self._screen.last_line = lambda: self._shell.prompt + buffer.text
        try:
            return await self._editor.prompt_async(handle_sigint=False, set_exception_handler=False)
        finally:
            self._screen.last_line = None

    def _tell(self, event: str) -> None:
        self._screen.event(f"WATCHER:: {event}")
        if "state:Expired" in event or "state:AuthFailed" in event:
            self._screen.note("The session is over; connect begins a new one.")

    async def _run_lines(self, typed: str) -> None:
        """Run what was typed: a line, or several that were pasted; Ctrl-C stops all of them."""
        for line in typed.splitlines():
            if not self._shell.is_over and not await self._stoppable(self._run(line.strip())):
                self._screen.error("Interrupted")
                break
        self._nodes.forget()

    async def _run(self, line: str) -> None:
        given = words(line)
        if not given:
            # Upstream would do the last command again, for a lone quote.
            return
        if given[0] in ("help", "?"):
            self._help(given[1:])
        elif given == ["redo"]:
            # Upstream does nothing, and says nothing of it.
            self._shell.status = 1
            self._screen.error(COMMANDS["redo"].usage_line)
        else:
            await self._execute(line, given[0])

    async def _execute(self, line: str, name: str) -> None:
        """Run a command; give up when no server answers for a while."""
        running = asyncio.ensure_future(self._shell.execute(line))
        missing_s = 0.0
        try:
            while not running.done():
                await asyncio.wait([running], timeout=_REFRESH_S)
                missing_s = missing_s + _REFRESH_S if self._shell.state == "CONNECTING" else 0.0
                if missing_s > _PATIENCE_S and name not in _LEAVING:
                    break
        finally:
            running.cancel()
            await asyncio.wait([running])
        if running.cancelled():
            # The client would wait as long as the session may live. Upstream does not.
            self._shell.status = 1
            self._screen.error("KeeperErrorCode = ConnectionLoss: no server answers")
        elif error := running.exception():
            # A fault of ours, or of the system, is no reason to leave.
            _log.debug("%s", line, exc_info=error)
            self._shell.status = 1
            self._screen.error(f"{type(error).__name__}: {error}")

    def _help(self, about: list[str]) -> None:
        try:
            if not about:
                self._screen.show(help_pages.all_commands(self._screen.rows))
            for page in [help_pages.one_command(name) for name in about]:
                self._screen.show(page)
        except CommandError as refusal:
            self._screen.error(str(refusal))

    async def _stoppable(self, work: Awaitable[None]) -> bool:
        """Await work that Ctrl-C cancels; return whether it completed."""
        self._running = asyncio.ensure_future(work)
        if self._is_interrupted:
            self._running.cancel()
        try:
            await asyncio.wait([self._running])
        except asyncio.CancelledError:
            # The shell itself is to end.
            self._running.cancel()
            await asyncio.wait([self._running])
            raise
        finally:
            running, self._running = self._running, None
        if running.cancelled():
            return False
        running.result()
        return True

    def _arrange_offers(self, buffer: Buffer) -> None:
        """Show few completions in one column, each with its description."""
        offers = buffer.complete_state.completions if buffer.complete_state is not None else []
        self._editor.complete_style = (
            CompleteStyle.COLUMN if len(offers) <= _OFFERS_IN_LIST else CompleteStyle.MULTI_COLUMN
        )

    def _prompt(self) -> StyleAndTextTuples:
        state = self._shell.state
        return [
            ("", "[zk: "),
            ("class:hosts", self._shell.hosts),
            ("", "("),
            (_STATE_STYLES.get(state, "class:gone"), state),
            ("", f") {self._shell.count}] "),
        ]

    @contextlib.contextmanager
    def _signals(self) -> Iterator[None]:
        """Handle signals: Ctrl-C stops the command, SIGHUP and SIGTERM end the shell."""
        loop = asyncio.get_running_loop()
        this_task = asyncio.current_task()
        assert this_task is not None
        ended_by: list[int] = []

        def end(number: int) -> None:
            ended_by.append(number)
            this_task.cancel()

        loop.add_signal_handler(signal.SIGINT, self._interrupt)
        for number in (signal.SIGHUP, signal.SIGTERM):
            loop.add_signal_handler(number, end, number)
        try:
            yield
        except asyncio.CancelledError:
            if not ended_by:
                raise
            this_task.uncancel()
            self._shell.status = 128 + ended_by[0]
        finally:
            for number in (signal.SIGINT, signal.SIGHUP, signal.SIGTERM):
                loop.remove_signal_handler(number)

    def _interrupt(self) -> None:
        if self._running is not None:
            self._running.cancel()
        elif self._editor.app.is_running:
            # A signal that did not come from the keyboard, which is read key by key now.
            self._editor.app.key_processor.send_sigint()
        else:
            self._is_interrupted = True


def _output() -> Output:
    if is_dumb_terminal():
        return PlainTextOutput(sys.stdout)
    # It is never asked where its cursor is: the answer comes with the keys, and where it comes late
    # or never, it ends up in the line or in whatever runs next.
    output = Vt100_Output.from_pty(
        sys.stdout, term=os.environ.get("TERM"), default_color_depth=ColorDepth.from_env()
    )
    output.enable_cpr = False
    return output


@contextlib.contextmanager
def _without_echo() -> Iterator[None]:
    """Switch echo off: keys typed while a command runs appear in the next prompt."""
    terminal = sys.stdin.fileno()
    before = termios.tcgetattr(terminal)
    changed = termios.tcgetattr(terminal)
    changed[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(terminal, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        termios.tcsetattr(terminal, termios.TCSADRAIN, before)


class _LoggingTo(logging.Handler):
    """Prints warnings as one line each, above the prompt, in its scope."""

    def __init__(self, screen: Screen) -> None:
        super().__init__(logging.WARNING)
        self._screen = screen

    def __enter__(self) -> None:
        logging.getLogger().addHandler(self)

    def __exit__(self, *_: object) -> None:
        logging.getLogger().removeHandler(self)

    def emit(self, record: logging.LogRecord) -> None:
        error = record.exc_info[1] if record.exc_info else None
        says = record.getMessage() if error is None else f"{record.getMessage()}: {error!r}"
        self._screen.note(" ".join(says.split()))
