"""How the shell connects, apart from where to."""

from __future__ import annotations

import ssl
from dataclasses import dataclass

from paddock.client.requests.frames import REQUEST_BYTES_MAX


@dataclass(frozen=True, slots=True)
class Settings:
    """What every session of the shell is opened with."""

    session_timeout: float = 30.0
    read_only: bool = False
    tls: ssl.SSLContext | None = None
    max_request_bytes: int = REQUEST_BYTES_MAX
