"""The system calls of a server: a kill cannot show a missing sync, strace can.

Paddock's reply to a write must leave only after an fdatasync that began after the write of its
record and has returned.
"""

from __future__ import annotations

import enum
import re
from pathlib import Path

import pytest

from tests.fault.stage.process import FaultServer, eventually, need_strace
from tests.support import requests as rq
from tests.support import wire
from tests.support.records import Code

pytestmark = pytest.mark.judge

WRITES = 30
CLIENTS = 8


class Call(enum.Enum):
    """What counts of a trace, in order."""

    RECORD = "the write of a record has returned"
    SYNC_BEGUN = "fdatasync was called"
    SYNC = "fdatasync has returned"
    REPLY = "a write to a client was begun"


@pytest.fixture(autouse=True)
def strace() -> None:
    need_strace()


def read_trace(path: Path) -> list[Call]:
    """Read what strace wrote, once it is complete."""
    eventually(lambda: path.exists() and "+++ exited with" in path.read_text(), "the trace's end")
    calls: list[Call] = []
    # Which file the unfinished call of a thread is about.
    unfinished: dict[str, str] = {}
    for line in path.read_text().splitlines():
        thread, _, text = line.partition(" ")
        text = text.strip()
        begun = re.match(r"(\w+)\(\d+<([^>]*)>", text)
        resumed = re.match(r"<\.\.\. (\w+) resumed>", text)
        if begun is not None:
            name, file = begun[1], begun[2]
            if name in ("write", "writev", "sendto", "sendmsg") and is_reply(file, text):
                calls.append(Call.REPLY)
            if name == "fdatasync" and file.endswith(".log"):
                calls.append(Call.SYNC_BEGUN)
            if text.endswith("<unfinished ...>"):
                unfinished[thread] = file
                continue
        elif resumed is not None:
            name, file = resumed[1], unfinished.pop(thread, "")
        else:
            continue
        if file.endswith(".log") and (name == "fdatasync" or name.startswith("pwrite")):
            assert re.search(r"= \d+$", text), f"it failed: {line}"
            calls.append(Call.SYNC if name == "fdatasync" else Call.RECORD)
    return calls


def is_reply(file: str, text: str) -> bool:
    # What strace calls a socket depends on how much it could find out about it. Through a pair of
    # sockets a signal wakes the event loop, with one byte.
    return file.startswith(("TCP", "socket:")) and re.search(r', ""\.*, 1\b', text) is None


def test_every_reply_leaves_after_its_record_was_written_and_synced(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with FaultServer(tmp_path, trace=trace) as server, wire.connect(server.address) as client:
        # Nothing but writes, one at a time: sessions are opened and closed by writes as well.
        assert client.call(rq.create("/a")).err == Code.OK
        for number in range(WRITES - 1):
            assert client.call(rq.set_data("/a", b"%d" % number)).err == Code.OK
        assert server.stop() == 0
    calls = read_trace(trace)
    replies = [index for index, call in enumerate(calls) if call is Call.REPLY]
    assert len(replies) >= WRITES
    assert calls.count(Call.SYNC) >= WRITES
    before = 0
    for reply in replies:
        order = calls[before:reply]
        assert order[-3:] == [Call.RECORD, Call.SYNC_BEGUN, Call.SYNC], order
        before = reply + 1


def test_writes_that_come_together_share_a_sync(tmp_path: Path) -> None:
    trace = tmp_path / "trace"
    with FaultServer(tmp_path, trace=trace) as server:
        clients = [wire.connect(server.address) for _ in range(CLIENTS)]
        for client in clients:
            client.send(*(rq.create(f"/{client.session_id}-{n}") for n in range(WRITES)))
        for client in clients:
            assert [client.reply().err for _ in range(WRITES)] == [Code.OK] * WRITES
            client.disconnect()
        assert server.stop() == 0
    calls = read_trace(trace)
    assert 0 < calls.count(Call.SYNC) < CLIENTS * WRITES // 2
    # Nothing is written to the log that is not synced before the next reply.
    assert calls.count(Call.RECORD) <= calls.count(Call.SYNC)
