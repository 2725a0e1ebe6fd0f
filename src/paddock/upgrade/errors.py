"""Errors of an upgrade; each is one line for people."""

from __future__ import annotations

from pathlib import Path

from paddock.errors import PaddockError


class UpgradeError(PaddockError):
    """The folder cannot be upgraded. Says why, and what helps."""


class DamagedFileError(UpgradeError):
    """A file is damaged. Names it, the offset, and the reason."""

    def __init__(self, path: Path, offset: int, reason: str) -> None:
        self.path = path
        self.offset = offset
        self.reason = reason
        super().__init__(f"{path}: offset {offset}: {reason}")
