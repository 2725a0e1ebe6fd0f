"""What commands print: results as JSON for programs and as short text for people, and failures.

A failure is one line and a status. Data are bytes and JSON has none, so `encoding` says what stands
in `data`: "utf-8", the text that they are, or "base64". Sessions are text in hexadecimal, as in
ZooKeeper's own tools: most programs read the numbers of JSON as doubles, which such large ones do
not fit.
"""

import base64
import codecs
import contextlib
import json
import shlex
import shutil
import sys
import unicodedata
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any, TypeAlias

import click

from paddock.errors import InvalidArgumentError, PaddockError, RequestError
from paddock.protocol.records import Stat


class CannotBeDone(click.ClickException):
    """The arguments are right, and the command failed: status 1 unless another one is given."""

    def __init__(self, message: str, status: int = 1) -> None:
        super().__init__(message)
        # Click takes it from the instance as well.
        self.exit_code = status  # type: ignore[misc]


def line_about(error: PaddockError, hint: str = "") -> str:
    """Return one line about an error: the path of the node, the reason, and what may help.

    The operation is left out: `paddock tree` would report that `exists` failed.
    """
    text = str(error)
    if isinstance(error, RequestError) and text.startswith(f"{error.operation} {error.path}: "):
        # The error's own hint names an option of Python's.
        text = text.removeprefix(f"{error.operation} ").removesuffix(f"; {error.hint}")
    return f"{text}; {hint}" if hint else text


@contextlib.contextmanager
def one_line() -> Iterator[None]:
    """Turn errors of ours and of the system into one line and a status."""
    try:
        yield
    except InvalidArgumentError as error:
        # Refused by the client before a request: an argument is wrong.
        raise click.UsageError(str(error)) from None
    except PaddockError as error:
        raise CannotBeDone(line_about(error)) from None
    except BrokenPipeError:
        # stdout is closed: main.py handles it.
        raise
    except TimeoutError as error:
        raise CannotBeDone(error.strerror or str(error) or "it took too long") from None
    except MemoryError:
        raise CannotBeDone("this takes more memory than there is, or than a limit allows") from None
    except OSError as error:
        reason = error.strerror or str(error)
        raise CannotBeDone(
            reason if error.filename is None else f"{error.filename}: {reason}"
        ) from None


def own_command() -> str:
    """Return how to call this command, also in an environment that is not activated."""
    script = Path(sys.executable).with_name("paddock")
    if shutil.which("paddock") is not None:
        return "paddock"
    if not script.is_file():
        return f"{shlex.quote(sys.executable)} -m paddock"
    # Below the folder that we are in, if that is still there.
    with contextlib.suppress(OSError, ValueError):
        script = script.relative_to(Path.cwd())
    return shlex.quote(str(script))


def owner_text(stat: Stat) -> str | None:
    """Name the session that an ephemeral node belongs to: hexadecimal, without a sign."""
    return f"0x{stat.ephemeral_owner & (1 << 64) - 1:x}" if stat.ephemeral_owner else None


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Say how many: `1 node`, `2 nodes`, `2 children`."""
    return f"{number} {noun if number == 1 else plural or f'{noun}s'}"


def size_text(size: int) -> str:
    """Write a size for people: `512 B`, `1.5 kB`."""
    if size < 1024:
        return f"{size} B"
    power = min((size.bit_length() - 1) // 10, 3)
    return f"{size / 1024**power:.1f} {' kMG'[power]}B"


def duration_text(seconds: float) -> str:
    """Write how long something lasts by its two largest units: `3d 4h`, `12s`."""
    left = int(seconds)
    parts: list[str] = []
    for unit, length in (("d", 86_400), ("h", 3600), ("m", 60), ("s", 1)):
        if left >= length or (unit == "s" and not parts):
            parts.append(f"{left // length}{unit}")
            left %= length
    return " ".join(parts[:2])


def stat_fields(stat: Stat | None) -> dict[str, Any]:
    """Return the JSON fields of a stat."""
    if stat is None:
        return {"stat": None}
    return {"stat": {**stat._asdict(), "ephemeral_owner": owner_text(stat)}}


def data_fields(data: bytes | None) -> dict[str, Any]:
    """Return the JSON fields of data."""
    if data is None:
        return {"data": None, "encoding": None}
    try:
        return {"data": data.decode(), "encoding": "utf-8"}
    except UnicodeDecodeError:
        return {"data": base64.b64encode(data).decode(), "encoding": "base64"}


def print_json(document: object) -> None:
    """Print a document as one line, which a reader of lines gets at once."""
    # In ASCII, so that no terminal and no locale can spoil it.
    sys.stdout.write(json.dumps(document) + "\n")
    sys.stdout.flush()


def time_text(time_ms: int) -> str:
    """Write a time for people, in their zone."""
    try:
        return datetime.fromtimestamp(time_ms / 1000).astimezone().strftime("%Y-%m-%d %H:%M:%S")
    except (OverflowError, ValueError, OSError):
        # What a server says need not be a time.
        return str(time_ms)


def long_line(stat: Stat | None, name: str) -> str:
    """Return a node as a line of a long list; with dashes if nothing of it may be read."""
    if stat is None:
        return f"{'-':>6}  {'-':>8}  {'-':>6}  {'-':>19}  {'-':>18}  {name}"
    return (
        f"{stat.version:>6}  {stat.data_length:>8}  {stat.num_children:>6}"
        f"  {time_text(stat.mtime)}  {owner_text(stat) or '-':>18}  {name}"
    )


def stat_lines(stat: Stat) -> list[str]:
    """Return a stat as lines, with the names that JSON has."""
    shown = {
        "czxid": f"0x{stat.czxid:x}",
        "mzxid": f"0x{stat.mzxid:x}",
        "pzxid": f"0x{stat.pzxid:x}",
        "ctime": time_text(stat.ctime),
        "mtime": time_text(stat.mtime),
        "version": stat.version,
        "cversion": stat.cversion,
        "aversion": stat.aversion,
        "ephemeral_owner": owner_text(stat) or "-",
        "data_length": stat.data_length,
        "num_children": stat.num_children,
    }
    return [f"{name:15}  {value}" for name, value in shown.items()]


def shown_data(data: bytes) -> str:
    """Write data for a terminal: text as it is, but harmless, or else bytes in hexadecimal."""
    try:
        text = data.decode()
    except UnicodeDecodeError:
        rows = (data[start : start + 16] for start in range(0, len(data), 16))
        return "".join(f"{16 * number:08x}  {row.hex(' ')}\n" for number, row in enumerate(rows))
    lines = ("\t".join(map(harmless, line.split("\t"))) for line in text.split("\n"))
    return "\n".join(lines) + ("\n" if text and not text.endswith("\n") else "")


def preview(data: bytes, width: int = 60) -> str:
    """Show the beginning of some data on one line; what is no text as hexadecimal digits."""
    try:
        # A character has four bytes at the most, and the last one may be cut.
        decoder = codecs.getincrementaldecoder("utf-8")()
        text = harmless(decoder.decode(data[: 4 * width], final=len(data) < 4 * width))
    except UnicodeDecodeError:
        text = f"0x{data[:width].hex()}"
    return text if len(text) <= width else f"{text[: width - 1]}…"


def tell_problem(problem: PaddockError, hint: str = "") -> int:
    """Print one line to stderr about a failure after which the command goes on; return 1."""
    click.echo(f"paddock: {line_about(problem, hint)}", err=True)
    return 1


def harmless(text: str) -> str:
    """Write what a terminal would obey as an escape sequence of Python, which it shows."""
    return "".join(
        one.encode("unicode_escape").decode()
        if one != " " and unicodedata.category(one)[0] in "CZ"
        else one
        for one in text
    )


# Is told how many more are done.
Advance: TypeAlias = Callable[[int], None]


def is_watched() -> bool:
    """Return whether a progress bar would be seen."""
    return sys.stderr.isatty()


@contextlib.contextmanager
def progress(what: str, total: int | None, *, is_shown: bool = True) -> Iterator[Advance]:
    """Show a bar on stderr, if that is a terminal; without a total it only counts."""
    if not (is_shown and is_watched()):
        yield lambda _: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        console=Console(stderr=True),
        # What stays is the line about the result.
        transient=True,
    )
    with bar:
        task = bar.add_task(what, total=total)
        yield lambda more: bar.advance(task, more)
