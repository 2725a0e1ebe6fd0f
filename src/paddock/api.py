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
from typing import Final

from paddock.client.client import Client
from paddock.client.observer import Observer
from paddock.client.requests.arguments import check_count, check_flag, check_watcher, is_number
from paddock.client.requests.encoder import REQUEST_BYTES_MAX
from paddock.client.session.handshake import SaslCredentials
from paddock.client.session.hosts import Randomness, parse_hosts
from paddock.client.session.kerberos import KerberosCredentials
from paddock.client.watches.watches import Watcher
from paddock.errors import InvalidArgumentError, UsageError

# The protocol has 32 bits for the milliseconds.
_SESSION_SECONDS_MAX: Final = (2**31 - 1) / 1000


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

        async with paddock.connect("127.0.0.1:2181", session_timeout=10) as client:
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
    if running_loop() is None:
        raise UsageError(
            "paddock.connect is for code that an event loop runs, and none runs here;"
            " use paddock.sync.connect, or paddock.run"
        )
    parsed, chroot = parse_hosts(hosts)
    if random is None:
        random = standard_random.SystemRandom()
    _check(session_timeout, random, tls, read_only, sasl, max_request_bytes)
    check_flag("exact", exact)
    if observer is not None and not isinstance(observer, Observer):
        raise InvalidArgumentError(f"observer: expected an Observer, not {observer!r}")
    if default_watcher is not None:
        check_watcher("default_watcher", default_watcher)
    return Client(
        parsed,
        chroot,
        session_timeout,
        random,
        tls=tls,
        read_only=read_only,
        sasl=sasl,
        default_watcher=default_watcher,
        max_request_bytes=max_request_bytes,
        exact=exact,
        observer=observer,
    )


def _check(
    session_timeout: object,
    random: object,
    tls: object,
    read_only: object,
    sasl: object,
    request_bytes_max: object,
) -> None:
    """Raise InvalidArgumentError for a setting that a client cannot have."""
    if not is_number(session_timeout) or not 0.001 <= session_timeout <= _SESSION_SECONDS_MAX:
        raise InvalidArgumentError(
            f"session_timeout: {session_timeout!r} is no number of seconds for a session"
        )
    if not isinstance(random, Randomness):
        raise InvalidArgumentError(f"random: expected a random.Random, not {random!r}")
    if tls is not None and not isinstance(tls, ssl.SSLContext):
        raise InvalidArgumentError(f"tls: expected an ssl.SSLContext, not {tls!r}")
    check_flag("read_only", read_only)
    if sasl is not None and not isinstance(sasl, SaslCredentials | KerberosCredentials):
        # The value itself may be a secret.
        kind = type(sasl).__name__
        raise InvalidArgumentError(
            f"sasl: expected SaslCredentials or KerberosCredentials, not {kind}"
        )
    check_count("max_request_bytes", request_bytes_max)
