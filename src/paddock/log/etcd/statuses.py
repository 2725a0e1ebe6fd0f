"""What the failures of etcd mean, as gRPC tells them: a status code and a text.

The rules:

* The outcome of a failed call is unknown, unless this file says otherwise. Codes alone do not say
  enough: RESOURCE_EXHAUSTED is a full database, a message that is too large, or too many requests.
* A refusal that cannot pass is StoreForbiddenError. "Invalid argument" is one: etcd checks a
  request before it is proposed, and the same request fails again.
* A connection that TLS refuses is UntrustedError: it does not pass by itself, but does when files
  of certificates are replaced, here or at etcd. A start ends with it, a server that runs does not.
  The same if such a file cannot be read.
* NOSPACE is StoreFullError. etcd may answer it even if it has carried out the call: the write that
  crosses the quota is applied, and then answered with the error.
"""

from __future__ import annotations

import re
from typing import Final

from paddock.log.etcd.store import (
    CompactedError,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
)

_COMPACTED: Final = "required revision has been compacted"
_FULL: Final = "database space exceeded"
_NOT_ENABLED: Final = "authentication is not enabled"
_TIMED_OUT: Final = "request timed out"
# gRPC says this on both sides, of a message that is sent and of one that is received.
_LARGER: Final = "larger than max"
_TOO_LARGE: Final = "request is too large"

# A token that does not count any more, or none at all where one is needed. What has an old revision
# was given before users or roles were changed.
_TOKEN_TEXTS: Final = (
    "invalid auth token",
    "revision of auth store is old",
    "revision in header is old",
    "user name is empty",
)
# What says nothing against the member that answers: it need not be left for another.
_MEMBER_IS_WELL: Final = ("leader changed", "too many requests")

# "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:2379: Failed to connect
# to remote host: Connection refused (111)"
_LAST_ERROR: Final = re.compile(
    r"last error: (?:[A-Z_]+: )?(?:ipv[46]:\S+ )?(?:Failed to connect to remote host: )?"
    r"(?:connect: )?(.*?)(?: \(\d+\))?$",
    re.DOTALL,
)


# What gRPC says of a connection that TLS refuses, and what it means.
_TLS_REASONS: Final = {
    "Failed to create security handshaker": (
        "the certificates for TLS cannot be used: --etcd-ca-file, --etcd-cert-file and"
        " --etcd-key-file name PEM files, and the key is that of the certificate"
    ),
    "WRONG_VERSION_NUMBER": "it does not speak TLS: the address begins with etcd:// then",
    "handshake failed": (
        "its certificate is not signed by an authority in --etcd-ca-file, or is for another host"
    ),
    "Unwrap failed": (
        "it wants a certificate that its own authority has signed, by --etcd-cert-file and"
        " --etcd-key-file"
    ),
}


class UntrustedError(StoreError):
    """etcd and this side do not accept each other's certificates, or ours cannot be read."""


class TooLargeError(StoreForbiddenError):
    """A message is larger than this side or the other one takes."""


class DeadlineError(StoreError):
    """There was no answer in time."""


def needs_token(code: str, text: str) -> bool:
    """Return whether a call failed for want of a valid token."""
    return code == "UNAUTHENTICATED" or any(sign in text for sign in _TOKEN_TEXTS)


def has_no_users(text: str) -> bool:
    """Return whether an authentication failed because etcd asks nobody for one."""
    return _NOT_ENABLED in text


def leaves_endpoint(code: str, text: str) -> bool:
    """Return whether the next call should go to another member."""
    if code in ("UNAVAILABLE", "UNKNOWN", "CANCELLED"):
        return not any(sign in text for sign in _MEMBER_IS_WELL)
    return code in ("DEADLINE_EXCEEDED", "INTERNAL", "DATA_LOSS", "UNIMPLEMENTED", "ABORTED")


def is_late(code: str, text: str) -> bool:
    """Return whether there was no answer in time, or only that there will be none."""
    # etcd knows our deadline, and sometimes says so itself just before it is over.
    return code == "DEADLINE_EXCEEDED" or _TIMED_OUT in text


def is_answer(text: str) -> bool:
    """Return whether etcd itself has answered, and not gRPC in its place."""
    return text.startswith(("etcdserver: ", "raft"))


def store_error(code: str, text: str, endpoint: str) -> StoreError:
    """Return the error that a failed call raises."""
    if _FULL in text:
        return StoreFullError(f"etcd at {endpoint} is full (NOSPACE)")
    if code == "OUT_OF_RANGE" and _COMPACTED in text:
        return CompactedError(0)
    for sign, meaning in _TLS_REASONS.items():
        if sign in text:
            return UntrustedError(f"etcd at {endpoint}: {meaning} ({reason_of(text)})")
    reason = f"etcd at {endpoint}: {reason_of(text) or code}"
    if _LARGER in text or _TOO_LARGE in text:
        return TooLargeError(reason)
    if code in ("PERMISSION_DENIED", "INVALID_ARGUMENT") or needs_token(code, text):
        return StoreForbiddenError(reason)
    return DeadlineError(reason) if is_late(code, text) else StoreError(reason)


def reason_of(text: str) -> str:
    """Return the part of a text that says why, in one line."""
    found = _LAST_ERROR.search(text)
    return " ".join((found[1] if found else text).split()).removeprefix("etcdserver: ")
