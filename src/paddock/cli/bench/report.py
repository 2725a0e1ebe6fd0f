"""The report of a benchmark: a table, line by line as it is measured, or one JSON document.

On a terminal it has colours, and a last line that says what is measured now. All lines are of one
width, so none has to wait for the next one.
"""

import platform
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Final

import click

from paddock import __version__
from paddock.cli.bench.plan import Cell, Plan
from paddock.cli.bench.tally import BUSY, Measurement
from paddock.cli.output import counted, print_json, size_text
from paddock.cli.version import build
from paddock.monitor import Figures

_LATENCY_WIDTH: Final = 5
_TITLES: Final = (
    *("operation", "clients", "window", "ops/s"),
    *("p50 ms", "p99", "p99.9", "max"),
    *("CPU", "errors"),
)
_WIDTHS: Final = (9, 7, 6, 8, 6, _LATENCY_WIDTH, _LATENCY_WIDTH, _LATENCY_WIDTH, 4, 6)


class Report:
    """Receives the results; this one prints a JSON document at the end."""

    def __init__(self) -> None:
        self._measured: list[Measurement] = []

    @contextmanager
    def telling(self, plan: Plan, path: str, servers: Sequence[Figures]) -> Iterator[None]:
        """Report what will be done and, at the end of this scope, what came of it."""
        if sys.stderr.isatty():
            for line in opening(plan, path, servers):
                click.echo(line, err=True)
        yield
        shown = ("server", "mode", "version", "build")
        settings = ("seconds", "clients", "window", "size", "watchers")
        print_json(
            {
                "servers": [{name: getattr(one, name) for name in shown} for one in servers],
                "client": {
                    "version": __version__,
                    "build": build(),
                    "python": platform.python_version(),
                },
                "path": path,
                **{name: getattr(plan, name) for name in settings},
                "cells": [one.fields() for one in self._measured],
            }
        )

    def announce(self, cell: Cell) -> None:
        """Report what is measured now."""

    def add(self, measured: Measurement) -> None:
        """Report a result."""
        self._measured.append(measured)


class PlainReport(Report):
    """Lines for a pipe, each as soon as it is known."""

    @contextmanager
    def telling(self, plan: Plan, path: str, servers: Sequence[Figures]) -> Iterator[None]:
        for line in [*opening(plan, path, servers), ""]:
            self._say(line)
        self._say(joined(_TITLES), "bright_black")
        with self._measuring(len(plan.cells())):
            yield
        self._say("")
        for line in closing(self._measured):
            self._say(line, "bright_black")

    @contextmanager
    def _measuring(self, cells: int) -> Iterator[None]:
        yield

    def add(self, measured: Measurement) -> None:
        super().add(measured)
        self._say(joined(row(measured)))

    def _say(self, line: str, style: str = "") -> None:
        print(line, flush=True)


class TerminalReport(PlainReport):
    """The same on a terminal, with colours, and a last line that says what is measured."""

    def __init__(self) -> None:
        from rich.console import Console
        from rich.live import Live

        super().__init__()
        self._console = Console(highlight=False)
        self._live = Live(console=self._console, auto_refresh=False, transient=True)
        self._cells = 0

    @contextmanager
    def _measuring(self, cells: int) -> Iterator[None]:
        self._cells = cells
        with self._live:
            yield

    def announce(self, cell: Cell) -> None:
        from rich.text import Text

        now = f"{len(self._measured) + 1} of {self._cells}: {cell.operation}. Ctrl-C ends it."
        self._live.update(Text(now, "bright_black"), refresh=True)

    def add(self, measured: Measurement) -> None:
        from rich.text import Text

        self._measured.append(measured)
        line = Text(no_wrap=True)
        for title, width, text in zip(_TITLES, _WIDTHS, row(measured), strict=True):
            line.append(_aligned(title, width, text), _style(title, measured))
            line.append("  ")
        line.rstrip()
        self._console.print(line, soft_wrap=True)

    def _say(self, line: str, style: str = "") -> None:
        from rich.text import Text

        self._console.print(Text(line, style), soft_wrap=True)


def opening(plan: Plan, path: str, servers: Sequence[Figures]) -> list[str]:
    """Return the lines before the table: servers, client, load."""
    cells = f"{counted(len(plan.cells()), 'cell')} of {plan.seconds:g} s"
    python = f"Python {platform.python_version()}"
    load = f"up to {counted(plan.clients, 'client')}, {plan.window} requests under way each"
    return [
        *(f"server     {_server(one)}" for one in servers),
        f"client     paddock {__version__}, {build()}, on {python}, one process",
        f"load       {load}, {size_text(plan.size)} of data",
        f"path       {path}, removed at the end",
        f"time       {cells}, about {plan.seconds_in_all():.0f} s in all",
    ]


def row(measured: Measurement) -> list[str]:
    """Return the cells of a line."""
    cell = measured.cell
    return [
        cell.operation,
        str(cell.clients),
        str(cell.window),
        f"{measured.rate:,.0f}" if measured.rate >= 10 else f"{measured.rate:.1f}",
        *map(_latency, (measured.p50_ms, measured.p99_ms, measured.p999_ms, measured.max_ms)),
        f"{measured.client_cpu:.0%}",
        str(measured.refusals),
    ]


def _latency(milliseconds: float | None) -> str:
    """Return as many digits as there is room for: 0.123, 12.34, 12345."""
    if milliseconds is None:
        return "-"
    return f"{milliseconds:.3f}"[:_LATENCY_WIDTH].rstrip(".")


def joined(texts: Sequence[str]) -> str:
    """Return a line of the table."""
    return "  ".join(map(_aligned, _TITLES, _WIDTHS, texts))


def closing(measured: Sequence[Measurement]) -> list[str]:
    """Return the lines after the table: refused requests, and how to read it."""
    lines = [
        f"{one.cell.operation}: {counted(one.refusals, 'request')} refused: {one.problem}"
        for one in measured
        if one.refusals
    ]
    busy = sum(one.is_client_busy for one in measured)
    if busy:
        lines.append(
            f"In {busy} of {counted(len(measured), 'cell')} the client was busy all the time"
            f" (CPU {BUSY:.0%} or more): there it is the limit, and the server may do more."
        )
    else:
        lines.append(
            f"The client never used {BUSY:.0%} of a processor: it was not the limit, unless other"
            " programs kept it from running."
        )
    return lines


def _server(figures: Figures) -> str:
    if figures.problem is not None:
        return f"{figures.server}, which says nothing of itself: {figures.problem}"
    built = "" if figures.build is None else f", {figures.build}"
    return f"{figures.server}, {figures.mode}, {figures.version}{built}"


def _aligned(title: str, width: int, text: str) -> str:
    return text.ljust(width) if title == "operation" else text.rjust(width)


def _style(title: str, measured: Measurement) -> str:
    if title == "ops/s":
        return "bold"
    if title == "CPU" and measured.is_client_busy:
        return "yellow"
    if title == "errors" and measured.refusals:
        return "bold red"
    return ""
