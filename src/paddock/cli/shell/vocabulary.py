"""What completion offers for each command of the shell, taken from the catalogue of commands."""

from __future__ import annotations

from typing import Final

from paddock.cli.shell.commands import COMMANDS, Command
from paddock.cli.shell.completion import Offer, Words

# What the value of a flag may be, where there is a choice.
_VALUES: Final = {("addWatch", "-m"): ("PERSISTENT", "PERSISTENT_RECURSIVE")}


def words_of_commands() -> dict[str, Words]:
    """Give what completion offers for each command, in the order of their names."""
    found = {name: _words_of(command) for name, command in COMMANDS.items()}
    names = tuple(Offer(name, command.says) for name, command in COMMANDS.items())
    found["help"] = Words("Tell about all commands, or about one.", arguments=names)
    return dict(sorted(found.items(), key=lambda item: item[0].lower()))


def _words_of(command: Command) -> Words:
    known = command.flags.known if command.flags is not None else ()
    first = command.arguments[0] if command.arguments else None
    return Words(
        command.says,
        tuple(Offer(f"-{flag.name}", flag.says) for flag in known),
        {
            f"-{flag.name}": _VALUES.get((command.name, f"-{flag.name}"), ())
            for flag in known
            if flag.takes_value
        },
        tuple(Offer(choice) for choice in first.choices) if first is not None else (),
        takes_path=any(argument.is_path for argument in command.arguments),
    )
