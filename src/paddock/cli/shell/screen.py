"""Where the shell prints on a terminal: above the line that is being typed, which stays as it is.

What is printed may come from nodes that anybody can write, so nothing of it reaches the terminal
that would do more than show a character.
"""

from __future__ import annotations

import io
import re
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from rich.console import Console, RenderableType
from rich.highlighter import RegexHighlighter
from rich.text import Text
from rich.theme import Theme

if TYPE_CHECKING:
    from prompt_toolkit.application import Application
    from prompt_toolkit.output import Output

# What a terminal may take for a command, but for line ends and tabs; and what is no character.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\ud800-\udfff]")
# Colours are for people, who do not read more than this at once.
_PAINTED_MAX: Final = 64 * 1024

_STAT_KEYS: Final = (
    r"(?m)^(?P<key>(?:[cmp]Zxid|[cm]time|cversion|(?:data|acl)Version|ephemeralOwner"
    r"|dataLength|numChildren) =)"
)


class _Words(RegexHighlighter):
    """Finds in a command's output what is always there, so that the rest is seen sooner."""

    base_style = "shell."
    highlights = (_STAT_KEYS,)


_THEME: Final = Theme(
    {
        "shell.key": "dim",
        "shell.error": "red",
        "shell.event": "magenta",
        "shell.note": "dim",
        "shell.name": "bold cyan",
    }
)


def _caret(match: re.Match[str]) -> str:
    code = ord(match[0])
    # Bytes that are no text are in a text as surrogates, whose last two digits they are.
    return f"^{chr(code ^ 0x40)}" if code < 0x80 else f"\\x{code & 0xFF:02x}"


def harmless(text: str) -> str:
    """Write control characters so that they can be seen, such as ^[ for escape."""
    return _CONTROL.sub(_caret, text)


class Screen:
    """A terminal, on which a line may be typed at this moment."""

    def __init__(self, output: Output) -> None:
        self._output = output
        # What a line is typed in, where that can be drawn.
        self.editor: Application[str] | None = None
        # Where it cannot: gives what belongs in the last line now, to be written again below.
        self.last_line: Callable[[], str] | None = None
        self._highlight = _Words()

    @property
    def rows(self) -> int:
        """How many lines it has."""
        return self._output.get_size().rows

    def out(self, text: str, end: str = "\n") -> None:
        """Print what a command says; here every text ends its line, whatever it asks for."""
        self._print_text(text, "")

    def error(self, text: str, end: str = "\n") -> None:
        """Print why something could not be done."""
        self._print_text(text, "shell.error")

    def event(self, text: str) -> None:
        """Print something that nobody has asked for at this moment."""
        self._print_text(text, "shell.event")

    def note(self, text: str) -> None:
        """Print something in passing."""
        self._print_text(text, "shell.note")

    def show(self, shown: RenderableType) -> None:
        """Print a table or the like, as wide as the terminal is."""
        self._print(shown, soft_wrap=False)

    def refresh(self) -> None:
        """Draw the line that is being typed anew: its prompt may have changed."""
        if self.editor is not None:
            self.editor.invalidate()

    def _print_text(self, text: str, style: str) -> None:
        text = harmless(text)
        if len(text) > _PAINTED_MAX:
            self._write(f"{text}\n")
            return
        painted = Text(text, style=style)
        if not style:
            self._highlight.highlight(painted)
        self._print(painted, soft_wrap=True)

    def _print(self, shown: RenderableType, *, soft_wrap: bool) -> None:
        written = io.StringIO()
        # It finds out by itself which colours there are, and whether they are wanted.
        console = Console(
            file=written,
            force_terminal=True,
            width=self._output.get_size().columns,
            theme=_THEME,
            highlight=False,
        )
        console.print(shown, soft_wrap=soft_wrap)
        self._write(written.getvalue())

    def _write(self, text: str) -> None:
        editor = self.editor
        if editor is None or not editor.is_running:
            if self.last_line is not None:
                text = f"\n{text}{self.last_line()}"
            self._output.write_raw(text)
            self._output.flush()
            return
        # What is typed is taken away, and drawn again below when the event loop comes to it. The
        # terminal stays as it is set, so a key that is pressed meanwhile is not shown in between.
        editor.renderer.erase()
        self._output.write_raw(text)
        self._output.flush()
        editor.invalidate()
