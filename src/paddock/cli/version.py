"""The version of Paddock, and its build: compiled, or pure Python."""

from importlib.util import find_spec
from typing import Final

import click

from paddock import __version__

# One of the modules that are compiled together, all or none. Finding it does not load it.
_WITNESS: Final = "paddock.protocol.jute"


def is_compiled() -> bool:
    """Return whether the modules that can be compiled are."""
    spec = find_spec(_WITNESS)
    assert spec is not None
    assert spec.origin is not None
    return not spec.origin.endswith(".py")


def build() -> str:
    """Return the name of this build."""
    return "compiled" if is_compiled() else "pure Python"


def print_version(context: click.Context, _: click.Parameter, is_asked_for: bool) -> None:
    """Print version and build, and exit: the callback of the option `--version`."""
    if is_asked_for and not context.resilient_parsing:
        click.echo(f"paddock {__version__}, {build()}")
        context.exit()
