"""What failures of etcd mean. The texts are those of etcd 3.4 to 3.6 and of grpcio."""

import pytest

from paddock.log.etcd.statuses import (
    DeadlineError,
    TooLargeError,
    UntrustedError,
    has_no_users,
    is_answer,
    is_late,
    leaves_endpoint,
    needs_token,
    reason_of,
    store_error,
)
from paddock.log.etcd.store import (
    CompactedError,
    StoreError,
    StoreForbiddenError,
    StoreFullError,
)

_TLS = "failed to connect to all addresses; last error: UNKNOWN: ipv4:127.0.0.1:2379: "


@pytest.mark.parametrize(
    ("code", "text", "kind"),
    [
        ("UNAVAILABLE", "etcdserver: request timed out", DeadlineError),
        ("UNAVAILABLE", "etcdserver: no leader", StoreError),
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", DeadlineError),
        ("UNKNOWN", "raft proposal dropped", StoreError),
        ("INTERNAL", "", StoreError),
        ("CANCELLED", "etcdserver: request canceled", StoreError),
        # It has the code of a full database, and passes.
        ("RESOURCE_EXHAUSTED", "etcdserver: too many requests", StoreError),
        ("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded", StoreFullError),
        ("RESOURCE_EXHAUSTED", "grpc: received message larger than max (3 vs. 2)", TooLargeError),
        ("RESOURCE_EXHAUSTED", "CLIENT: Sent message larger than max (3 vs. 2)", TooLargeError),
        ("INVALID_ARGUMENT", "etcdserver: request is too large", TooLargeError),
        ("PERMISSION_DENIED", "etcdserver: permission denied", StoreForbiddenError),
        (
            "INVALID_ARGUMENT",
            "etcdserver: authentication failed, invalid user ID or password",
            StoreForbiddenError,
        ),
        ("UNAUTHENTICATED", "etcdserver: invalid auth token", StoreForbiddenError),
        ("INVALID_ARGUMENT", "etcdserver: user name is empty", StoreForbiddenError),
        ("INVALID_ARGUMENT", "etcdserver: duplicate key given in txn request", StoreForbiddenError),
        ("OUT_OF_RANGE", "etcdserver: mvcc: required revision has been compacted", CompactedError),
        ("UNAVAILABLE", f"{_TLS}Failed to create security handshaker.", UntrustedError),
        ("UNAVAILABLE", f"{_TLS}Tls handshake failed (TSI_PROTOCOL_FAILURE): x", UntrustedError),
        ("UNAVAILABLE", f"{_TLS}Unwrap failed (TSI_DATA_CORRUPTED)", UntrustedError),
        # So says an etcd that dies, too.
        ("UNAVAILABLE", f"{_TLS}Handshake read failed (Socket closed)", StoreError),
        # An etcd that was restored: it may come to that revision.
        ("OUT_OF_RANGE", "etcdserver: mvcc: required revision is a future revision", StoreError),
    ],
)
def test_each_failure_has_its_error(code: str, text: str, kind: type[StoreError]) -> None:
    error = store_error(code, text, "h:1")
    assert type(error) is kind
    assert kind is CompactedError or "etcd at h:1" in str(error)


@pytest.mark.parametrize(
    ("code", "text", "leaves"),
    [
        ("UNAVAILABLE", "failed to connect to all addresses", True),
        ("UNAVAILABLE", "etcdserver: no leader", True),
        ("UNAVAILABLE", "etcdserver: leader changed", False),
        ("DEADLINE_EXCEEDED", "Deadline Exceeded", True),
        ("UNKNOWN", "raft proposal dropped", True),
        ("INTERNAL", "Received RST_STREAM", True),
        # No etcd at all, or one that is too old.
        ("UNIMPLEMENTED", "", True),
        ("RESOURCE_EXHAUSTED", "etcdserver: mvcc: database space exceeded", False),
        ("RESOURCE_EXHAUSTED", "etcdserver: too many requests", False),
        ("PERMISSION_DENIED", "etcdserver: permission denied", False),
        ("OUT_OF_RANGE", "etcdserver: mvcc: required revision has been compacted", False),
    ],
)
def test_a_member_is_left_if_it_failed(code: str, text: str, leaves: bool) -> None:
    assert leaves_endpoint(code, text) is leaves


@pytest.mark.parametrize(
    ("code", "text", "needs"),
    [
        ("UNAUTHENTICATED", "etcdserver: invalid auth token", True),
        ("UNAUTHENTICATED", "", True),
        ("INVALID_ARGUMENT", "etcdserver: user name is empty", True),
        ("INVALID_ARGUMENT", "etcdserver: revision of auth store is old", True),
        ("UNKNOWN", "auth: revision in header is old", True),
        ("PERMISSION_DENIED", "etcdserver: permission denied", False),
        ("INVALID_ARGUMENT", "etcdserver: authentication failed, invalid user ID", False),
    ],
)
def test_a_token_that_is_refused_is_recognised(code: str, text: str, needs: bool) -> None:
    assert needs_token(code, text) is needs


def test_etcd_may_say_itself_that_it_is_late() -> None:
    assert is_late("DEADLINE_EXCEEDED", "")
    assert is_late("UNAVAILABLE", "etcdserver: request timed out, possibly due to connection lost")
    assert not is_late("UNAVAILABLE", "etcdserver: no leader")


def test_what_etcd_answers_is_told_from_what_grpc_says_in_its_place() -> None:
    assert is_answer("etcdserver: no leader")
    assert is_answer("raft proposal dropped")
    assert not is_answer("failed to connect to all addresses")


def test_an_etcd_without_users_is_recognised() -> None:
    assert has_no_users("etcdserver: authentication is not enabled")
    assert not has_no_users("etcdserver: authentication failed, invalid user ID or password")


CONNECT = "failed to connect to all addresses; last error: UNKNOWN: "


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        (
            f"{CONNECT}ipv4:127.0.0.1:1: Failed to connect to remote host: connect: Refused (111)",
            "Refused",
        ),
        (f"{CONNECT}ipv6:%5B::1%5D:1: Failed to connect to remote host: Refused", "Refused"),
        (f"{CONNECT}ipv4:1.2.3.4:1: Ssl handshake failed:\nBAD", "Ssl handshake failed: BAD"),
        ("etcdserver: no leader", "no leader"),
        ("", ""),
    ],
)
def test_the_reason_is_one_short_line(text: str, reason: str) -> None:
    assert reason_of(text) == reason
