"""The admin command `past`: what it runs, and what not."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path

import pytest

from paddock.server.admin import past_command
from paddock.server.admin.past_command import PastCommands, parse_arguments
from paddock.server.admin.refusal import RefusedError
from tests.unit.history.folder import PastFolder


@pytest.mark.parametrize(
    "arguments",
    [
        ["get", "/a", "--at", "now"],
        ["history", "/a", "-R", "--json"],
        ["export", "--at", "0x1", "--", "/a", "-"],
        ["explain", "lock", "/a"],
    ],
)
def test_what_reads_is_run(arguments: list[str]) -> None:
    assert parse_arguments(json.dumps(arguments)) == arguments


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "a list of strings"),
        ("", "a list of strings"),
        ("{}", "a list of strings"),
        ('["get", 1]', "a list of strings"),
        ("[]", "the first is one of get, "),
        ('["delete", "/a"]', "the first is one of get, "),
        ('["serve"]', "the first is one of get, "),
        ('["get", "/a"]', "--at says of which moment"),
        ('["export", "/a", "/etc/passwd", "--at", "now"]', "an export goes to -"),
        ('["export", "/a", "-", "--at", "now", "--overwrite"]', "--overwrite is not for here"),
        ('["get", "/a", "--at", "now", "--data=/etc"]', "--data is not for here"),
        ('["history", "/a", "--data", "/etc"]', "--data is not for here"),
        ('["history", "/a", "--log-dir", "/etc"]', "--log-dir is not for here"),
        ('["history", "/a", "--admin", "http://other"]', "--admin is not for here"),
        ('["ls", "/a", "--at", "now", "--server", "other"]', "--server is not for here"),
        ('["ls", "/a", "--at", "now", "--sasl-password-file=/x"]', "--sasl-password-file is not"),
        ('["ls", "/a", "--at", "now", "--kerberos"]', "--kerberos is not for here"),
        ('["ls", "/a\\u0000", "--at", "now"]', "a zero byte"),
    ],
)
def test_anything_else_is_refused(text: str | None, says: str) -> None:
    with pytest.raises(RefusedError) as caught:
        parse_arguments(text)
    assert caught.value.status == 400
    assert says in caught.value.reason


@pytest.fixture
def data(tmp_path: Path) -> Path:
    with PastFolder(tmp_path / "data") as folder:
        folder.world.open().create(b"/a", b"1")
    return tmp_path / "data"


def test_it_sends_what_was_printed_and_the_status(
    data: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # It is about this server, whatever its own environment says.
    monkeypatch.setenv("PADDOCK_DATA", "/nowhere")
    monkeypatch.setenv("PADDOCK_AUTH", "nonsense")

    async def main() -> None:
        commands = PastCommands(data)
        answer = await commands.run(["get", "/a", "--at", "now"])
        with answer.file:
            assert (answer.status, answer.error, answer.size) == (0, "", 1)
            assert b"".join(answer.pieces()) == b"1"
        answer = await commands.run(["get", "/none", "--at", "now"])
        with answer.file:
            assert (answer.status, answer.error) == (1, "paddock: /none: no such node")
            assert answer.size == 0

    asyncio.run(main())


@pytest.mark.source
def test_few_run_at_a_time_and_none_for_ever(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def main() -> None:
        commands = PastCommands(data)
        running = [asyncio.create_task(commands.run(["history", "/a"])) for _ in range(2)]
        await asyncio.sleep(0)
        with pytest.raises(RefusedError) as caught:
            await commands.run(["history", "/a"])
        assert (caught.value.status, caught.value.retry_after) == (429, 1.0)
        for one in running:
            (await one).file.close()
        monkeypatch.setattr(past_command, "_SECONDS_MAX", 0.0)
        with pytest.raises(RefusedError, match="It took too long"):
            await commands.run(["history", "/a"])
        monkeypatch.undo()
        (await commands.run(["history", "/a"])).file.close()

    asyncio.run(main())
