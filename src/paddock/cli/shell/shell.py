"""The shell: it runs commands, line by line, and prints what upstream's prints.

    shell = Shell("127.0.0.1:2181", Settings(), out=print, err=print)
    await shell.connect(shell.hosts)
    await shell.execute("ls /")

It knows nothing of terminals and pipes: whoever owns it reads the lines, and says where what is
printed goes. Events are printed when they come, between and during commands.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Protocol

from paddock.cli.shell.commands import COMMANDS, Command, usage_lines
from paddock.cli.shell.connection import Connection
from paddock.cli.shell.errors import CommandError, line_about
from paddock.cli.shell.formats import event_line
from paddock.cli.shell.line import words
from paddock.cli.shell.options import Given
from paddock.cli.shell.watching import Watches
from paddock.client.session.hosts import parse_hosts
from paddock.errors import PaddockError

if TYPE_CHECKING:
    from paddock.cli.shell.settings import Settings
    from paddock.client.client import Client
    from paddock.client.states import Event


class Print(Protocol):
    """Prints a text, of one or more lines, and what ends it."""

    def __call__(self, text: str, end: str = "\n") -> None: ...


class Shell:
    """Runs commands, and remembers what it has to between them."""

    def __init__(
        self,
        hosts: str,
        settings: Settings,
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
        # What commands print, and what upstream prints on stderr.
        self.out = out
        self.err = err
        # Where it goes that a command failed: with the rest of stderr, if nothing else is said.
        self._complain = complain or err
        # How a line about an event is printed, and what is said of a command that there is none
        # of. None: as upstream does, with lines between, and with all of the usage.
        self._print_event = tell
        self._unknown = unknown
        # What is said of a session that is not there.
        self._unconnected = unconnected
        self.prints_watches = True
        # Every line by its number, and the number of the next one.
        self.history: dict[int, str] = {}
        self.count = 0
        # What the last command ended with, 0 or 1.
        self.status = 0
        # Set when the shell was told to quit.
        self.is_over = False
        # Which watches this session has, to tell of those that are removed.
        self.watches = Watches()
        self._settings = settings
        # Whether to look for a server until there is one.
        self._keeps_trying = keeps_trying
        self._connection: Connection | None = None
        # A line without a word repeats what was there before, as upstream's does.
        self._words: Sequence[str] = ()

    @property
    def state(self) -> str:
        """The state of the session, by upstream's name."""
        return "NOT_CONNECTED" if self._connection is None else self._connection.state

    @property
    def prompt(self) -> str:
        return f"[zk: {self.hosts}({self.state}) {self.count}] "

    @property
    def connected_client(self) -> Client | None:
        """The client, if it can be asked something at this moment, such as for completion."""
        return None if self._connection is None else self._connection.connected_client

    async def client(self) -> Client:
        """Give the client, once it has a session; raises ConnectionLostError if it gets none."""
        assert self._connection is not None, "commands that need a session run with one"
        return await self._connection.client()

    async def connect(self, hosts: str) -> None:
        """Leave the session if there is one, and begin another; do not wait for it.

        Raises InvalidArgumentError for what is no connection string, and nothing is left then.
        """
        parse_hosts(hosts)
        await self.close()
        self.hosts = hosts
        self.watches = Watches()
        self._connection = Connection(
            hosts, self._settings, self._tell, keeps_trying=self._keeps_trying
        )

    async def close(self) -> None:
        """End the session, and with it its ephemeral nodes; that there is none is fine."""
        if self._connection is not None:
            await self._connection.close()

    async def execute(self, line: str) -> None:
        """Run a line, as it was typed; an empty one is nothing."""
        if not line:
            return
        self._words = words(line) or self._words
        self.history[self.count] = line
        try:
            await self.run(self._words)
        finally:
            self.count += 1

    async def run(self, given: Sequence[str]) -> None:
        """Run a command that was taken apart already; what cannot be done is one line."""
        try:
            await self._run(given)
            if not self.is_over:
                # To quit is no success: the shell ends with what was before.
                self.status = 0
        except CommandError as complaint:
            self.status = 1
            self._complain(str(complaint))
        except PaddockError as error:
            self.status = 1
            self._complain(line_about(error))

    async def repeat(self, line: str) -> None:
        """Run a line of the history again; it stands in the place of what asked for that."""
        self._words = words(line) or self._words
        if self._words[0] == "redo":
            raise CommandError("No redoing redos")
        self.history[self.count] = line
        await self.run(self._words)

    @property
    def watcher(self) -> Callable[[Event], None]:
        """What prints events, for watches that do not come with a read."""
        assert self._connection is not None
        return self._connection.watcher

    async def _run(self, given: Sequence[str]) -> None:
        if not given:
            self._print_usage()
            raise CommandError("No command entered")
        name, *rest = given
        command = COMMANDS.get(name)
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
            return
        if not command.is_own:
            await command.run(self, self._parse(command, rest))

    def _parse(self, command: Command, rest: list[str]) -> Given:
        if command.flags is None:
            return Given(tuple(rest))
        given = command.flags.parse(rest)
        count = len(given.arguments)
        if count < command.fewest or (command.most is not None and count > command.most):
            raise CommandError(command.complaint)
        if not command.old_form or count <= 1:
            return given
        self.err(
            f"'{command.old_form}' has been deprecated. Please use '{command.new_form}' instead."
        )
        if "watch" not in command.old_form:
            return given
        # The second word, whatever it is: upstream's finger points there.
        return command.flags.parse([rest[0], "-w", *rest[2:]])

    def _print_usage(self) -> None:
        self.err("\n".join(usage_lines()))

    def _tell(self, event: Event) -> None:
        self.watches.take(event)
        if not self.prints_watches:
            return
        if self._print_event is not None:
            self._print_event(event_line(event))
            return
        self.out("\nWATCHER::")
        self.out(f"\n{event_line(event)}")
