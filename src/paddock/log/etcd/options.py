"""Where etcd is, and how it is talked to."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path


@dataclass(frozen=True, slots=True)
class EtcdOptions:
    """The endpoints of one etcd, in the order in which they are tried, and our credentials.

    Files are read anew for each connection, so they may be replaced without a restart.
    """

    # "host:port" each; an IPv6 address stands in brackets.
    endpoints: tuple[str, ...]
    # Whether to use TLS. Without a file of authorities those of the system are trusted.
    is_secure: bool = False
    ca_file: Path | None = None
    # Our own certificate, where etcd asks for one. Both or neither.
    certificate_file: Path | None = None
    key_file: Path | None = None
    # Without a user, no token is asked for.
    user: str = ""
    password: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        if not self.endpoints:
            raise ValueError("etcd needs at least one endpoint, such as 127.0.0.1:2379")
        for endpoint in self.endpoints:
            host, colon, port = endpoint.rpartition(":")
            if not colon or not host or not port.isascii() or not port.isdigit():
                raise ValueError(f"not an endpoint of etcd: {endpoint!r}; it is host:port")
            if not 0 < int(port) < 1 << 16:
                raise ValueError(f"not an endpoint of etcd: {endpoint!r}; no such port")
        if (self.certificate_file is None) != (self.key_file is None):
            raise ValueError("etcd's client certificate and its key go together")
        files = (self.ca_file, self.certificate_file)
        if not self.is_secure and any(file is not None for file in files):
            raise ValueError("certificates are for etcds://, not for etcd://")
        if self.password and not self.user:
            raise ValueError("etcd's password needs a user")
