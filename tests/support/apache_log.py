"""Reads the transaction log of an Apache ZooKeeper for the judge: one line for each zxid.

It is the witness of a server that was in every quorum: then its log has what was committed, and
nothing else. Apache's logs are never purged unless it is told to.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from paddock.errors import OK
from paddock.protocol import opcodes
from paddock.protocol.jute import Reader
from paddock.testing.simulation import history as h
from paddock.testing.simulation.history import Logged
from paddock.upgrade.transaction_log import TransactionLog

_NAME: Final = re.compile(r"log\.([0-9a-f]{1,16})")
_EPOCH_BITS: Final = 32


def read_transactions(data: Path) -> Iterator[Logged]:
    """Yield what the log in a data folder holds, and where an epoch of its ensemble begins."""
    matches = ((_NAME.fullmatch(path.name), path) for path in (data / "version-2").iterdir())
    files = sorted((int(match[1], 16), path) for match, path in matches if match is not None)
    epoch = 0
    for _, path in files:
        for record in TransactionLog(path).records():
            logged = logged_of(record.payload)
            if logged.zxid >> _EPOCH_BITS > epoch:
                epoch = logged.zxid >> _EPOCH_BITS
                yield Logged(epoch << _EPOCH_BITS, h.EPOCH)
            yield logged


def logged_of(payload: bytes) -> Logged:
    """Return the line of a transaction. What the server does by itself has no xid."""
    reader = Reader(payload)
    session, xid, zxid = reader.int64(), reader.int32(), reader.int64()
    reader.int64()
    kind = reader.int32()
    if kind == opcodes.CREATE_SESSION:
        return Logged(zxid, h.OPENED, session, timeout_ms=reader.int32())
    if kind == opcodes.CLOSE_SESSION and not xid:
        return Logged(zxid, h.EXPIRED, session)
    if kind == opcodes.DELETE_CONTAINER:
        return Logged(zxid, h.REAPED, path=reader.string().decode(errors="replace"))
    error = reader.int32() if kind == opcodes.ERROR else OK
    is_refused = False
    if kind == opcodes.MULTI:
        steps = [(reader.int32(), reader.string()) for _ in range(reader.int32())]
        is_refused = any(step == opcodes.ERROR for step, _ in steps)
    return Logged(zxid, h.CALL, session, xid, error, is_refused=is_refused)
