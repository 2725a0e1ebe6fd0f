"""What the Tab key offers, with a tree that is a dictionary in the place of a service."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from paddock.cli.shell.completion import (
    CHILDREN_MAX,
    OFFERS_MAX,
    Children,
    Nodes,
    ShellCompleter,
    words_before,
)
from paddock.cli.shell.parsing import Flag, Flags, Given
from paddock.cli.shell.shell import Argument, Command, Shell
from paddock.client.states import SessionState
from paddock.errors import ConnectionLostError

if TYPE_CHECKING:
    from paddock.client.client import Client

_PATH = Argument("path", is_path=True)


async def _run(shell: Shell, given: Given) -> None:
    raise AssertionError("completion runs no command")


def _command(name: str, *flags: Flag, argument: Argument = _PATH) -> Command:
    return Command(name, "", "", _run, Flags(flags), (argument,))


_COMMANDS = {
    command.name: command
    for command in (
        _command("create", Flag("e", ""), Flag("t", "ttl", takes_value=True)),
        _command("get", Flag("s", "stats"), Flag("w", "watch")),
        _command("getAcl"),
        _command("addWatch", Flag("m", "", takes_value=True, choices=("PERSISTENT", "RECURSIVE"))),
        _command("printwatches", argument=Argument("on|off", choices=("on", "off"))),
        _command("quit", argument=Argument("")),
    )
}


@dataclass
class _Stat:
    num_children: int


@dataclass
class _Tree:
    """Answers like a client, from a dictionary of children by path."""

    children_of: Mapping[str, Sequence[str]]
    state: SessionState = SessionState.CONNECTED
    asked: list[str] = field(default_factory=list)
    is_asked: asyncio.Event = field(default_factory=asyncio.Event)
    # What every answer waits for.
    gate: asyncio.Event | None = None

    async def exists(self, path: str) -> _Stat | None:
        self.asked.append(path)
        self.is_asked.set()
        if self.gate is not None:
            await self.gate.wait()
        found = self.children_of.get(path)
        return None if found is None else _Stat(len(found))

    async def children(self, path: str) -> list[str]:
        assert len(self.children_of[path]) <= CHILDREN_MAX, "these were to be left alone"
        if "lost" in path:
            raise ConnectionLostError("getChildren", path)
        return list(self.children_of[path])


def _nodes(tree: _Tree) -> Nodes:
    return Nodes(lambda: cast("Client", tree))


def _offers(text: str, children_of: Mapping[str, Sequence[str]] | None = None) -> list[str]:
    """Return the text before the cursor, once for each completion that is offered."""

    async def complete() -> list[str]:
        nodes = _nodes(_Tree(children_of or {"/": ["zookeeper"], "/zookeeper": []}))
        found = ShellCompleter(_COMMANDS, nodes).get_completions_async(
            Document(text), CompleteEvent(completion_requested=True)
        )
        given = [
            text[: len(text) + completion.start_position] + completion.text
            async for completion in found
        ]
        await nodes.close()
        return given

    return asyncio.run(complete())


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("", [*_COMMANDS]),
        ("ge", ["get", "getAcl"]),
        ("GETA", ["getAcl "]),
        ("qu", ["quit "]),
        ("nothing", []),
        ("nothing -", []),
        ("get -", ["get -s", "get -w"]),
        ("get -s -", ["get -s -w "]),
        ("printwatches ", ["printwatches on", "printwatches off"]),
        ("printwatches of", ["printwatches off "]),
        ("printwatches on ", []),
        ("addWatch -m ", ["addWatch -m PERSISTENT", "addWatch -m RECURSIVE"]),
        ("addWatch -m R", ["addWatch -m RECURSIVE "]),
        ("create -t ", []),
        ("get ", ["get /zookeeper"]),
        ("get /zookeeper ", []),
        ("quit ", []),
        # A path is no command.
        ("/zo", []),
    ],
)
def test_commands_flags_and_values_are_offered_where_they_may_stand(
    text: str, offers: list[str]
) -> None:
    assert _offers(text) == offers


_TREE = {
    "/": ["zookeeper", "app", "apple"],
    "/app": ["two words", "config"],
    "/app/config": [],
    "/apple": [],
    "/app/two words": ["x"],
    "/zookeeper": ["quota", 'a"quote and blank'],
}


@pytest.mark.parametrize(
    ("text", "offers"),
    [
        ("get /", ["get /app", "get /apple", "get /zookeeper"]),
        ("get /a", ["get /app", "get /apple"]),
        ("get /app", ["get /app", "get /apple"]),
        ("get /app/", ["get /app/config", 'get "/app/two words']),
        ("get /app/c", ["get /app/config"]),
        # The only one, written out: what comes next is a child.
        ("get /zookeeper", ["get '/zookeeper/a\"quote and blank", "get /zookeeper/quota"]),
        ("get /app/config", []),
        ('get "/app/tw', ['get "/app/two words']),
        ('get "/app/two words', ['get "/app/two words/x']),
        ('get "/app/two words"', []),
        ("get '/ap", ["get '/app", "get '/apple"]),
        ("create -e /app/c", ["create -e /app/config"]),
        ("nothing /z", ["nothing /zookeeper"]),
        ("get /nowhere/x", []),
        ("get //", []),
    ],
)
def test_paths_are_those_of_nodes_that_exist(text: str, offers: list[str]) -> None:
    assert _offers(text, _TREE) == offers


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", ([], "")),
        ("  ls", ([], "ls")),
        ("ls ", (["ls"], "")),
        ("ls  -s /a", (["ls", "-s"], "/a")),
        ("set /a 'one two' thr", (["set", "/a", "one two"], "thr")),
        ('set /a "one tw', (["set", "/a"], '"one tw')),
        ('set /a "one"', (["set", "/a"], '"one"')),
        ("set /it's o", (["set", "/it's"], "o")),
    ],
)
def test_words_end_where_those_of_a_command_end(text: str, expected: object) -> None:
    assert words_before(text) == expected


def test_of_many_names_what_they_share_is_offered_first_and_then_some_of_them() -> None:
    tree = {"/": ["jobs"], "/jobs": [f"job-{number:05}" for number in range(20_000)]}
    assert _offers("get /jobs/", tree) == ["get /jobs/job-"]
    some = _offers("get /jobs/job-", tree)
    assert len(some) == OFFERS_MAX + 1
    assert some[:2] == ["get /jobs/job-00000", "get /jobs/job-00001"]
    # The last one only says how many are left.
    assert some[-1] == "get /jobs/job-"
    assert _offers("get /jobs/job-1234", tree) == [f"get /jobs/job-1234{i}" for i in range(10)]


def test_a_node_with_very_many_children_is_not_listed() -> None:
    tree = {"/": ["big"], "/big": range(CHILDREN_MAX + 1)}
    assert _offers("get /big/", cast(Mapping[str, Sequence[str]], tree)) == ["get /big/"]


def test_names_that_would_do_something_to_a_terminal_are_not_offered() -> None:
    assert _offers("get /", {"/": ["fine", "\x1b[2J", "a\nb"]}) == ["get /fine"]


def test_what_cannot_be_listed_offers_nothing() -> None:
    assert _offers("get /lost/", {"/": ["lost"], "/lost": ["a"]}) == []


def test_without_a_connection_nobody_is_asked() -> None:
    tree = _Tree({"/": ["a"]}, SessionState.DISCONNECTED)
    assert asyncio.run(_nodes(tree).children("/")) == Children()
    assert asyncio.run(Nodes(lambda: None).children("/")) == Children()
    assert tree.asked == []


def test_names_are_asked_for_once_until_something_may_have_changed() -> None:
    async def ask() -> list[Children]:
        nodes = _nodes(tree)
        found = [await nodes.children("/"), await nodes.children("/")]
        tree.children_of = {"/": ["b"]}
        nodes.forget()
        found.append(await nodes.children("/"))
        await nodes.close()
        return found

    tree = _Tree({"/": ["a"]})
    assert asyncio.run(ask()) == [Children(("a",)), Children(("a",)), Children(("b",))]
    assert tree.asked == ["/", "/"]


def test_a_late_answer_is_there_for_the_next_one_who_asks(monkeypatch: pytest.MonkeyPatch) -> None:
    async def ask() -> list[Children]:
        tree.gate = asyncio.Event()
        nodes = _nodes(tree)
        found = [await nodes.children("/")]
        tree.gate.set()
        # The patience is still none at all: an answer has to be there.
        while not found[-1].names:
            found.append(await nodes.children("/"))
        await nodes.close()
        return found

    monkeypatch.setattr("paddock.cli.shell.completion._PATIENCE_S", 0.0)
    tree = _Tree({"/": ["a"]})
    found = asyncio.run(ask())
    assert (found[0], found[-1]) == (Children(), Children(("a",)))
    assert tree.asked == ["/"]


def test_what_is_still_asked_ends_with_the_shell() -> None:
    async def ask() -> None:
        tree.gate = asyncio.Event()
        nodes = _nodes(tree)
        waiting = asyncio.create_task(nodes.children("/"))
        await tree.is_asked.wait()
        await nodes.close()
        assert await waiting == Children()
        assert asyncio.all_tasks() == {asyncio.current_task()}

    tree = _Tree({"/": ["a"]})
    asyncio.run(ask())


def test_only_so_many_lists_are_remembered() -> None:
    async def ask() -> None:
        nodes = _nodes(tree)
        for number in range(100):
            await nodes.children(f"/{number}")
        await nodes.children("/99")
        await nodes.children("/0")
        await nodes.close()

    tree = _Tree({})
    asyncio.run(ask())
    assert tree.asked == [*(f"/{number}" for number in range(100)), "/0"]
