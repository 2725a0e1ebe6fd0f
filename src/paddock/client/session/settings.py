"""The arguments of `connect` that a session is made of, checked before anything is looked up."""

from __future__ import annotations

import ssl
from typing import Final

from paddock.client.requests.arguments import check_count, check_flag, is_number
from paddock.client.session.hosts import Randomness
from paddock.client.session.sasl import SaslCredentials
from paddock.errors import InvalidArgumentError

# The protocol has 32 bits for the milliseconds.
_SESSION_SECONDS_MAX: Final = (2**31 - 1) / 1000


def check_settings(
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
    if sasl is not None and not isinstance(sasl, SaslCredentials):
        # The value itself may be a secret.
        raise InvalidArgumentError(f"sasl: expected SaslCredentials, not {type(sasl).__name__}")
    check_count("max_request_bytes", request_bytes_max)
