"""The events of a server: their lines, and reading them while a server writes."""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from paddock.storage import events
from paddock.storage.events import CONNECTION_ENDED, STALLED, Event, file_name, read_events

WHOLE = Event(
    1_767_225_600_123,
    CONNECTION_ENDED,
    0x1F,
    2,
    0x12,
    "10.0.0.7:4711",
    ("ip:10.0.0.7", "digest:alice"),
    "reset",
    {"silent_seconds": 1.5, "last": "ping"},
)


def write(folder: Path, *times: int, end: bytes = b"") -> Path:
    """Write a file with an event at each of these times."""
    path = folder / file_name(times[0])
    path.write_bytes("".join(Event(one, STALLED).line() for one in times).encode() + end)
    return path


def times(folder: Path, since_ms: int = 0, until_ms: int | None = None) -> list[int]:
    return [event.time_ms for event in read_events(folder, since_ms, until_ms)]


@pytest.mark.parametrize("event", [WHOLE, Event(7, STALLED), Event(7, STALLED, zxid=0)])
def test_an_event_comes_back_from_its_line(event: Event) -> None:
    line = event.line()
    assert line.endswith("\n")
    assert line.count("\n") == 1
    assert Event.parse(line.encode()) == event


def test_a_line_has_hexadecimal_ids_and_nothing_that_is_not_there() -> None:
    fields = json.loads(WHOLE.line())
    assert (fields["session"], fields["zxid"]) == ("0x12", "0x1f")
    assert json.loads(Event(7, STALLED, details={"last": None, "text": ""}).line()) == {
        "time_ms": 7,
        "event": "stalled",
    }


@pytest.mark.parametrize(
    "line",
    [
        *(b"", b"\n", b"7", b"[]", b"{}", b"\xff\x00", b"null", b"[" * 100_000),
        *(b'{"time_ms":7,"event":"st', b'{"time_ms":[],"event":""}'),
        *(b'{"time_ms":Infinity,"event":""}', b'{"time_ms":NaN,"event":""}'),
        *(b'{"time_ms":7,"event":"","zxid":7}', b'{"time_ms":7,"event":"","session":"x"}'),
    ],
)
def test_what_is_no_event_is_noticed(line: bytes) -> None:
    assert Event.parse(line) is None


def test_events_come_in_the_order_of_their_times(tmp_path: Path) -> None:
    write(tmp_path, 5, 6)
    write(tmp_path, 1, 2, 2)
    write(tmp_path, 10_000_000_000_000)
    (tmp_path / "notes.txt").write_text("{}")
    assert times(tmp_path) == [1, 2, 2, 5, 6, 10_000_000_000_000]


@pytest.mark.parametrize(
    ("since", "until", "found"),
    [(0, None, [1, 3, 5, 7]), (3, 5, [3, 5]), (4, None, [5, 7]), (0, 4, [1, 3]), (8, None, [])],
)
def test_events_are_read_from_one_time_to_another(
    tmp_path: Path, since: int, until: int | None, found: list[int]
) -> None:
    write(tmp_path, 1, 3)
    write(tmp_path, 5, 7)
    assert times(tmp_path, since, until) == found


def test_files_outside_the_times_are_not_even_opened(tmp_path: Path) -> None:
    write(tmp_path, 5, 7)
    others = [write(tmp_path, one) for one in (1, 9)]
    with unreadable(*others) as errors:
        assert list(read_events(tmp_path, 6, 8, errors.append)) == [Event(7, STALLED)]
    assert errors == []


@contextmanager
def unreadable(*paths: Path) -> Iterator[list[OSError]]:
    """Let these files not be read; gives a list for the errors."""
    opened = Path.open

    def refuse(path: Path, *args: Any) -> Any:
        if path in paths:
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))
        return opened(path, *args)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Path, "open", refuse)
        yield []


def test_a_file_that_cannot_be_read_is_told_and_passed_over(tmp_path: Path) -> None:
    paths = [write(tmp_path, one) for one in (1, 2, 3)]
    with unreadable(paths[1]) as errors:
        found = [event.time_ms for event in read_events(tmp_path, on_unreadable=errors.append)]
    assert found == [1, 3]
    assert [error.filename for error in errors] == [str(paths[1])]


def test_a_folder_that_cannot_be_read_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> Iterator[Path]:
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(path))

    monkeypatch.setattr(Path, "iterdir", refuse)
    errors: list[OSError] = []
    assert list(read_events(tmp_path, on_unreadable=errors.append)) == []
    assert [error.filename for error in errors] == [str(tmp_path)]


def test_what_is_no_file_of_events_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, 5)
    (tmp_path / file_name(1)).mkdir()
    # Whoever opens it waits for somebody who writes.
    os.mkfifo(tmp_path / file_name(2))
    (tmp_path / file_name(3)).symlink_to(tmp_path / "nothing")
    for name in ("7.jsonl", "000000000000004.jsonl.gz", "\udcff.jsonl"):
        (tmp_path / name).write_bytes(Event(4, STALLED).line().encode())
    (tmp_path / file_name(9)).write_bytes(bytes(range(256)) * 100)
    assert times(tmp_path) == [5]


def test_a_line_that_is_too_long_is_read_in_pieces(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(events, "_LINE_BYTES_MAX", 100)
    long = b'{"time_ms":2,"event":"stalled","text":"' + bytes([120]) * 500 + b'"}\n'
    write(tmp_path, 1, end=long + Event(3, STALLED).line().encode())
    assert times(tmp_path) == [1, 3]


def test_a_torn_line_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, 1, end=b'{"time_ms":2,"ev\n' + Event(3, STALLED).line().encode() + b'{"time')
    assert times(tmp_path) == [1, 3]


def test_a_file_that_is_purged_meanwhile_is_passed_over(tmp_path: Path) -> None:
    write(tmp_path, 1)
    later = write(tmp_path, 2)
    found = read_events(tmp_path)
    assert next(found).time_ms == 1
    later.unlink()
    assert list(found) == []


def test_without_a_folder_there_are_no_events(tmp_path: Path) -> None:
    assert times(tmp_path / "events") == []


def test_the_page_has_every_kind_and_every_reason() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "events.md").read_text("utf-8")
    names = {one for name, one in vars(events).items() if name.isupper() and isinstance(one, str)}
    assert len(names) > 40
    described = {
        word for cell in re.findall(r"^\| ([^|]*)\|", page, re.MULTILINE) for word in code(cell)
    }
    assert names - {events.FOLDER} <= described


def code(text: str) -> list[str]:
    return re.findall(r"`(\w+)`", text)
