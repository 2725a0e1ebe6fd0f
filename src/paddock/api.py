"""The way in: `connect` makes a client, with what the client itself takes from outside.

    async with paddock.connect("127.0.0.1:2181/app") as client:
        await client.create("/config", b"v1")

The client has no randomness of its own, so that a seeded run repeats itself; whoever does not hand
one in gets the system's.
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
    """Give a client of the service at `one:2181,two:2181/chroot`; its scope opens the session.

        async with paddock.connect("127.0.0.1:2181", session_timeout=10) as client:
            print(client.state)  # CONNECTED

    `session_timeout` is in seconds, and the service may grant another one. With `tls` the
    connection is secured. With `sasl` we prove by DIGEST-MD5 who we are, on every connection before
    anything else. With `read_only` a server will do that has lost the others and can only be read
    from, until one is found that can be written to. The `default_watcher` is told of every state of
    the session, and of what a read with `watch=True` watches. `random` is for tests that repeat
    themselves. `max_request_bytes` is what the servers take at once, `jute.maxbuffer` there: what
    is larger would cost us the connection, and raises InvalidArgumentError instead.

    Entering the scope raises ConnectionLostError if no server gives us a session within the session
    timeout, and AuthenticationError if the `sasl` credentials are not accepted. The chroot need not
    exist; the first `create` with `make_parents` makes it, too.
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
