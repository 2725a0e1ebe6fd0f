"""The blocking twin of `paddock.api`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

import ssl

from paddock.api import connect as async_connect
from paddock.client.requests.frames import REQUEST_BYTES_MAX
from paddock.client.session.hosts import Randomness
from paddock.client.session.sasl import SaslCredentials
from paddock.client.watches.watches import Watcher
from paddock.sync.bridge import Bridge
from paddock.sync.client import Client


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

        with paddock.sync.connect("127.0.0.1:2181", session_timeout=10) as client:
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
    bridge = Bridge()
    return Client(
        bridge,
        bridge.own(
            async_connect,
            hosts,
            session_timeout=session_timeout,
            random=random,
            tls=tls,
            read_only=read_only,
            sasl=sasl,
            default_watcher=bridge.callbacks.relay(default_watcher),
            max_request_bytes=max_request_bytes,
        ),
    )
