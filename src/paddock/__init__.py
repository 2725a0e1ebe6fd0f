"""ZooKeeper for Python: a durable server that speaks ZooKeeper's wire protocol, and its client.

    import paddock

    async with paddock.connect("127.0.0.1:2181") as client:
        await client.create("/color", b"blue")

Everything public is here. It is imported when it is first used, so that the command line starts
without the client, and the client without the server.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from paddock._first_use import on_first_use

if TYPE_CHECKING:
    from paddock import errors, sync
    from paddock._loops import run
    from paddock.api import connect
    from paddock.client.access import (
        CREATOR_ALL_ACL,
        OPEN_ACL,
        READ_ONLY_ACL,
        Permission,
        digest_acl,
        ip_acl,
        world_acl,
    )
    from paddock.client.client import Client
    from paddock.client.metrics import ClientMetrics, RoundTrips
    from paddock.client.multiread import MultiRead, Reading
    from paddock.client.observer import Observer
    from paddock.client.operations.feeds import FeedChange
    from paddock.client.operations.streams import Change
    from paddock.client.operations.walk import WalkedNode
    from paddock.client.results import Children, Created, NodeData
    from paddock.client.session.handshake import SaslCredentials
    from paddock.client.session.hosts import Randomness
    from paddock.client.session.kerberos import KerberosCredentials
    from paddock.client.session.state_publisher import StateListener
    from paddock.client.sessions import run_in_sessions
    from paddock.client.states import Event, EventType, FeedKind, SessionState
    from paddock.client.transaction import Transaction
    from paddock.client.watches.watches import Watcher, WatchKind
    from paddock.errors import (
        AuthenticationError,
        BadArgumentsError,
        BadVersionError,
        ChannelClosedError,
        ConnectionLostError,
        DataInconsistencyError,
        EphemeralOnLocalSessionError,
        GrantLostError,
        HistoryGoneError,
        InvalidACLError,
        InvalidArgumentError,
        InvalidCallbackError,
        InvalidValueError,
        LocalProtocolError,
        LockStateError,
        MarshallingError,
        MixedLayoutsError,
        NewConfigNoQuorumError,
        NoAuthError,
        NoChildrenForEphemeralsError,
        NodeExistsError,
        NoNodeError,
        NotAppliedError,
        NotEmptyError,
        NotReadOnlyError,
        NoWatcherError,
        OperationTimeoutError,
        PaddockError,
        ProtocolError,
        QuotaExceededError,
        RecipeClosedError,
        RecipeError,
        ReconfigDisabledError,
        ReconfigInProgressError,
        RemoteProtocolError,
        ReplyLostError,
        RequestError,
        RequestTimeoutError,
        RuntimeInconsistencyError,
        ServiceError,
        SessionClosedRequireSaslError,
        SessionExpiredError,
        SessionMovedError,
        SystemFailureError,
        ThrottledError,
        TransactionFailedError,
        UnimplementedError,
        UnknownCodeError,
        UnknownSessionError,
        UsageError,
    )
    from paddock.protocol.acl import ACL, Identity
    from paddock.protocol.records import Stat

__version__ = "0.1.0"

__all__ = [
    "errors",
    "sync",
    "connect",
    "run",
    "run_in_sessions",
    "CREATOR_ALL_ACL",
    "OPEN_ACL",
    "READ_ONLY_ACL",
    "Permission",
    "digest_acl",
    "ip_acl",
    "world_acl",
    "Children",
    "Client",
    "ClientMetrics",
    "RoundTrips",
    "Observer",
    "Created",
    "NodeData",
    "MultiRead",
    "Reading",
    "SaslCredentials",
    "KerberosCredentials",
    "Randomness",
    "Event",
    "EventType",
    "SessionState",
    "StateListener",
    "Change",
    "FeedKind",
    "FeedChange",
    "WalkedNode",
    "Transaction",
    "Watcher",
    "WatchKind",
    "AuthenticationError",
    "BadArgumentsError",
    "BadVersionError",
    "ChannelClosedError",
    "ConnectionLostError",
    "DataInconsistencyError",
    "EphemeralOnLocalSessionError",
    "GrantLostError",
    "HistoryGoneError",
    "InvalidACLError",
    "InvalidArgumentError",
    "InvalidCallbackError",
    "InvalidValueError",
    "LocalProtocolError",
    "LockStateError",
    "MarshallingError",
    "MixedLayoutsError",
    "NewConfigNoQuorumError",
    "NoAuthError",
    "NoChildrenForEphemeralsError",
    "NoNodeError",
    "NoWatcherError",
    "NodeExistsError",
    "NotAppliedError",
    "NotEmptyError",
    "NotReadOnlyError",
    "OperationTimeoutError",
    "PaddockError",
    "ProtocolError",
    "QuotaExceededError",
    "RecipeClosedError",
    "RecipeError",
    "ReconfigDisabledError",
    "ReconfigInProgressError",
    "RemoteProtocolError",
    "ReplyLostError",
    "RequestError",
    "RequestTimeoutError",
    "RuntimeInconsistencyError",
    "ServiceError",
    "SessionClosedRequireSaslError",
    "SessionExpiredError",
    "SessionMovedError",
    "SystemFailureError",
    "ThrottledError",
    "TransactionFailedError",
    "UnimplementedError",
    "UnknownCodeError",
    "UnknownSessionError",
    "UsageError",
    "ACL",
    "Identity",
    "Stat",
    "__version__",
]

# Where they are, the light modules first.
_HOMES = (
    "paddock.errors",
    "paddock.protocol.records",
    "paddock.protocol.acl",
    "paddock.client.access",
    "paddock.client.states",
    "paddock.client.metrics",
    "paddock.client.observer",
    "paddock.client.watches.watches",
    "paddock.client.session.state_publisher",
    "paddock.client.session.handshake",
    "paddock.client.session.kerberos",
    "paddock.client.session.hosts",
    "paddock.client.operations.streams",
    "paddock.client.operations.feeds",
    "paddock.client.results",
    "paddock.client.operations.walk",
    "paddock.client.transaction",
    "paddock.client.multiread",
    "paddock._loops",
    "paddock.client.client",
    "paddock.client.sessions",
    "paddock.api",
)


if not TYPE_CHECKING:
    # Hidden from type checkers, which would take any name for one of ours.
    __getattr__, __dir__ = on_first_use(globals(), _HOMES, modules=("errors", "sync"))
