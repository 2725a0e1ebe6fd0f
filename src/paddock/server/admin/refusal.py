"""Why an admin command on data is refused."""

from __future__ import annotations


class RefusedError(Exception):
    """The reason why a command is refused, and its HTTP status."""

    def __init__(self, status: int, reason: str, retry_after: float = 0.0) -> None:
        super().__init__(reason)
        self.status = status
        self.reason = reason
        # Seconds after which to try again; 0 if that does not help.
        self.retry_after = retry_after
