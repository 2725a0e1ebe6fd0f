"""The way in: `connect` makes a client, with what the client itself takes from outside.

    async with paddock.connect("127.0.0.1:2181/app") as client:
        await client.create("/config", b"v1")

The client has no randomness of its own, so that a seeded run repeats itself; the default is the
system's.
"""

from __future__ import annotations

import random as standard_random
import ssl
from asyncio import _get_running_loop as running_loop

from paddock.client.client import Client
from paddock.client.requests.frames import REQUEST_BYTES_MAX
from paddock.client.session.hosts import Randomness, parse_hosts
from paddock.client.session.sasl import SaslCredentials
from paddock.client.watches.watches import Watcher
from paddock.errors import UsageError


def connect(
    hosts: str,
    *,
    session_timeout: float = 10.0,
    random: Randomness | None = None,
    tls: ssl.SSLContext | None = None,
    read_only: bool = False,
    sasl: SaslCredentials | None = None,
    default_watcher: Watcher | None = None,
    max_request_bytes: int = REQUEST_BYTES_MAX,
) -> Client:
    """Return a client of the service at `one:2181,two:2181/chroot`; its scope opens the session.

        async with paddock.connect("127.0.0.1:2181", session_timeout=10) as client:
            print(client.state)  # CONNECTED

    `session_timeout` is in seconds; the service may grant another one. `tls` encrypts connections.
    `sasl` authenticates each of them by DIGEST-MD5. `read_only` accepts a server in read-only mode
    until another one is found. The `default_watcher` gets every state of the session, and the
    events of reads with `watch=True`. `random` makes tests repeatable. `max_request_bytes` is the
    servers' `jute.maxbuffer`: a larger request raises InvalidArgumentError.

    Entering the scope raises ConnectionLostError if no server grants a session within the session
    timeout, and AuthenticationError if the `sasl` credentials are refused. The chroot need not
    exist; the first `create` with `make_parents` creates it.
    """
    if running_loop() is None:
        raise UsageError(
            "paddock.connect is for code that an event loop runs, and none runs here;"
            " use paddock.sync.connect, or paddock.run"
        )
    parsed, chroot = parse_hosts(hosts)
    return Client(
        parsed,
        chroot,
        session_timeout,
        standard_random.SystemRandom() if random is None else random,
        tls=tls,
        read_only=read_only,
        sasl=sasl,
        default_watcher=default_watcher,
        max_request_bytes=max_request_bytes,
    )
