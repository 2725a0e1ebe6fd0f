"""The password of the admin server: HTTP's basic authentication, from a file of one line.

    monitor:a long random text

The file is read at the start. How long a comparison takes says nothing about the password.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import os
from pathlib import Path
from typing import Final

from paddock.server.config.config import ConfigError

CHALLENGE: Final = ("WWW-Authenticate", 'Basic realm="paddock", charset="UTF-8"')


class Password:
    """The name and the password that a request must have."""

    def __init__(self, path: Path) -> None:
        """Read the file. Raises ConfigError."""
        try:
            content = path.read_bytes()
            is_open = os.stat(path).st_mode & 0o004
        except OSError as error:
            raise ConfigError(
                f"the password of the admin server cannot be read: {path}: {error.strerror}"
            ) from None
        line = content.rstrip(b"\r\n")
        name, _, password = line.partition(b":")
        if not name or not password or b"\n" in line:
            raise ConfigError(f"{path}: expected one line, name:password, for the admin server")
        # Others on this machine could read it.
        self.is_exposed = bool(is_open)
        self._expected = _digest(line)

    def is_given(self, authorization: bytes | None) -> bool:
        """Return whether a header Authorization has them."""
        scheme, _, encoded = (authorization or b"").strip().partition(b" ")
        if scheme.lower() != b"basic":
            return False
        try:
            given = base64.b64decode(encoded.strip(), validate=True)
        except (binascii.Error, ValueError):
            return False
        return hmac.compare_digest(_digest(given), self._expected)


def _digest(text: bytes) -> bytes:
    # All of one length: to compare texts would tell how long the expected one is.
    return hashlib.sha256(text).digest()
