"""A progress bar on a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator
from typing import TypeAlias

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
