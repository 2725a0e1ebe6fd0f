"""Apache's transaction log, read for the judge."""

import struct
import zlib
from pathlib import Path

from paddock.errors import NO_NODE
from paddock.protocol import opcodes
from paddock.testing.simulation import history as h
from paddock.testing.simulation.history import Logged
from paddock.upgrade.transaction_log import FILE_HEADER, MAGIC, RECORD_END, RECORD_HEADER
from tests.support.apache_log import read_transactions

SESSION = 0x1000_0001
FIRST, SECOND = 1 << 32, 2 << 32


def string(text: bytes) -> bytes:
    return struct.pack(">i", len(text)) + text


def record(zxid: int, kind: int, xid: int, body: bytes) -> bytes:
    payload = struct.pack(">qiqqi", SESSION, xid, zxid, 1_700_000_000_000, kind) + body
    header = RECORD_HEADER.pack(zlib.adler32(payload), len(payload))
    return header + payload + RECORD_END


def write(path: Path, *records: bytes) -> None:
    path.parent.mkdir(exist_ok=True)
    path.write_bytes(FILE_HEADER.pack(MAGIC, 2, 0) + b"".join(records) + bytes(1000))


def multi(*steps: tuple[int, bytes]) -> bytes:
    packed = b"".join(struct.pack(">i", kind) + string(body) for kind, body in steps)
    return struct.pack(">i", len(steps)) + packed


def test_each_zxid_has_a_line_and_each_epoch(tmp_path: Path) -> None:
    folder = tmp_path / "version-2"
    error = struct.pack(">i", NO_NODE)
    write(
        folder / "log.100000001",
        record(FIRST + 1, opcodes.CREATE_SESSION, 0, struct.pack(">i", 8000)),
        record(FIRST + 2, opcodes.SET_DATA, 7, b"whatever"),
        record(FIRST + 3, opcodes.ERROR, 8, error),
    )
    write(
        folder / "log.200000001",
        record(SECOND + 1, opcodes.MULTI, 9, multi((opcodes.CHECK, b"x"), (opcodes.CREATE, b"y"))),
        record(SECOND + 2, opcodes.MULTI, 10, multi((opcodes.ERROR, error))),
        record(SECOND + 3, opcodes.DELETE_CONTAINER, 0, string(b"/a")),
        record(SECOND + 4, opcodes.CLOSE_SESSION, 0, b""),
        record(SECOND + 5, opcodes.CLOSE_SESSION, 11, b""),
    )
    (folder / "snapshot.0").write_bytes(b"")
    assert list(read_transactions(tmp_path)) == [
        Logged(FIRST, h.EPOCH),
        Logged(FIRST + 1, h.OPENED, SESSION, timeout_ms=8000),
        Logged(FIRST + 2, h.CALL, SESSION, 7),
        Logged(FIRST + 3, h.CALL, SESSION, 8, NO_NODE),
        Logged(SECOND, h.EPOCH),
        Logged(SECOND + 1, h.CALL, SESSION, 9),
        Logged(SECOND + 2, h.CALL, SESSION, 10, is_refused=True),
        Logged(SECOND + 3, h.REAPED, path="/a"),
        Logged(SECOND + 4, h.EXPIRED, SESSION),
        Logged(SECOND + 5, h.CALL, SESSION, 11),
    ]
