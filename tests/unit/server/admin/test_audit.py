"""How the audit log is kept: nothing is left out, whatever happens to its file."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest

from paddock.server.admin.audit import AppendedFile, AuditError, AuditLog
from paddock.server.admin.audit_format import (
    SERVER_STOP,
    SUCCESS,
    Event,
    events_of,
    json_line,
    text_line,
)
from paddock.server.admin.log_handler import JSON, TEXT
from paddock.state.entry import Entry
from paddock.state.machine import StateMachine
from tests.support import requests as rq
from tests.support.records import Acl, Request
from tests.unit.server.harness import Harness


def keep(
    path: Path | None, scenario: Callable[[Harness], Coroutine[Any, Any, None]], form: str = TEXT
) -> None:
    """Play a scenario on a server that keeps an audit log."""

    async def main() -> None:
        harness = Harness()
        audit = AuditLog(path, form, lambda: 0)
        harness.replica.on_entry = audit.take
        try:
            await scenario(harness)
        finally:
            audit.close()

    asyncio.run(main())


def creates(count: int) -> Callable[[Harness], Coroutine[Any, Any, None]]:
    async def scenario(harness: Harness) -> None:
        client = await harness.client()
        for number in range(count):
            client.send(rq.create(f"/n{number}"))
            await harness.settle()

    return scenario


def test_a_line_has_time_level_and_fields_with_tabs_between_them(tmp_path: Path) -> None:
    keep(tmp_path / "audit.log", creates(1))
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} INFO paddock\.audit: session=0x[0-9a-f]+\t"
        r"user=127\.0\.0\.1\tip=127\.0\.0\.1\toperation=create\tznode=/n0\tznode_type=persistent\t"
        r"result=success\n",
        (tmp_path / "audit.log").read_text(),
    )


def test_a_line_of_json_has_the_same_fields(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        client = await harness.client()
        client.send(rq.delete("/no\nne"))
        await harness.settle()

    keep(tmp_path / "audit.log", scenario, JSON)
    (line,) = (tmp_path / "audit.log").read_text().splitlines()
    found = json.loads(line)
    assert found.pop("session").startswith("0x")
    # The harness' clock: a quarter of an hour after the beginning of time.
    assert found == {
        "time": "1970-01-01T00:16:40.000Z",
        "level": "error",
        "logger": "paddock.audit",
        "user": "127.0.0.1",
        "ip": "127.0.0.1",
        "operation": "delete",
        "znode": "/no\nne",
        "result": "failure",
    }


def test_more_batches_than_may_wait_are_all_written_and_in_order(tmp_path: Path) -> None:
    keep(tmp_path / "audit.log", creates(300))
    found = re.findall(r"znode=/n(\d+)", (tmp_path / "audit.log").read_text())
    assert found == [str(number) for number in range(300)]


def test_a_file_that_is_moved_away_is_made_anew_and_nothing_is_lost(tmp_path: Path) -> None:
    path, moved = tmp_path / "audit.log", tmp_path / "audit.log.1"
    file = AppendedFile(path)
    file.append(["first\n"])
    path.rename(moved)
    file.append(["second\n"])
    path.unlink()
    file.append(["third\n"])
    file.close()
    assert (moved.read_text(), path.read_text()) == ("first\n", "third\n")


def test_it_goes_on_behind_what_is_there(tmp_path: Path) -> None:
    for _ in range(2):
        keep(tmp_path / "audit.log", creates(1))
    assert (tmp_path / "audit.log").read_text().count("\n") == 2


def test_nobody_else_may_read_it(tmp_path: Path) -> None:
    keep(tmp_path / "audit.log", creates(1))
    assert (tmp_path / "audit.log").stat().st_mode & 0o777 == 0o600


def test_without_a_file_it_goes_to_stderr(capfd: pytest.CaptureFixture[str]) -> None:
    keep(None, creates(1))
    assert "paddock.audit: session=0x" in capfd.readouterr().err


def test_a_file_that_cannot_be_opened_is_an_error_of_one_line(tmp_path: Path) -> None:
    async def main() -> None:
        AuditLog(tmp_path / "none" / "audit.log", TEXT, lambda: 0)

    with pytest.raises(AuditError, match=r"none/audit\.log: cannot be written: No such file"):
        asyncio.run(main())


def test_lines_that_find_no_room_are_told_of_and_the_server_goes_on(
    caplog: pytest.LogCaptureFixture,
) -> None:
    keep(Path("/dev/full"), creates(2))
    lines = [one.getMessage() for one in caplog.records if one.levelno == logging.ERROR]
    assert len(lines) == 2
    assert "the audit log cannot be written, 1 lines are lost: " in lines[0]


def test_the_servers_own_line_comes_behind_what_was_done_before_it(tmp_path: Path) -> None:
    async def main() -> None:
        audit = AuditLog(tmp_path / "audit.log", TEXT, lambda: 0)
        entry, outcome = applied(rq.delete("/none"))
        audit.take(entry, outcome)
        audit.add(SERVER_STOP, SUCCESS)
        audit.close()

    asyncio.run(main())
    found = re.findall(r"operation=(\w+)", (tmp_path / "audit.log").read_text())
    assert found == ["delete", "serverStop"]


def applied(request: Request) -> tuple[Entry, Any]:
    entry = Entry(request.op, request.body)
    return entry, StateMachine().apply(entry)


@pytest.mark.parametrize(
    "request_",
    [
        rq.create("/a"),
        rq.create_ttl("/a", 1, flags=99),
        rq.set_acl("/a", None),
        rq.set_acl("/a", ()),
        rq.delete(None),
        rq.delete_container(None),
        rq.set_data(b"/\xff\xfe", b""),
        rq.multi(),
        rq.multi(rq.delete("/none")),
        rq.reconfig(None, None, None),
    ],
    ids=lambda one: f"{one.op}-{len(one.body)}",
)
@pytest.mark.parametrize("cut", [0, 1, 4, None])
def test_whatever_is_asked_can_be_written_down(request_: Request, cut: int | None) -> None:
    entry, outcome = applied(Request(request_.op, request_.body[:cut]))
    for event in events_of(entry, outcome, "root"):
        assert event.result == "failure"
        assert dict(event.fields())


# Names of clients or nodes that pretend to be another user or another line.
FORGERIES = [
    "alice,super",
    "alice user=super",
    "alice\tuser=super",
    "alice\nuser=super",
    "alice\u2028user=super",
    "alice=super",
    "alice\\x2csuper",
]


@pytest.mark.parametrize("name", FORGERIES)
def test_a_name_reads_as_one_user_wherever_a_line_is_split(name: str) -> None:
    event = Event(0, "create", SUCCESS, session=1, users=("127.0.0.1", name), znode="/a")
    line = text_line(event).partition("paddock.audit: ")[2]
    assert line.splitlines() == [line.rstrip("\n")]
    for fields in (line.split("\t"), line.split()):
        found = [one.strip().split("=") for one in fields]
        assert [one[0] for one in found] == ["session", "user", "operation", "znode", "result"]
        assert all(len(one) == 2 for one in found)
        address, shown = found[1][1].split(",")
        assert (address, shown.encode().decode("unicode_escape")) == ("127.0.0.1", name)


@pytest.mark.parametrize("name", FORGERIES)
def test_in_json_a_name_reads_as_one_user_too(name: str) -> None:
    event = Event(0, "create", SUCCESS, users=("127.0.0.1", name), znode=f"/{name}")
    (line,) = json_line(event).splitlines()
    found = json.loads(line)
    address, shown = found["user"].split(",")
    assert address == "127.0.0.1"
    assert shown.replace("\\x2c", ",").replace("\\x5c", "\\") == name
    assert found["znode"] == f"/{name}"


@pytest.mark.parametrize("name", FORGERIES)
def test_a_path_and_an_acl_cannot_pretend_to_be_another_field(name: str) -> None:
    entry, outcome = applied(rq.set_acl(f"/{name}", (Acl(1, "x509", name), Acl(2, "ip", "::1"))))
    (event,) = events_of(entry, outcome, "root")
    (line,) = text_line(event).splitlines()
    fields = [one.split("=") for one in line.partition("paddock.audit: ")[2].split()]
    assert [one[0] for one in fields] == ["session", "operation", "znode", "acl", "result"]
    assert all(len(one) == 2 for one in fields)
    assert len(fields[3][1].split(",")) == 2


def test_a_client_that_calls_itself_two_names_is_one_user(tmp_path: Path) -> None:
    async def scenario(harness: Harness) -> None:
        client = await harness.client()
        client.send(rq.auth("digest", b"alice,super:secret"))
        client.send(rq.create("/a"))
        await harness.settle()

    keep(tmp_path / "audit.log", scenario)
    assert "\tuser=127.0.0.1,alice\\x2csuper\t" in (tmp_path / "audit.log").read_text()
