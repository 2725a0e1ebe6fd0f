"""Start a new zxid epoch after a restore, so that no zxid and no session id is used twice.

A client that has seen a later zxid than the server's is refused, for ever if the server has lost
those zxids for good. Which zxids clients have seen is not always known: records may be lost, or the
whole disk. So a restored state starts a new epoch, the upper half of the zxid, as Apache's leaders
do when they are elected. The zxids of nodes stay as they are.
"""

from __future__ import annotations

from paddock.log.interface import LogError
from paddock.state.epoch import next_epoch
from paddock.state.machine import StateMachine


def begin_epoch(machine: StateMachine, zxid: int = 0, last_session: int = 0) -> None:
    """Raise a state's zxid and session ids above its own and above the given ones.

    Raises LogError if there are no higher ones; no server has ever used so many.
    """
    last_id = max(machine.sessions.last_id, last_session)
    begun = next_epoch(max(machine.zxid, zxid), last_id)
    if begun is None:
        raise LogError("its zxids, or its sessions' ids, are at their end")
    machine.zxid, machine.sessions.last_id = begun
