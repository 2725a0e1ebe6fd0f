"""A terminal for tests: a command in a real pseudo-terminal, with a screen that can be looked at.

    with terminal([*COMMAND, "shell"], columns=80, rows=24) as shell:
        shell.wait_for("(CONNECTED) 0]")
        shell.type("ls /\\r")
        shell.picture(Path("/tmp/shell.png"))

What the command writes goes through an emulator, so a test sees what a person would see, not the
bytes that made it. Waiting ends when the screen is as it should be; a deadline is for failures.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import pty
import re
import select
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

import pyte
import pytest

from tests.support.command import DEADLINE_S
from tests.support.server import POLL_S

# Keys that are not letters, as a terminal sends them.
ENTER: Final = "\r"
TAB: Final = "\t"
CONTROL_C: Final = "\x03"
CONTROL_D: Final = "\x04"
CONTROL_L: Final = "\x0c"
CONTROL_R: Final = "\x12"
ESCAPE: Final = "\x1b"
UP: Final = "\x1b[A"
DOWN: Final = "\x1b[B"
LEFT: Final = "\x1b[D"

# Makes the pseudo-terminal the controlling one, so that Ctrl-C is a signal, and becomes the
# command. A program, since running Python between fork and exec is no good where threads are.
_TAKE_TERMINAL: Final = (
    "import fcntl, os, sys, termios;"
    "fcntl.ioctl(0, termios.TIOCSCTTY, 0);"
    "os.execvp(sys.argv[1], sys.argv[1:])"
)


class _Screen(pyte.Screen):
    """Answers what a terminal is asked, such as where its cursor is."""

    def __init__(self, columns: int, rows: int, answer: Callable[[bytes], None]) -> None:
        super().__init__(columns, rows)
        self._answer = answer

    def write_process_input(self, data: str) -> None:
        self._answer(data.encode())


class Terminal:
    """A running command, and the screen that it writes on."""

    def __init__(self, process: subprocess.Popen[bytes], master: int, size: tuple[int, int]):
        self.process = process
        self._master = master
        self._screen = _Screen(*size, self._write)
        self._stream = pyte.ByteStream(self._screen)
        self._is_over = False
        # All bytes that came, for what no screen shows: colours, and lines that have scrolled away.
        self.written = bytearray()

    @property
    def lines(self) -> list[str]:
        """The lines of the screen, without what is blank at their ends."""
        return [line.rstrip() for line in self._screen.display]

    @property
    def text(self) -> str:
        """The screen as text, without the blank lines at its end."""
        return "\n".join(self.lines).rstrip("\n")

    @property
    def cursor(self) -> tuple[int, int]:
        """The column and the row where the cursor is, from 0."""
        return self._screen.cursor.x, self._screen.cursor.y

    @property
    def line(self) -> str:
        """The line where the cursor is."""
        return self.lines[self._screen.cursor.y]

    def type(self, keys: str) -> None:
        """Press keys, as fast as a paste; nothing is waited for."""
        self._write(keys.encode())

    def wait_for(self, shown: str, *, times: int = 1) -> None:
        """Wait until the screen shows a text, this often; the text may not be broken over lines."""
        self.wait_until(lambda: self.text.count(shown) >= times, f"{shown!r} × {times}")

    def wait_for_match(self, pattern: str) -> re.Match[str]:
        """Wait until something on the screen matches a pattern; `.` never spans lines."""
        compiled = re.compile(pattern, re.MULTILINE)
        self.wait_until(lambda: compiled.search(self.text) is not None, pattern)
        match = compiled.search(self.text)
        assert match is not None
        return match

    def wait_for_line(self, line: str) -> None:
        """Wait until the line with the cursor is exactly this one, but for blanks at its end."""
        self.wait_until(lambda: self.line == line.rstrip(), f"the line {line!r}")

    def wait_until(self, is_so: Callable[[], bool], what: str = "what was waited for") -> None:
        """Take in what the command writes until something is so."""
        limit = time.monotonic() + DEADLINE_S / 2
        while not is_so():
            # What has come is shown before a failure is.
            if self._is_over or not self._take_in(limit - time.monotonic()):
                state = "ended" if self._is_over else "still runs"
                raise AssertionError(f"no {what}; the command {state}; the screen:\n{self.text}")

    def wait_until_keys_are_signals(self) -> None:
        """Wait until Ctrl-C interrupts, since no line editor takes it for a key any more."""
        limit = time.monotonic() + DEADLINE_S / 2
        while not termios.tcgetattr(self._master)[3] & termios.ISIG:
            assert time.monotonic() < limit, f"a line is still edited:\n{self.text}"
            self._take_in(POLL_S)

    def wait_for_end(self) -> int:
        """Wait until the command has ended by itself; give its status."""
        limit = time.monotonic() + DEADLINE_S / 2
        while not self._is_over:
            assert self._take_in(limit - time.monotonic()), f"it does not end:\n{self.text}"
        return self.process.wait(timeout=DEADLINE_S)

    def resize(self, columns: int, rows: int) -> None:
        """Make the window larger or smaller; the command is told as usual, with SIGWINCH."""
        screen = self._screen
        # A terminal that shrinks drops the lines at its top that it must, and those at its bottom.
        dropped = max(0, screen.cursor.y - (rows - 1))
        kept = {row - dropped: cells for row, cells in screen.buffer.items()}
        screen.buffer.clear()
        screen.buffer.update({row: cells for row, cells in kept.items() if 0 <= row < rows})
        screen.cursor.y -= dropped
        screen.lines = rows
        screen.resize(lines=rows, columns=columns)
        screen.cursor.x = min(screen.cursor.x, columns - 1)
        _set_size(self._master, columns, rows)

    def hang_up(self) -> None:
        """Close the window; whatever runs in it is told by a signal, and has no terminal any more.

        Nothing is shown or typed from now on.
        """
        os.close(self._master)
        self._master = -1
        self._is_over = True

    def close(self) -> None:
        """Kill the command if it still runs, and close the window if it is still there."""
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(timeout=DEADLINE_S)
        if self._master >= 0:
            self.hang_up()

    def colors_at(self, shown: str) -> set[str]:
        """Return the colours of a text where it is last on the screen."""
        return {str(cell.fg) for cell in self._cells_of(shown)}

    def is_reversed_at(self, shown: str) -> bool:
        """Tell whether a text has its colours exchanged where it is last on the screen."""
        return all(cell.reverse for cell in self._cells_of(shown))

    def _cells_of(self, shown: str) -> list[Any]:
        found = [(row, line.rfind(shown)) for row, line in enumerate(self._screen.display)]
        row, start = [(row, start) for row, start in found if start >= 0][-1]
        return [self._screen.buffer[row][start + place] for place in range(len(shown))]

    def picture(self, file: Path) -> None:
        """Draw the screen as a PNG."""
        draw(self._screen, file)

    def _write(self, data: bytes) -> None:
        # The other side may have ended before it has read what we say.
        with contextlib.suppress(OSError):
            os.write(self._master, data)

    def _take_in(self, seconds: float) -> bool:
        """Take in what comes next; tell whether something came within that time."""
        ready, _, _ = select.select([self._master], [], [], max(0.0, seconds))
        if not ready:
            return False
        try:
            # Little at a time: what is shown only briefly is to be seen, however late we look.
            data = os.read(self._master, 2048)
        except OSError as error:
            # So Linux says that nobody has the terminal open any more.
            if error.errno != errno.EIO:
                raise
            data = b""
        if data:
            self.written += data
            self._stream.feed(data)
        else:
            self._is_over = True
        return True


@contextlib.contextmanager
def terminal(
    command: Sequence[str | Path],
    *,
    columns: int = 80,
    rows: int = 24,
    environment: Mapping[str, str | None] | None = None,
    cwd: Path | None = None,
) -> Iterator[Terminal]:
    """Run a command in a terminal of its own; at the end it is killed, if it still runs.

    `environment` is added to ours; None takes a variable away.
    """
    variables: dict[str, str | None] = {
        **os.environ,
        "TERM": "xterm-256color",
        "NO_COLOR": None,
        "COLUMNS": None,
        "LINES": None,
        **(environment or {}),
    }
    try:
        master, slave = pty.openpty()
    except OSError as error:
        # A folder with a Debian in it, say, in which nobody has mounted them.
        pytest.skip(f"this machine has no terminals (/dev/ptmx and /dev/pts): {error}")
    try:
        _set_size(master, columns, rows)
        process = subprocess.Popen(
            [sys.executable, "-IS", "-c", _TAKE_TERMINAL, *map(str, command)],
            stdin=slave,
            stdout=slave,
            stderr=slave,
            start_new_session=True,
            cwd=cwd,
            env={name: value for name, value in variables.items() if value is not None},
        )
    except BaseException:
        os.close(master)
        raise
    finally:
        # The command has it; when that ends, so does what we read.
        os.close(slave)
    seen = Terminal(process, master, (columns, rows))
    try:
        yield seen
    finally:
        seen.close()


def _set_size(opened: int, columns: int, rows: int) -> None:
    fcntl.ioctl(opened, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


# Pictures.

_BACKGROUND: Final = "#1e1e2e"
_FOREGROUND: Final = "#d8dee9"
# The names that the emulator has for the sixteen colours of a terminal; others come as hex digits.
_COLORS: Final = {
    "black": "#45475a",
    "red": "#f38ba8",
    "green": "#a6e3a1",
    "brown": "#f9e2af",
    "blue": "#89b4fa",
    "magenta": "#f5c2e7",
    "cyan": "#94e2d5",
    "white": "#bac2de",
    "brightblack": "#7f849c",
    "brightred": "#ff9db5",
    "brightgreen": "#b9f3b4",
    "brightbrown": "#fff0c0",
    "brightblue": "#a5c8ff",
    "bfightmagenta": "#ffd6f0",
    "brightmagenta": "#ffd6f0",
    "brightcyan": "#aef5e8",
    "brightwhite": "#ffffff",
}
_FONTS: Final = (
    "DejaVuSansMono.ttf",
    "/usr/share/fonts/truetype/dejavu/DejaVuSansMono.ttf",
    "LiberationMono-Regular.ttf",
    "Menlo.ttc",
)
_FONT_SIZE: Final = 16
_MARGIN: Final = 8


def draw(screen: Any, file: Path) -> None:
    """Draw a screen of the emulator as a PNG, cell by cell, so that any font will do."""
    from PIL import Image, ImageDraw

    font = _font()
    width, height = round(_FONT_SIZE * 0.62), round(_FONT_SIZE * 1.3)
    image = Image.new(
        "RGB",
        (screen.columns * width + 2 * _MARGIN, screen.lines * height + 2 * _MARGIN),
        _BACKGROUND,
    )
    pen = ImageDraw.Draw(image)
    for row in range(screen.lines):
        for column in range(screen.columns):
            cell = screen.buffer[row][column]
            foreground = _color(cell.fg, _FOREGROUND)
            background = _color(cell.bg, _BACKGROUND)
            is_cursor = (column, row) == (screen.cursor.x, screen.cursor.y)
            if bool(cell.reverse) != (is_cursor and not screen.cursor.hidden):
                foreground, background = background, foreground
            x, y = _MARGIN + column * width, _MARGIN + row * height
            if background != _BACKGROUND:
                pen.rectangle((x, y, x + width - 1, y + height - 1), fill=background)
            if cell.data.strip():
                pen.text((x, y), cell.data, fill=foreground, font=font)
                if cell.bold:
                    pen.text((x + 0.6, y), cell.data, fill=foreground, font=font)
            if cell.underscore:
                pen.line((x, y + height - 2, x + width, y + height - 2), fill=foreground)
    file.parent.mkdir(parents=True, exist_ok=True)
    image.save(file)


def _color(name: str, default: str) -> str:
    if name == "default":
        return default
    return _COLORS.get(name) or f"#{name}"


def _font() -> Any:
    from PIL import ImageFont

    for name in _FONTS:
        with contextlib.suppress(OSError):
            return ImageFont.truetype(name, _FONT_SIZE)
    return ImageFont.load_default(_FONT_SIZE)
