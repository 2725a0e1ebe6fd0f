"""The users of DIGEST-MD5: their secrets, by name.

They are in a JAAS file, as `user_bob="secret"`, or in a file of lines as the program `htdigest`
writes them, without passwords:

    bob:zk-sasl-md5:d6c2ea9a3d6b34e7e6a4ad5a77d1f2ba

The rules:

* The files are read at the start. Passwords are not kept, only what they prove.
* The secret of a line is the MD5 of `bob:zk-sasl-md5:password`, in Latin-1. For this conversation
  it is as good as the password: such a file is to be kept as secret.
* A user of both files, or twice in one, is an error, as is an empty password.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Final

from paddock.protocol.digest_md5 import REALM, secret_of
from paddock.server.config.config import ConfigError
from paddock.server.sasl.jaas import BYTES_MAX, LoginModule

_PREFIX: Final = "user_"
_MODULE: Final = "DigestLoginModule"
# Every write carries the name into the log.
_NAME_BYTES_MAX: Final = 256
_SECRET: Final = re.compile(r"[0-9a-fA-F]{32}")


class Users:
    """The secrets of all users."""

    def __init__(self) -> None:
        self._secrets: dict[str, bytes] = {}

    def __len__(self) -> int:
        return len(self._secrets)

    def get(self, name: str) -> bytes | None:
        """Return the secret of a user."""
        return self._secrets.get(name)

    def read_modules(self, path: Path, modules: list[LoginModule]) -> None:
        """Add the users of a JAAS file. Raises ConfigError."""
        for module in modules:
            if module.name != _MODULE:
                continue
            for key, password in module.options.items():
                if key.startswith(_PREFIX):
                    name = key.removeprefix(_PREFIX)
                    if not password:
                        raise ConfigError(f"{path}: the user {name!r} has an empty password")
                    self._add(str(path), name, secret_of(name, password))

    def read_file(self, path: Path) -> None:
        """Add the users of a file of lines. Raises ConfigError."""
        for number, line in _lines(path):
            where = f"{path}:{number}"
            name, _, rest = line.partition(":")
            realm, _, secret = rest.partition(":")
            if realm != REALM or not _SECRET.fullmatch(secret):
                # It may hold a password: it is not repeated.
                raise ConfigError(
                    f"{where}: expected name:{REALM}:digest, as `htdigest FILE {REALM} NAME` writes"
                    " it"
                )
            self._add(where, name, bytes.fromhex(secret))

    def _add(self, where: str, name: str, secret: bytes) -> None:
        if not 0 < len(name.encode()) <= _NAME_BYTES_MAX:
            raise ConfigError(f"{where}: the name of a user has 1 to {_NAME_BYTES_MAX} bytes")
        if name in self._secrets:
            raise ConfigError(f"{where}: the user {name!r} is there twice")
        self._secrets[name] = secret


def is_exposed(path: Path) -> bool:
    """Return whether others on this machine can read a file."""
    try:
        return bool(os.stat(path).st_mode & 0o004)
    except OSError:
        return False


def _lines(path: Path) -> Iterator[tuple[int, str]]:
    try:
        with path.open("rb") as file:
            content = file.read(BYTES_MAX + 1)
        if len(content) > BYTES_MAX:
            raise ConfigError(f"{path}: the file of users is larger than {BYTES_MAX} bytes")
        text = content.decode("utf-8")
    except OSError as error:
        raise ConfigError(f"{path}: the users cannot be read: {error.strerror}") from None
    except UnicodeDecodeError:
        raise ConfigError(f"{path}: the file of users is not text in UTF-8") from None
    for number, line in enumerate(text.splitlines(), start=1):
        if line.strip() and not line.startswith("#"):
            yield number, line.rstrip("\r")
