"""What can go wrong with a folder that is to be taken over; each error is one line for people."""

from __future__ import annotations

from pathlib import Path

from paddock.errors import PaddockError


class UpgradeError(PaddockError):
    """The folder cannot be taken over. Says why, and where there is a way out, which."""


class DamagedFileError(UpgradeError):
    """A file is not what it should be. Names it, the place, and what was wrong there."""

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        self.path = path
        self.offset = offset
        self.reason = reason
        super().__init__(f"{path}: offset {offset}: {reason}")
