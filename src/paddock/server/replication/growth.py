"""Which writes make the state larger: those that are refused while a shared log has no room.

Deletes go on, and so does everything that a session needs, or a client could not even clean up.
"""

from __future__ import annotations

from typing import Final

from paddock.protocol import opcodes
from paddock.protocol.jute import DecodeError
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
