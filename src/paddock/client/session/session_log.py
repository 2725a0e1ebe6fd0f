"""The log records of one session: each names it in its text, and has fields for programs.

The fields are attributes of the record, as those of the server's are: `session`, a number, in every
one; `server`, `reason`, `state` and `seconds` where there is one. Never a password, never data.
"""

from __future__ import annotations

import logging

from paddock.client.session.handshake import SessionCredentials


class SessionLog:
    """Logs what becomes of one session."""

    def __init__(self, logger: logging.Logger, credentials: SessionCredentials) -> None:
        self._logger = logger
        self._credentials = credentials

    def debug(self, text: str, *details: object, **fields: object) -> None:
        self._log(logging.DEBUG, text, details, fields)

    def info(self, text: str, *details: object, **fields: object) -> None:
        self._log(logging.INFO, text, details, fields)

    def warning(self, text: str, *details: object, **fields: object) -> None:
        self._log(logging.WARNING, text, details, fields)

    def error(self, text: str, *details: object, **fields: object) -> None:
        self._log(logging.ERROR, text, details, fields)

    def _log(
        self, level: int, text: str, details: tuple[object, ...], fields: dict[str, object]
    ) -> None:
        session = self._credentials.id
        # The place of the record is that of the caller.
        self._logger.log(
            level,
            f"session 0x%x: {text}",  # noqa: G004
            session,
            *details,
            extra={"session": session, **fields},
            stacklevel=3,
        )
