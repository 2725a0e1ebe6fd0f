"""Which writes are refused where servers share a log: those that make the state larger.

That is while the log has little room. Deletes go on, and so does everything that a session needs,
or a client could not even clean up. While the servers' states differ, clients write nothing at all.
"""

from __future__ import annotations

from typing import Final

from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError
from paddock.server.replication.pacing import DISPUTED
from paddock.state.entry import Entry
from paddock.state.multi import read_steps

_GROWING: Final = frozenset(
    {
        opcodes.CREATE,
        opcodes.CREATE2,
        opcodes.CREATE_CONTAINER,
        opcodes.CREATE_TTL,
        opcodes.SET_DATA,
        opcodes.SET_ACL,
    }
)


_CLIENTS: Final = _GROWING | {opcodes.DELETE, opcodes.DELETE_CONTAINER, opcodes.MULTI}


def is_refused(entry: Entry, restraint: int) -> bool:
    """Return whether an entry is refused, for one of the reasons of `pacing`."""
    if restraint & DISPUTED:
        return entry.operation in _CLIENTS
    return grows(entry)


def grows(entry: Entry) -> bool:
    """Return whether an entry may make the state larger."""
    if entry.operation != opcodes.MULTI:
        return entry.operation in _GROWING
    try:
        steps = read_steps(entry.body, entry.acl_entries_max())
    except DecodeError:
        # It has no effect, and its answer says so.
        return False
    return any(step.operation in _GROWING for step in steps)
