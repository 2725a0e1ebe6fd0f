"""The lines of the shell: which are kept, where, and who may read them."""

import asyncio
import os
import stat
from pathlib import Path

import pytest

from paddock.cli.shell.history import LINES_MAX, ShellHistory, history_file, may_be_kept


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "state" / "paddock" / "shell_history"


def _typed(file: Path, *lines: str) -> ShellHistory:
    history = ShellHistory(file)
    for line in lines:
        history.append_string(line)
    return history


def _newest_first(history: ShellHistory) -> list[str]:
    async def load() -> list[str]:
        return [line async for line in history.load()]

    return asyncio.run(load())


def test_the_next_run_has_the_lines_of_the_last_one(file: Path) -> None:
    _typed(file, "ls /", "get /größe")
    assert ShellHistory(file).get_strings() == ["ls /", "get /größe"]
    assert _newest_first(ShellHistory(file)) == ["get /größe", "ls /"]
    assert list(ShellHistory(file).load_history_strings()) == ["get /größe", "ls /"]


def test_a_line_that_was_typed_before_moves_to_the_end(file: Path) -> None:
    history = _typed(file, "ls /", "get /a", "ls /")
    assert history.get_strings() == ["get /a", "ls /"]
    assert ShellHistory(file).get_strings() == ["get /a", "ls /"]


def test_only_its_owner_reads_it(file: Path) -> None:
    _typed(file, "ls /")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    file.chmod(0o644)
    _typed(file, "ls /")
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@pytest.mark.parametrize(
    "line",
    [
        "addauth digest alice:secret",
        "addauth   digest alice:secret",
        '"addauth" digest alice:secret',
        "setAcl /a digest:alice:x5lPXjxNM5hYQkbnZT8ykpMbDNQ=:cdrwa",
        "setAcl /a world:anyone:r,digest:alice:x5lPXjxNM5hYQkbnZT8ykpMbDNQ=:cdrwa",
        'create /a "" auth:alice:secret:cdrwa',
        " get /a",
        "get /a\x1b[2J",
        "set /a " + "x" * 10_000,
    ],
)
def test_what_nobody_should_find_is_not_in_the_file_but_can_be_fetched_back(
    file: Path, line: str
) -> None:
    assert not may_be_kept(line)
    history = _typed(file, "ls /", line)
    assert history.get_strings() == ["ls /", line]
    assert file.read_text() == "ls /\n"


@pytest.mark.parametrize(
    "line", ["setAcl /a world:anyone:cdrwa", "setAcl /a auth::cdrwa", "ls /addauth", "history"]
)
def test_what_only_looks_like_credentials_is_kept(line: str) -> None:
    assert may_be_kept(line)


def test_pasted_lines_are_kept_one_by_one(file: Path) -> None:
    history = _typed(file, "get /a\naddauth digest alice:secret\n\nget /b\n")
    assert "addauth digest alice:secret" in history.get_strings()
    assert ShellHistory(file).get_strings() == ["get /a", "get /b"]


def test_two_shells_share_a_file(file: Path) -> None:
    first, second = ShellHistory(file), ShellHistory(file)
    first.append_string("ls /first")
    second.append_string("ls /second")
    first.append_string("ls /third")
    assert ShellHistory(file).get_strings() == ["ls /first", "ls /second", "ls /third"]


def test_a_long_file_is_made_short_with_the_newest_lines(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_text("".join(f"get /{number}\n" for number in range(3 * LINES_MAX)))
    newest = [f"get /{number}" for number in range(2 * LINES_MAX, 3 * LINES_MAX)]
    assert ShellHistory(file).get_strings() == newest
    assert file.read_text().splitlines() == newest


def test_a_line_that_was_cut_off_does_not_swallow_the_next_one(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"ls /\nget /hal")
    _typed(file, "get /whole")
    assert ShellHistory(file).get_strings() == ["ls /", "get /hal", "get /whole"]


def test_a_file_of_something_else_does_no_harm(file: Path) -> None:
    file.parent.mkdir(parents=True)
    file.write_bytes(b"\x00\xff\xfe\x1b[2J\nls /\n" + bytes(range(256)))
    assert "ls /" in ShellHistory(file).get_strings()
    assert all(line.isprintable() for line in ShellHistory(file).get_strings())


@pytest.mark.parametrize("target", ["/dev/null", "/proc/self/nothing/there"])
def test_without_a_file_the_history_is_that_of_this_run(file: Path, target: str) -> None:
    file.parent.mkdir(parents=True)
    file.symlink_to(target)
    before = Path("/dev/null").stat().st_mode
    assert _typed(file, "ls /").get_strings() == ["ls /"]
    assert ShellHistory(file).get_strings() == []
    assert Path("/dev/null").stat().st_mode == before


def test_a_pipe_in_its_place_is_not_waited_for(file: Path) -> None:
    file.parent.mkdir(parents=True)
    os.mkfifo(file)
    assert _typed(file, "ls /").get_strings() == ["ls /"]


def test_it_is_where_state_belongs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    assert history_file({"XDG_STATE_HOME": "/state"}) == Path("/state/paddock/shell_history")
    at_home = tmp_path / ".local/state/paddock/shell_history"
    assert history_file({}) == history_file({"XDG_STATE_HOME": "not/absolute"}) == at_home
