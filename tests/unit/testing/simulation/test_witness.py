"""The log, read for the judge."""

from collections import Counter

from paddock.errors import NO_NODE
from paddock.log.interface import Record
from paddock.protocol import opcodes
from paddock.protocol.acl import OPEN
from paddock.protocol.requests import CreateRequest, VersionRequest
from paddock.state.entry import ATTACH, DEPOSE, EXPIRE, JOIN, RULES, Batch, Entry
from paddock.state.machine import attach_body, session_body
from paddock.state.roster_bodies import DeposeRequest, JoinRequest
from paddock.testing.simulation import history as h
from paddock.testing.simulation.frames import encode_record
from paddock.testing.simulation.history import Logged
from paddock.testing.simulation.witness import read_log, read_shared_log

SESSION = 1 << 16
PASSWORD = bytes(16)


def opened() -> Entry:
    return Entry(opcodes.CREATE_SESSION, session_body(4_000, PASSWORD), time_ms=1)


def write(xid: int, path: bytes) -> Entry:
    body = encode_record(CreateRequest(path, b"", list(OPEN), 0))
    return Entry(opcodes.CREATE, body, SESSION, 1, xid)


def batch(*entries: Entry) -> bytes:
    return Batch(list(entries), 0, 0).encode()


def test_each_zxid_has_a_line() -> None:
    missing = Entry(opcodes.DELETE, encode_record(VersionRequest(b"/x", -1)), SESSION, 1, 8)
    attached = Entry(ATTACH, attach_body(4_000, PASSWORD, 0), SESSION)
    late = write(9, b"/b")
    expired = Entry(EXPIRE, b"", SESSION, 2)
    log = [(1.0, batch(opened(), write(7, b"/a"))), (2.0, batch(missing, attached, late, expired))]
    assert [(one.zxid, one.about, one.xid, one.error, one.at) for one in read_log(log)] == [
        (1, h.OPENED, 0, 0, 1.0),
        (2, h.CALL, 7, 0, 1.0),
        (3, h.CALL, 8, NO_NODE, 2.0),
        (4, h.CALL, 9, -118, 2.0),
        (5, h.EXPIRED, 0, 0, 2.0),
    ]


def test_a_shared_log_is_read_in_the_order_of_its_servers() -> None:
    boot = b"12345678"
    join = Entry(JOIN, JoinRequest(0, RULES, "", "", "", b"", 1).encode())
    records = [
        Record(1, batch(join), boot, 0, 2),
        Record(2, batch(write(8, b"/b")), boot, 3, 3),
        Record(3, batch(opened()), boot, 1, 4),
        Record(4, batch(write(7, b"/a")), boot, 2, 5),
        Record(5, batch(write(7, b"/a")), boot, 2, 6),
        Record(6, batch(opened()), b"unknown!", 4, 7),
    ]
    counts: Counter[str] = Counter()
    log = [(float(one.index), one) for one in records]
    joined, *lines = read_shared_log(log, counts, {boot: "s1"})
    assert joined == Logged(0, h.JOINED, 1, path=f"s1 {boot.hex()}", at=1.0)
    assert [(one.zxid, one.about, one.xid) for one in lines] == [
        (1, h.OPENED, 0),
        (2, h.CALL, 7),
        (3, h.CALL, 8),
    ]
    assert lines[0] == Logged(1, h.OPENED, lines[0].session, timeout_ms=4_000, at=3.0)
    # It counts from when what it waited for was committed.
    assert lines[2].at == 4.0
    assert counts == {"log: held batches": 1, "log: void batches": 2, "members: joined": 1}


def test_a_deposed_server_has_been_silent_for_a_while() -> None:
    one, other = b"11111111", b"22222222"
    join = Entry(JOIN, JoinRequest(0, RULES, "", "", "", b"", 1).encode())
    depose = Entry(DEPOSE, DeposeRequest(one, 3).encode())
    log = [
        (1.0, Record(1, batch(join), one, 0, 2)),
        (2.0, Record(2, batch(join), other, 0, 3)),
        (3.0, Record(3, batch(), one, 1, 4)),
        # Nothing of it is applied any more, so it is no sign of life.
        (4.0, Record(4, batch(), one, 1, 5)),
        (7.5, Record(5, batch(depose), other, 1, 6)),
    ]
    lines = list(read_shared_log(log, Counter(), {one: "s1", other: "s2"}))
    name = f"s1 {one.hex()}"
    assert lines[-1] == Logged(0, h.DEPOSED, 1, path=name, timeout_ms=4_500, at=7.5)
