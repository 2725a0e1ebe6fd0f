"""The list of commands: each stands in it once, under its title."""

import re

import click
import pytest
from click.testing import CliRunner

from paddock.cli.main import _COMMANDS, _FLAGS_OF_ZKCLI, paddock
from tests.support.command import refusal_here


def test_every_command_is_listed_once_with_what_it_does() -> None:
    text = CliRunner().invoke(paddock, ["--help"]).output
    commands = text.partition("  -h, --help")[2]
    listed = re.findall(r"^  ([a-z]+)  +(.+)$", commands, flags=re.MULTILINE)
    assert sorted(listed) == sorted((name, says) for name, (_, says) in _COMMANDS.items())


def test_every_command_of_the_list_can_be_asked_for_its_help() -> None:
    for name in _COMMANDS:
        result = CliRunner().invoke(paddock, [name, "--help"])
        assert result.exit_code == 0, name
        assert result.output.startswith(f"Usage: paddock {name} "), name


@pytest.mark.parametrize(
    ("given", "says"),
    [
        (["lss", "/"], "No such command 'lss'. Did you mean 'ls'?"),
        (["xyzzy"], "No such command 'xyzzy'. `paddock --help` lists them."),
        (["help"], "No such command 'help'. `paddock --help` lists them."),
        (["acl", "foo"], "No such command 'foo'. There are get and set."),
        (["fsck", "data", "--before", "1"], "'1' is not a whole number, 2 or more"),
        (["ls", "--recursiv"], "Did you mean --recursive?"),
        # A letter each, for most commands; words behind one hyphen, for upstream's.
        (["shell", "-nonsense"], "-nonsense"),
        (["shell", "-serve", "127.0.0.1:2181"], "-server"),
        (["shell", "-timeout", "abc"], "'abc' is not a whole number from 1 to 2147483647"),
    ],
)
def test_what_is_not_there_is_named_with_what_may_be_meant(given: list[str], says: str) -> None:
    assert says in refusal_here(*given, status=2).replace("'--recursive'", "--recursive")


def test_what_stands_for_a_flag_of_zkcli_is_there_and_the_flag_is_not() -> None:
    for (name, flag), meant in _FLAGS_OF_ZKCLI.items():
        command = paddock.get_command(click.Context(paddock), name)
        assert command is not None
        options = {option for one in command.params for option in one.opts}
        assert flag not in options
        if meant.startswith("--"):
            assert meant.split(",")[0] in options


@pytest.mark.parametrize("name", ["ls", "delete", "watch"])
def test_either_letter_is_recursive(name: str) -> None:
    command = paddock.get_command(click.Context(paddock), name)
    assert command is not None
    (option,) = (one for one in command.params if one.name == "recursive")
    assert {"-r", "-R", "--recursive"} == set(option.opts)
