"""The version of Paddock that runs, and how it was built: compiled, or as plain Python."""

from importlib.util import find_spec
from typing import Final

import click

from paddock import __version__

# One of the modules that are compiled together, all or none. To find it is not to load it.
_WITNESS: Final = "paddock.protocol.opcodes"


def is_compiled() -> bool:
    """Tell whether the modules that can be compiled are."""
    spec = find_spec(_WITNESS)
    assert spec is not None
    assert spec.origin is not None
    return not spec.origin.endswith(".py")


def print_version(context: click.Context, _: click.Parameter, is_asked_for: bool) -> None:
    """Print both in one line and leave: what the option `--version` does."""
    if is_asked_for and not context.resilient_parsing:
        built = "compiled" if is_compiled() else "pure Python"
        click.echo(f"paddock {__version__}, {built}")
        context.exit()
