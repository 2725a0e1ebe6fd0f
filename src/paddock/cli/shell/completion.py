"""Completion: commands, their flags and values, and paths of nodes.

Words are found by the rules by which a line is taken apart, quotes included. Names of nodes come
from the service and are kept for a moment; typing goes on meanwhile. A request that takes too long
is not waited for: its answer serves the next completion. Without a connection none is made.
"""

import asyncio
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import takewhile
from typing import Final

from prompt_toolkit.completion import CompleteEvent, Completer, Completion
from prompt_toolkit.document import Document

from paddock.cli.shell.parsing import Flag
from paddock.cli.shell.shell import Command
from paddock.client.client import Client
from paddock.errors import PaddockError

CHILDREN_MAX: Final = 50_000
_PATIENCE_S: Final = 1.0
# How long names are as good as new; a command that was run makes all of them old.
_FRESH_S: Final = 3.0
_LISTS_MAX: Final = 32


@dataclass(frozen=True, slots=True)
class Children:
    """The names of a node's children in their order, or how many there are if too many."""

    names: tuple[str, ...] = ()
    unlisted: int = 0


NOTHING: Final = Children()


class Nodes:
    """What is known of the tree at this moment."""

    def __init__(self, client: Callable[[], Client | None]) -> None:
        # Which client to ask is asked each time: `connect` makes another one.
        self._client = client
        self._lists: dict[str, asyncio.Task[Children]] = {}

    async def children(self, path: str) -> Children:
        """Return the children of a node; none if they are not known in time."""
        task = self._lists.get(path)
        if task is None:
            client = self._client()
            if client is None or not client.state.is_connected:
                return NOTHING
            task = self._lists[path] = asyncio.create_task(_list(client, path))
            task.add_done_callback(partial(self._answered, path))
            while len(self._lists) > _LISTS_MAX:
                oldest = next(iter(self._lists))
                self._drop(oldest, self._lists[oldest])
        await asyncio.wait([task], timeout=_PATIENCE_S)
        return task.result() if task.done() and not task.cancelled() else NOTHING

    def forget(self) -> None:
        """Ask anew from now on: something may have changed."""
        for path, task in list(self._lists.items()):
            self._drop(path, task)

    async def close(self) -> None:
        """Cancel pending requests."""
        tasks = list(self._lists.values())
        self.forget()
        if tasks:
            await asyncio.wait(tasks)

    def _answered(self, path: str, task: asyncio.Task[Children]) -> None:
        asyncio.get_running_loop().call_later(_FRESH_S, self._drop, path, task)

    def _drop(self, path: str, task: asyncio.Task[Children]) -> None:
        if self._lists.get(path) is task:
            del self._lists[path]
            task.cancel()


async def _list(client: Client, path: str) -> Children:
    try:
        stat = await client.exists(path)
        if stat is not None and stat.num_children > CHILDREN_MAX:
            return Children(unlisted=stat.num_children)
        return NOTHING if stat is None else Children(tuple(sorted(await client.children(path))))
    except PaddockError:
        # No permission, no connection, no path at all: there is nothing to offer.
        return NOTHING


OFFERS_MAX: Final = 200

_QUOTES: Final = ("'", '"')


class ShellCompleter(Completer):
    """Completes the word at the cursor: a command, a flag, a value or a path."""

    def __init__(self, commands: Mapping[str, Command], nodes: Nodes) -> None:
        self._commands = commands
        self._nodes = nodes

    def get_completions(self, document: Document, event: CompleteEvent) -> Iterator[Completion]:
        """Return nothing: node paths need an event loop."""
        return iter(())

    async def get_completions_async(
        self, document: Document, event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Offer what fits."""
        before, word = words_before(document.text_before_cursor)
        if word.lstrip("'\"").startswith("/") and before:
            for completion in await self._paths(word):
                yield completion
        else:
            begins = word.lower()
            choices = self._choices(before, word)
            fitting = [one for one in choices if one[0].lower().startswith(begins)]
            # A single one is complete, and the next word begins.
            end = " " if len(fitting) == 1 else ""
            for text, says in fitting:
                yield Completion(text + end, -len(word), display=text, display_meta=says)
            if not word and self._expects_path(before):
                for completion in await self._paths("/", typed=word):
                    yield completion

    def _choices(self, before: Sequence[str], word: str) -> Iterable[tuple[str, str]]:
        """Return the texts that may stand here, each with a description."""
        if not before:
            return [(name, command.says) for name, command in self._commands.items()]
        command = self._commands.get(before[0])
        if command is None:
            return []
        value_of = _flag_before(command, before)
        if value_of is not None:
            return [(value, "") for value in value_of.choices]
        if word.startswith("-"):
            flags = [(f"-{flag.name}", flag.says) for flag in _flags(command)]
            return [flag for flag in flags if flag[0] not in before]
        if len(before) > 1 or not command.arguments:
            return []
        says = {name: known.says for name, known in self._commands.items()}
        return [(one, says.get(one, "")) for one in command.arguments[0].choices]

    def _expects_path(self, before: Sequence[str]) -> bool:
        command = self._commands.get(before[0]) if before else None
        return (
            command is not None
            and any(argument.is_path for argument in command.arguments)
            and _flag_before(command, before) is None
            and not any(word.startswith("/") for word in before)
        )

    async def _paths(self, word: str, typed: str | None = None) -> list[Completion]:
        """Offer the nodes whose paths begin with a word; or the children of the only one."""
        quote = word[0] if word[0] in _QUOTES else ""
        path = word[len(quote) :]
        typed = word if typed is None else typed
        if quote and path.endswith(quote):
            return []
        names, unlisted = await self._names(path)
        parent = path[: path.rfind("/") + 1]
        if [parent + name for name in names] == [path]:
            # It is written out already: what comes next is a child of it.
            names, unlisted = await self._names(path + "/")
            parent = path + "/"
        if unlisted:
            return [_note(typed, f"{unlisted:,} children are too many to list")]
        if len(names) > OFFERS_MAX:
            # They are in their order, so what the first and the last share, all share.
            pairs = zip(names[0], names[-1], strict=False)
            common = parent + "".join(
                a for a, _ in takewhile(lambda pair: pair[0] == pair[1], pairs)
            )
            if len(common) > len(path):
                return [Completion(_quoted(common, quote), -len(typed))]
        offers = [
            Completion(_quoted(parent + name, quote), -len(typed), display=name)
            for name in names[:OFFERS_MAX]
        ]
        if len(names) > OFFERS_MAX:
            offers.append(_note(typed, f"… and {len(names) - OFFERS_MAX:,} more"))
        return offers

    async def _names(self, path: str) -> tuple[list[str], int]:
        """Return the names that complete the last part of a path, and how many were not listed."""
        parent, _, beginning = path.rpartition("/")
        if parent.endswith("/"):
            # Two of them are in no path.
            return [], 0
        children = await self._nodes.children(parent or "/")
        names = [name for name in children.names if name.startswith(beginning)]
        # Names with control characters are left out.
        return [name for name in names if name.isprintable()], children.unlisted


def words_before(text: str) -> tuple[list[str], str]:
    """Take apart what stands before the cursor: whole words, and the one that is being typed.

    The one that is being typed is as it was typed, with its quote; it may be empty.
    """
    words: list[str] = []
    position = 0
    while True:
        rest = text[position:].lstrip()
        if not rest:
            return words, ""
        position = len(text) - len(rest)
        if rest[0] in _QUOTES:
            end = rest.find(rest[0], 1)
            if end in (-1, len(rest) - 1):
                return words, rest
            words.append(rest[1:end])
            position += end + 1
        else:
            word = rest.split(maxsplit=1)[0]
            if len(word) == len(rest):
                return words, rest
            words.append(word)
            position += len(word)


def _flags(command: Command) -> tuple[Flag, ...]:
    return () if command.flags is None else command.flags.known


def _flag_before(command: Command, before: Sequence[str]) -> Flag | None:
    """Return the flag whose value is expected at the cursor."""
    return next(
        (flag for flag in _flags(command) if flag.takes_value and before[-1] == f"-{flag.name}"),
        None,
    )


def _note(word: str, says: str) -> Completion:
    """Return a note in the list of completions; choosing it changes nothing."""
    return Completion(word, -len(word), display=says, style="class:completion-note")


def _quoted(path: str, quote: str) -> str:
    """Write a path so that it is one word; a quote stays open, for it may go on."""
    if not quote and any(character.isspace() for character in path):
        quote = "'" if '"' in path else '"'
    return quote + path
