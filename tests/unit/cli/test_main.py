"""The list of commands: each stands in it once, under its title."""

import re

from click.testing import CliRunner

from paddock.cli.main import _COMMANDS, paddock


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
