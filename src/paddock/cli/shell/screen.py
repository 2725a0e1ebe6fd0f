"""Output of the shell on a terminal, above the line that is being typed.

Output may come from nodes of others, so that control characters never reach the terminal.
"""

import asyncio
import re
from collections.abc import Callable
from typing import Final

from prompt_toolkit.application import Application
from prompt_toolkit.output import Output
from rich.console import Console, RenderableType
from rich.text import Text
from rich.theme import Theme

# What a terminal may take for a command, but for line ends and tabs; and what is no character.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# Colours are for people, who do not read more than this at once.
_PAINTED_MAX: Final = 64 * 1024

_WAITING_MAX: Final = 64 * 1024

# What is always there in a stat; so the rest is seen sooner.
_STAT_KEY: Final = re.compile(
    r"^(?:[cmp]Zxid|[cm]time|cversion|(?:data|acl)Version|ephemeralOwner|dataLength|numChildren) =",
    re.MULTILINE,
)
_THEME: Final = Theme({"shell.name": "bold cyan", "shell.note": "dim"})


def _caret(match: re.Match[str]) -> str:
    code = ord(match[0])
    # Bytes that are no text are in a text as surrogates, whose last two digits they are.
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"\\x{code & 0xFF:02x}"


def harmless(text: str) -> str:
    """Write control characters so that they can be seen, such as ^[ for escape."""
    return _CONTROL.sub(_caret, text)


class Screen:
    """A terminal, on which a line may be typed at this moment.

    What is printed in one pass of the event loop is written at once, so that a thousand events draw
    the line that is being typed once more, and not a thousand times.
    """

    def __init__(self, output: Output) -> None:
        self._output = output
        # What a line is typed in, where that can be drawn.
        self.editor: Application[str] | None = None
        # Where it cannot: gives what belongs in the last line now, to be written again below.
        self.last_line: Callable[[], str] | None = None
        # It finds out by itself which colours there are, and whether they are wanted.
        self._console = Console(force_terminal=True, theme=_THEME, highlight=False)
        self._dim = self._around("dim")
        self._red = self._around("red")
        self._magenta = self._around("magenta")
        # What is printed and not yet written, and how many characters that is.
        self._waiting: list[str] = []
        self._waiting_characters = 0

    @property
    def rows(self) -> int:
        """How many lines it has."""
        return self._output.get_size().rows

    def out(self, text: str, end: str = "\n") -> None:
        """Print what a command says; here every text ends its line, whatever it asks for."""
        text = harmless(text)
        if len(text) <= _PAINTED_MAX:
            before, after = self._dim
            text = _STAT_KEY.sub(lambda key: f"{before}{key[0]}{after}", text)
        self._write(f"{text}\n")

    def error(self, text: str, end: str = "\n") -> None:
        """Print why something could not be done."""
        self._write_in(self._red, text)

    def event(self, text: str) -> None:
        """Print an event."""
        self._write_in(self._magenta, text)

    def note(self, text: str) -> None:
        """Print something in passing."""
        self._write_in(self._dim, text)

    def show(self, shown: RenderableType) -> None:
        """Print a table or the like, as wide as the terminal is."""
        self._console.width = self._output.get_size().columns
        self._write(self._painted(shown))

    def flush(self) -> None:
        """Write what is printed so far."""
        if not self._waiting:
            return
        text = "".join(self._waiting)
        self._waiting.clear()
        self._waiting_characters = 0
        editor = self.editor
        if editor is not None and editor.is_running:
            # What is typed is taken away, and drawn again below when the event loop comes to it.
            # The terminal stays as it is set, so a key that is pressed meanwhile is not shown.
            editor.renderer.erase()
            editor.invalidate()
        elif self.last_line is not None:
            text = f"\n{text}{self.last_line()}"
        self._output.write_raw(text)
        self._output.flush()

    def _painted(self, shown: RenderableType) -> str:
        with self._console.capture() as capture:
            self._console.print(shown)
        return capture.get()

    def _around(self, style: str) -> tuple[str, str]:
        """Return the escape sequences before and after a text in a style."""
        before, _, after = self._painted(Text("|", style=style)).rstrip("\n").partition("|")
        return before, after

    def _write_in(self, style: tuple[str, str], text: str) -> None:
        before, after = style
        self._write(f"{before}{harmless(text)}{after}\n")

    def _write(self, text: str) -> None:
        if not self._waiting:
            asyncio.get_running_loop().call_soon(self.flush)
        self._waiting.append(text)
        self._waiting_characters += len(text)
        if self._waiting_characters > _WAITING_MAX:
            self.flush()
