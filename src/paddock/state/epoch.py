"""Epochs: the upper half of a zxid, which goes up when the lower half may have been used before."""

from __future__ import annotations

from typing import Final

_EPOCH_BITS: Final = 32
_EPOCHS: Final = 1 << 31
_SESSION_IDS: Final = 1 << 63
# Ids that may be used while the new state is prepared and the old one still served.
_SESSIONS_MEANWHILE: Final = 1 << 20


def next_epoch(zxid: int, last_session: int) -> tuple[int, int] | None:
    """Return the first zxid of the next epoch, and the last session id to be taken as given.

    None if there are no higher ones; no server has ever used so many.
    """
    epoch = (zxid >> _EPOCH_BITS) + 1
    last_id = last_session + _SESSIONS_MEANWHILE
    if not 0 < epoch < _EPOCHS or not 0 <= last_id < _SESSION_IDS:
        return None
    return epoch << _EPOCH_BITS, last_id


def epoch_of(zxid: int) -> int:
    """Return the epoch in which a zxid was taken."""
    return zxid >> _EPOCH_BITS
