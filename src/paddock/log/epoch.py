"""What clients must not notice when a state is taken back: their zxids and session ids stay below.

A client that has seen a later zxid than the server's is turned away, for ever if the server has
gone back for good. Which zxids were seen is not always known: records may be lost, or the disk that
had them. So a state that is taken back begins a new epoch, the upper half of the zxid, as Apache's
leaders do when they are elected. What the nodes themselves carry stays as it is.
"""

from __future__ import annotations

from typing import Final

from paddock.state.machine import StateMachine

_EPOCH_BITS: Final = 32
# Ids that may be given while the new state is prepared and the old one still served.
_SESSIONS_MEANWHILE: Final = 1 << 20


def begin_epoch(machine: StateMachine, zxid: int = 0, last_session: int = 0) -> None:
    """Raise a state's zxid and session ids above its own and above those seen elsewhere."""
    epoch = (max(machine.zxid, zxid) >> _EPOCH_BITS) + 1
    machine.zxid = epoch << _EPOCH_BITS
    machine.sessions.last_id = max(machine.sessions.last_id, last_session) + _SESSIONS_MEANWHILE
