"""What `help` shows on a terminal: all commands, or all about one of them."""

import difflib
import re
from typing import Final

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from paddock.cli.shell.commands import COMMANDS
from paddock.cli.shell.shell import ALIASES, Argument, Command
from paddock.cli.shell.texts import CommandError

# What a command is looked for by; one that is nowhere here stands at the end.
_CHAPTERS: Final = (
    ("Look", ("ls", "get", "stat", "getAllChildrenNumber", "getEphemerals", "sync")),
    ("Change", ("create", "set", "delete", "deleteall")),
    ("Watch", ("addWatch", "removewatches", "printwatches")),
    ("Permit", ("addauth", "whoami", "getAcl", "setAcl")),
    ("Limit", ("setquota", "listquota", "delquota")),
    ("Ensemble", ("config", "reconfig")),
    ("Shell", ("connect", "close", "history", "redo", "version", "quit")),
)

# What upstream's shell had before, and what fingers know from elsewhere.
_OTHER_NAMES: Final = {"rmr": "deleteall", "ls2": "ls -s", "rm": "delete", "cat": "get"}

_CLASS_OF_UPSTREAM: Final = re.compile(r"^(?:[a-z]+\.)+[A-Z]\w*Exception: ")

_KEYS: Final = (
    "\nhelp COMMAND tells more. Tab completes commands, flags and paths; the arrow keys and Ctrl-R"
    " find what was typed before; Ctrl-C drops a line or stops a command."
)


# The terminal carries it out itself; the function is never called.
HELP: Final = Command(
    "help",
    "[command]",
    "Describe all commands, or one of them.",
    COMMANDS["version"].run,
    arguments=(Argument("command", choices=tuple(COMMANDS)),),
)


def all_commands(rows: int) -> RenderableType:
    """Show every command, with a line about it if there are so many rows."""
    chapters = [(title, [COMMANDS[name] for name in names]) for title, names in _CHAPTERS]
    named = {command.name for _, commands in chapters for command in commands}
    if rest := [command for command in COMMANDS.values() if command.name not in named]:
        chapters.append(("More", rest))
    is_short = rows < len(COMMANDS) + len(chapters) + 5
    table = _table()
    for title, commands in chapters:
        if is_short:
            table.add_row(title, " ".join(command.name for command in commands))
        else:
            table.add_row(Text(title, style="bold"), "")
            for command in commands:
                table.add_row(f"  {command.name}", command.says)
    return Group(table, Text(_KEYS, style="shell.note"))


def one_command(name: str) -> RenderableType:
    """Show how a command is used; raises `CommandError` if there is none of this name."""
    command = COMMANDS.get(ALIASES.get(name, name))
    if command is None:
        raise CommandError(unknown(name))
    known = () if command.flags is None else command.flags.known
    # With the flags that zkCli's own usage leaves out.
    missing = [
        f"[-{flag.name}] "
        for flag in known
        if flag.name.isalpha() and not re.search(rf"-{flag.name}\b", command.usage)
    ]
    before, path, behind = command.usage.partition("path")
    whole = f" {before}{''.join(missing)}{path}{behind}".rstrip()
    usage = Text.assemble((command.name, "shell.name"), whole)
    table = _table()
    for flag in known:
        table.add_row(f"  -{flag.name}{' …' if flag.takes_value else ''}", flag.says)
    flags = (Text(""), table) if known else ()
    return Group(usage, Text(f"\n{command.says}"), *flags)


def unknown(name: str) -> str:
    """Return a line about an unknown command, with a suggestion."""
    by_lower = {known.lower(): known for known in COMMANDS} | _OTHER_NAMES
    near = difflib.get_close_matches(name.lower(), by_lower, n=1)
    hint = f"did you mean {by_lower[near[0]]}?" if near else "help lists all commands"
    return f"Command not found {name}: {hint}"


def reworded(complaint: str) -> str:
    """Return a message without the Java class that zkCli prints before it."""
    return _CLASS_OF_UPSTREAM.sub("", complaint)


def _table() -> Table:
    table = Table.grid(padding=(0, 2))
    table.add_column(no_wrap=True, style="shell.name")
    table.add_column()
    return table
