"""The `paddock` command: it finds the subcommand and makes a failure one line and a status.

Status 2 means that the command was given wrongly, an option or a `zoo.cfg`; 1 that it could not be
done. Nothing heavy is imported here: a subcommand's module is imported when it is asked for.
"""

import io
import os
import sys
from collections.abc import Sequence
from importlib import import_module
from typing import NoReturn

import click

from paddock.cli.version import print_version

# By section and name: the module and the function in it, and what the list of commands says.
_SECTIONS = {
    "Try it": {
        "demo": ("commands.demo:demo", "See locks, elections and queues, with real processes."),
        "shell": ("shell.entry:shell", "Run commands of ZooKeeper's shell, as zkCli does."),
    },
    "Run a server": {
        "serve": ("commands.serve:serve", "Run a server."),
        "cluster": ("commands.cluster:cluster", "Run several servers as one service."),
        "status": ("commands.status:command", "Show how servers are, live."),
        "dashboard": ("commands.dashboard:dashboard", "Show a service in a browser."),
        "bench": ("commands.bench:command", "Measure how fast a service is."),
        "backup": (
            "commands.backup:backup",
            "Write a backup of a data folder, also while a server runs.",
        ),
        "restore": ("commands.restore:restore", "Restore a backup, also while a server runs."),
        "fsck": ("commands.fsck:fsck", "Check a data folder, and repair a copy of it."),
        "upgrade": (
            "commands.upgrade:upgrade",
            "Take over the data of an Apache ZooKeeper server.",
        ),
    },
    "Look at nodes and change them": {
        "ls": ("commands.reading:ls", "List the children of a node."),
        "get": ("commands.reading:get", "Write the data of a node to stdout."),
        "set": ("commands.writing:set_", "Replace the data of a node."),
        "create": ("commands.writing:create", "Create a node and print its path."),
        "delete": ("commands.writing:delete", "Delete nodes, or whole trees."),
        "stat": ("commands.reading:stat", "Say what is known of a node beside its data."),
        "acl": ("commands.acl:acl", "Show or replace the ACL of a node."),
        "tree": ("commands.reading:tree", "Draw a node and everything below it."),
        "find": ("commands.find:command", "Find nodes by name, data, owner, age or size."),
        "watch": ("commands.watch:command", "Say what happens to a node, line by line."),
        "changes": ("commands.changes:command", "Write every change below a node as JSON lines."),
        "export": ("commands.export:export", "Write a tree of a service to a file."),
        "import": (
            "commands.importing:import_",
            "Read a tree from a file, or from another service.",
        ),
    },
    "Look at the past": {
        "history": ("commands.history:history", "Print every change of a node."),
        "explain": ("commands.explain:explain", "Say what became of a session or a lock, and why."),
        "diff": ("commands.history:diff", "Print what is different between two moments."),
    },
    "Coordinate programs": {
        "lock": ("commands.lock:lock", "Run a command while holding a lock."),
        "elect": ("commands.lock:elect", "Run a command while leading."),
    },
}
_COMMANDS = {name: one for section in _SECTIONS.values() for name, one in section.items()}

# What stands here for a flag of zkCli's command of the same name.
_FLAGS_OF_ZKCLI = {
    ("create", "-s"): "--sequential",
    ("create", "-e"): "--ephemeral",
    ("create", "-c"): "--container",
    ("create", "-t"): "--ttl, in seconds,",
    ("get", "-s"): "--stat",
    ("get", "-w"): "`paddock watch`",
    ("ls", "-s"): "--long",
    ("ls", "-w"): "`paddock watch`",
    ("stat", "-w"): "`paddock watch`",
    ("set", "-v"): "--version",
    ("delete", "-v"): "--version",
}

# Arguments that may begin with a hyphen.
_BEHIND_DASHES = {
    "command": " Put -- before a command that has options.",
    "data": " Put -- before DATA that begins with a hyphen.",
}

# The status of a program that SIGPIPE has ended.
_BROKEN_PIPE = 128 + 13


class _Commands(click.Group):
    """Lists the commands without importing them."""

    def list_commands(self, context: click.Context) -> list[str]:
        return list(_COMMANDS)

    def get_command(self, context: click.Context, name: str) -> click.Command | None:
        if name not in _COMMANDS:
            return None
        module, _, function = _COMMANDS[name][0].partition(":")
        command = getattr(import_module(f"paddock.cli.{module}"), function)
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, context: click.Context, arguments: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        name = arguments[0]
        if name not in _COMMANDS and not name.startswith("-"):
            # Click would suggest one of those that it knows, which are none.
            from difflib import get_close_matches

            near = get_close_matches(name, _COMMANDS, n=1) if name != "help" else []
            hint = f"Did you mean {near[0]!r}?" if near else "`paddock --help` lists them."
            raise click.UsageError(f"No such command {name!r}. {hint}")
        return super().resolve_command(context, arguments)

    def invoke(self, context: click.Context) -> object:
        try:
            status: object = super().invoke(context)
            # Not at the interpreter's exit, where an error cannot be caught.
            sys.stdout.flush()
        except BrokenPipeError:
            # As `paddock ls / | head -1` ends. Click would make it status 1, that of a failure.
            # The interpreter flushes stdout at exit, and would fail.
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
            return _BROKEN_PIPE
        return status

    def format_commands(self, context: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, _COMMANDS))
        for title, names in _SECTIONS.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), says) for name, (_, says) in names.items()])


@click.group(cls=_Commands, context_settings={"help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    is_eager=True,
    expose_value=False,
    callback=print_version,
    help="Show the version and exit.",
)
def paddock() -> None:
    """ZooKeeper for Python: a durable server that any ZooKeeper client can use."""


def main(arguments: Sequence[str] | None = None) -> NoReturn:
    """Run the command and leave with its status; a failure is one line on stderr."""
    _occupy_standard_streams()
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.encoding.lower() != "utf-8":
        # A name that cannot be written is shown by its numbers, and is no reason to fail.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        status = paddock.main(arguments, prog_name="paddock", standalone_mode=False)
    except click.exceptions.NoArgsIsHelpError as shown:
        # Without a subcommand the help is printed, but the status is that of an error.
        click.echo(shown.format_message(), err=True)
        sys.exit(shown.exit_code)
    except click.ClickException as error:
        said = " ".join(error.format_message().split())
        context = error.ctx if isinstance(error, click.UsageError) else None
        if context is not None and isinstance(error, click.NoSuchOption):
            said += _what_is_meant(error.option_name, context)
        elif context is not None and isinstance(context.command, click.Group):
            *names, last = context.command.list_commands(context)
            said += f" There are {', '.join(names)} and {last}."
        click.echo(f"paddock: {said}", err=True)
        sys.exit(error.exit_code)
    except click.Abort:
        # Ctrl-C before there was anything to stop.
        sys.exit(130)
    sys.exit(status if isinstance(status, int) else 0)


def _what_is_meant(option: str, context: click.Context) -> str:
    """Return what may help with an option that a command does not have."""
    if meant := _FLAGS_OF_ZKCLI.get((context.info_name or "", option)):
        return f" zkCli's {option} is {meant} here."
    # What follows the command of `paddock shell` is never taken for an option.
    if not context.allow_interspersed_args:
        return ""
    arguments = {one.name for one in context.command.params if isinstance(one, click.Argument)}
    return "".join(says for name, says in _BEHIND_DASHES.items() if name in arguments)


def _occupy_standard_streams() -> None:
    """Open /dev/null for each of stdin, stdout and stderr that is closed.

    The next file or socket would take the number, and what is written to stderr would go there.
    """
    # The system gives the lowest number that is free; 0 to 2 are then taken.
    while (opened := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(opened, True)
    os.close(opened)
    for number, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            opened_as = "w" if number else "r"
            setattr(sys, name, os.fdopen(number, opened_as, encoding="utf-8", closefd=False))
