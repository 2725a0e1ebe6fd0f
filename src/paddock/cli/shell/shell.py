"""The shell: it runs commands line by line and prints what zkCli prints.

    shell = Shell("127.0.0.1:2181", Settings(), COMMANDS, out=print, err=print)
    await shell.connect(shell.hosts)
    await shell.execute("ls /")

The shell is the context that every command receives; the table of commands is handed to it, so
that no command imports the table. It knows nothing of terminals and pipes: its owner reads the
lines and says where output goes. Events are printed as they arrive, also while a command runs.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Final, Protocol

from paddock.cli.shell.connection import Connection, Settings
from paddock.cli.shell.parsing import Flags, Given, words
from paddock.cli.shell.texts import CommandError, UsageError, check_path, event_line, line_about
from paddock.client.client import Client
from paddock.client.session.hosts import parse_hosts
from paddock.client.states import Event, EventType
from paddock.client.watches.watches import ClientWatches, WatchKind
from paddock.errors import PaddockError

ALIASES: Final = {"exit": "quit"}

_USAGE: Final = "ZooKeeper -server host:port -client-configuration properties-file cmd args"

# The events of removed watches, in the order in which they are reported.
_REMOVED: Final = {
    WatchKind.CHILDREN: EventType.CHILD_WATCH_REMOVED,
    WatchKind.DATA: EventType.DATA_WATCH_REMOVED,
    WatchKind.PERSISTENT: EventType.PERSISTENT_WATCH_REMOVED,
    WatchKind.RECURSIVE: EventType.PERSISTENT_WATCH_REMOVED,
}


class Print(Protocol):
    """Prints a text of one or more lines, and what ends it."""

    def __call__(self, text: str, end: str = "\n") -> None: ...


@dataclass(frozen=True, slots=True)
class Argument:
    """An argument of a command, for completion."""

    name: str
    is_path: bool = False
    choices: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Command:
    """A command of the shell."""

    name: str
    # What follows the name in its usage; zkCli's text, to the letter.
    usage: str
    says: str
    run: "Callable[[Shell, Given], Awaitable[None]]"
    # None: no flags are parsed, every word is an argument.
    flags: Flags | None = None
    arguments: tuple[Argument, ...] = ()
    # With fewer or more arguments the usage is printed instead.
    fewest: int = 0
    most: int | None = None
    # A deprecated form with one more argument, and the form to use instead. If the argument asked
    # for a watch, it is taken for the flag of today.
    old_form: str = ""
    new_form: str = ""
    # Whether it concerns the shell alone, and works without a session.
    is_own: bool = False
    # Whether zkCli prints the flags as well when the command is used wrongly.
    explains_flags: bool = False

    @property
    def usage_line(self) -> str:
        return f"{self.name} {self.usage}"

    @property
    def complaint(self) -> str:
        """The text for a command that is used wrongly."""
        if not self.explains_flags or self.flags is None:
            return self.usage_line
        shown = {
            f"-{flag.name} <arg>" if flag.takes_value else f"-{flag.name}": flag.says
            for flag in sorted(self.flags.known, key=lambda flag: flag.name)
        }
        width = max(map(len, shown)) + 3
        rows = [f" {name:<{width}}{says}" for name, says in shown.items()]
        return "\n".join([self.usage_line, *rows, ""])


class Watches:
    """The record of the watches that the shell has set, by path and kind.

    zkCli's client reports watches that are removed; ours does not, so the shell does it.
    """

    def __init__(self) -> None:
        self._noted = ClientWatches()

    def add(self, path: str, kind: WatchKind) -> None:
        noted = self._noted
        tables = {
            WatchKind.CHILDREN: noted.child,
            WatchKind.DATA: noted.data,
            WatchKind.PERSISTENT: noted.persistent,
            WatchKind.RECURSIVE: noted.recursive,
        }
        # Its watcher does nothing: the shell prints events itself.
        noted.add(tables[kind], path.encode(), lambda event: None)

    def take(self, event: Event) -> None:
        """Record an event: one-time watches end with it."""
        if event.path is not None:
            self._noted.take(event.type, event.path.encode())

    def remove(self, path: str, kind: WatchKind) -> list[EventType]:
        """Remove watches; return the events that report it."""
        # The two modes of persistent watches have one event.
        told = {
            event: None
            for one, event in _REMOVED.items()
            if kind in (one, WatchKind.ANY) and self._noted.remove(path.encode(), one)
        }
        return list(told)


class Shell:
    """Runs commands, and keeps the state that lives between them."""

    def __init__(
        self,
        hosts: str,
        settings: Settings,
        commands: Mapping[str, Command],
        *,
        out: Print,
        err: Print,
        complain: Print | None = None,
        tell: Callable[[str], None] | None = None,
        unknown: Callable[[str], str] | None = None,
        unconnected: str = "Not connected",
        keeps_trying: bool = False,
    ) -> None:
        self.hosts = hosts
        # What commands print, and what zkCli prints to stderr.
        self.out = out
        self.err = err
        self._complain = complain or err
        # How an event is printed, and the message for an unknown command. None: as zkCli does,
        # with empty lines around, and with the whole usage.
        self._print_event = tell
        self._unknown = unknown
        self._unconnected = unconnected
        self.prints_watches = True
        # Lines by number, and the number of the next one.
        self.history: dict[int, str] = {}
        self.count = 0
        self.status = 0
        self.is_over = False
        # The watches of this session, to report those that are removed.
        self.watches = Watches()
        self._commands = commands
        self._settings = settings
        self._keeps_trying = keeps_trying
        self._connection: Connection | None = None
        # A line without a word repeats the last one, as in zkCli.
        self._words: Sequence[str] = ()

    @property
    def state(self) -> str:
        """The state of the session, by zkCli's name."""
        return "NOT_CONNECTED" if self._connection is None else self._connection.state

    @property
    def prompt(self) -> str:
        return f"[zk: {self.hosts}({self.state}) {self.count}] "

    @property
    def connected_client(self) -> Client | None:
        """The client if it is connected now, such as for completion."""
        return None if self._connection is None else self._connection.connected_client

    @property
    def watcher(self) -> Callable[[Event], None]:
        """The callback that prints events, for watches that do not come with a read."""
        assert self._connection is not None
        return self._connection.watcher

    async def client(self, path: str | None = None) -> Client:
        """Return the client once it has a session; raises ConnectionLostError if it gets none.

        A path is checked first: raises CommandError, in zkCli's words, if it is none.
        """
        if path is not None:
            check_path(path)
        assert self._connection is not None, "commands that need a session run with one"
        return await self._connection.client()

    async def connect(self, hosts: str) -> None:
        """Close the session, if any, and start another without waiting for it.

        Raises InvalidArgumentError for a bad connection string; the session stays then.
        """
        parse_hosts(hosts)
        await self.close()
        self.hosts = hosts
        self.watches = Watches()
        self._connection = Connection(
            hosts, self._settings, self._on_event, keeps_trying=self._keeps_trying
        )

    async def close(self) -> None:
        """Close the session, and with it its ephemeral nodes; do nothing without one."""
        if self._connection is not None:
            await self._connection.close()

    async def execute(self, line: str) -> None:
        """Run a line as it was typed; an empty one does nothing."""
        if not line:
            return
        self._words = words(line) or self._words
        self.history[self.count] = line
        try:
            await self.run(self._words)
        finally:
            self.count += 1

    async def run(self, given: Sequence[str]) -> None:
        """Run a command that is split into words; a failure is one line."""
        try:
            await self._run(given)
            if not self.is_over:
                # `quit` keeps the status of the command before it.
                self.status = 0
        except (CommandError, PaddockError) as error:
            self.status = 1
            self._complain(line_about(error))

    async def repeat(self, line: str) -> None:
        """Run a line of the history again; it replaces the line that asked for it."""
        self._words = words(line) or self._words
        if self._words[0] == "redo":
            raise CommandError("No redoing redos")
        self.history[self.count] = line
        await self.run(self._words)

    async def _run(self, given: Sequence[str]) -> None:
        if not given:
            self._print_usage()
            raise CommandError("No command entered")
        name, *rest = given
        command = self._commands.get(ALIASES.get(name, name))
        if command is None:
            if self._unknown is not None:
                raise CommandError(self._unknown(name))
            self._print_usage()
            raise CommandError(f"Command not found: Command not found {name}")
        if command.is_own:
            await command.run(self, Given(tuple(rest)))
        if self._connection is None or not self._connection.is_alive:
            if not self.is_over:
                self.out(self._unconnected)
        elif not command.is_own:
            try:
                await command.run(self, self._parse(command, rest))
            except UsageError:
                raise CommandError(command.complaint) from None

    def _parse(self, command: Command, rest: list[str]) -> Given:
        if command.flags is None:
            return Given(tuple(rest))
        given = command.flags.parse(rest)
        count = len(given.arguments)
        if count < command.fewest or (command.most is not None and count > command.most):
            raise UsageError
        if not command.old_form or count <= 1:
            return given
        self.err(
            f"'{command.old_form}' has been deprecated. Please use '{command.new_form}' instead."
        )
        if "watch" not in command.old_form:
            return given
        # The second word, whatever it is: zkCli replaces it by position.
        return command.flags.parse([rest[0], "-w", *rest[2:]])

    def _print_usage(self) -> None:
        self.err("\n\t".join([_USAGE, *(one.usage_line for one in self._commands.values())]))

    def _on_event(self, event: Event) -> None:
        self.watches.take(event)
        if not self.prints_watches:
            return
        if self._print_event is not None:
            self._print_event(event_line(event))
        else:
            self.out("\nWATCHER::")
            self.out(f"\n{event_line(event)}")
