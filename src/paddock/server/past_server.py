"""A server of a state of the past, for a client that knows the password of its superuser."""

from __future__ import annotations

from collections.abc import Callable

from paddock.protocol.acl import digest_id
from paddock.server.config.config import ServerConfig
from paddock.server.server import Server
from paddock.state.machine import StateMachine

# The password is another one each time.
_USER = "super"
_PASSWORD_BYTES = 16


def past_server(
    machine: StateMachine, wall_clock_ms: Callable[[], int], random_bytes: Callable[[int], bytes]
) -> tuple[Server, str]:
    """Return a server that is not started, and the credentials of the one who may read it all."""
    credentials = f"{_USER}:{random_bytes(_PASSWORD_BYTES).hex()}"
    server = Server(
        ServerConfig(port=0, super_digest=digest_id(credentials)),
        wall_clock_ms=wall_clock_ms,
        random_bytes=random_bytes,
        past=machine,
    )
    return server, credentials
