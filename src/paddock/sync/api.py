"""The blocking twin of `paddock.api`.

Written by tools/twin.py from the signatures there; not to be edited.
"""

from __future__ import annotations

import ssl

from paddock.api import connect as async_connect
from paddock.client.observer import Observer
from paddock.client.requests.encoder import REQUEST_BYTES_MAX
from paddock.client.session.handshake import SaslCredentials
from paddock.client.session.hosts import Randomness
from paddock.client.session.kerberos import KerberosCredentials
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
    sasl: SaslCredentials | KerberosCredentials | None = None,
    default_watcher: Watcher | None = None,
    max_request_bytes: int = REQUEST_BYTES_MAX,
    exact: bool = True,
    observer: Observer | None = None,
) -> Client:
    """Return a client of the service at `one:2181,two:2181/chroot`; its scope opens the session.

        with paddock.sync.connect("127.0.0.1:2181", session_timeout=10) as client:
            print(client.state)  # CONNECTED

    `session_timeout` is in seconds; the service may grant another one. `tls` encrypts connections.
    `sasl` authenticates each of them, by DIGEST-MD5 or by Kerberos. `read_only` accepts a server in
    read-only mode until another one is found. The `default_watcher` gets every state of the
    session, and the events of reads with `watch=True`. `random` makes tests repeatable.
    `max_request_bytes` is the servers' `jute.maxbuffer`: a larger request raises
    InvalidArgumentError.

    `exact` asks for an exact session: a write whose reply was lost gets its own outcome after the
    reconnect, and happens once. Only Paddock has exact sessions; on another service the session is
    an ordinary one, and `is_exact` is False. Without `exact` it is an ordinary one everywhere.

    An `observer` is told of calls, states and waits; `paddock.otel.OpenTelemetry` makes spans and
    metrics of them.

    Entering the scope raises ConnectionLostError if no server grants a session within the session
    timeout, and AuthenticationError if the `sasl` credentials are refused. The chroot need not
    exist; the first `create` with `make_parents` creates it.
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
            exact=exact,
            observer=observer,
        ),
    )
