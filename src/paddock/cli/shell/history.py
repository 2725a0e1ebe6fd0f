"""The lines that were typed, kept from one run of the shell to the next.

They are in `$XDG_STATE_HOME/paddock/shell_history`, one line each, the newest last, readable by
their owner alone. A repeated line moves to the end. Several shells may share the file. Lines that
begin with a blank or have credentials in them are not written, but the arrow keys fetch them back
as long as the shell runs. A history that cannot be read or written is empty, and no error.
"""

import contextlib
import errno
import fcntl
import functools
import os
import re
import stat
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import IO, Final

from prompt_toolkit.history import History

LINES_MAX: Final = 2000
# No more than the end of a file is read, and no longer line is kept: data may be pasted.
_FILE_BYTES_MAX: Final = 4 * 1024 * 1024
_LINE_CHARACTERS_MAX: Final = 4096

# An `addauth`, whatever its scheme; and ACLs by digest, whose hashes are as good as passwords that
# can be guessed.
_SECRET: Final = re.compile(
    r"""^\s*["']?addauth\b|(?:^|[\s,"'])(?:digest|auth):\S+:""", re.IGNORECASE
)


def history_file(environment: Mapping[str, str]) -> Path:
    """Return the path of the history, by the XDG base directory specification."""
    state = environment.get("XDG_STATE_HOME", "")
    # A path that is not absolute is to be ignored, they say.
    base = Path(state) if os.path.isabs(state) else Path("~/.local/state").expanduser()
    return base / "paddock" / "shell_history"


def may_be_kept(line: str) -> bool:
    """Return whether a line may be written to the file."""
    return (
        bool(line.strip())
        and not line[0].isspace()
        and line.isprintable()
        and len(line) <= _LINE_CHARACTERS_MAX
        and _SECRET.search(line) is None
    )


class ShellHistory(History):
    """A history in a file, in which every line is there once."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    async def load(self) -> AsyncGenerator[str, None]:
        """Yield the lines, the newest first."""
        for line in reversed(self.get_strings()):
            yield line

    def get_strings(self) -> list[str]:
        """Return the lines, the newest last."""
        return list(self._lines)

    def append_string(self, string: str) -> None:
        """Take in what was typed; something pasted may be several lines."""
        for line in string.splitlines():
            self._lines.pop(line, None)
            self._lines[line] = None
            self.store_string(line)

    def load_history_strings(self) -> Iterable[str]:
        """Return the lines of the file, the newest first."""
        return reversed(self._read())

    def store_string(self, string: str) -> None:
        """Add a line to the file, if it may be kept."""
        if not may_be_kept(string):
            return
        with contextlib.suppress(OSError), self._opened() as stream:
            stream.seek(max(0, stream.seek(0, os.SEEK_END) - 1))
            if stream.read(1) not in (b"", b"\n"):
                # The last write was interrupted.
                stream.write(b"\n")
            stream.write(f"{string}\n".encode())

    @functools.cached_property
    def _lines(self) -> dict[str, None]:
        """The lines in the order of their last use, the newest last."""
        return dict.fromkeys(self._read())

    def _read(self) -> list[str]:
        """Return the lines of the file, the newest last; truncate a long file."""
        try:
            with self._opened() as stream:
                size = stream.seek(0, os.SEEK_END)
                stream.seek(max(0, size - _FILE_BYTES_MAX))
                whole = stream.read().decode("utf-8", "replace").splitlines()
                if size > _FILE_BYTES_MAX:
                    # Its first line may have lost its beginning.
                    whole = whole[1:]
                newest_first = dict.fromkeys(filter(may_be_kept, reversed(whole)))
                lines = [*newest_first][LINES_MAX - 1 :: -1]
                if len(whole) > 2 * LINES_MAX or size > _FILE_BYTES_MAX:
                    stream.seek(0)
                    stream.write("".join(f"{line}\n" for line in lines).encode())
                    stream.truncate()
                return lines
        except OSError:
            return []

    @contextlib.contextmanager
    def _opened(self) -> Iterator[IO[bytes]]:
        """Open the file with an exclusive lock."""
        self._file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        opened = os.open(self._file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NONBLOCK, 0o600)
        with os.fdopen(opened, "r+b") as stream:
            mode = os.fstat(opened).st_mode
            if not stat.S_ISREG(mode):
                # A link to /dev/null, for example, switches the history off.
                raise OSError(errno.EINVAL, "is not a file", str(self._file))
            fcntl.flock(opened, fcntl.LOCK_EX)
            if mode & 0o077:
                os.fchmod(opened, 0o600)
            yield stream
