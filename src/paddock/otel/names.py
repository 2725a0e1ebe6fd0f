"""The names of attributes, as OpenTelemetry's conventions for database clients have them.

What these do not know begins with `zookeeper.`, and of recipes with `paddock.`. A session and a
zxid are text in hexadecimal, as in logs.
"""

from __future__ import annotations

import asyncio
from typing import Final, TypeAlias

from paddock.errors import ConnectionLostError, ServiceError, TransactionFailedError

Attributes: TypeAlias = dict[str, str | int | bool]

SCHEMA_URL: Final = "https://opentelemetry.io/schemas/1.33.0"
SYSTEM: Final = "zookeeper"

DB_SYSTEM: Final = "db.system.name"
DB_OPERATION: Final = "db.operation.name"
DB_NAMESPACE: Final = "db.namespace"
DB_STATUS: Final = "db.response.status_code"
ERROR_TYPE: Final = "error.type"
SERVER_ADDRESS: Final = "server.address"
SERVER_PORT: Final = "server.port"

PATH: Final = "zookeeper.path"
SESSION: Final = "zookeeper.session"
XID: Final = "zookeeper.xid"
ZXID: Final = "zookeeper.zxid"
LOSSES: Final = "zookeeper.lost_connections"
STATE: Final = "zookeeper.state"
NEXT_SERVER: Final = "zookeeper.next_server"
EVENT_TYPE: Final = "zookeeper.event.type"
WATCH_KIND: Final = "zookeeper.watch.kind"
REQUEST_STATE: Final = "zookeeper.request.state"

LOCK_KIND: Final = "paddock.lock.kind"
LOCK_PATH: Final = "paddock.lock.path"
LOCK_NODE: Final = "paddock.lock.node"
LOCK_TOKEN: Final = "paddock.lock.token"
LOCK_WAITED: Final = "paddock.lock.waited"
LOCK_OUTCOME: Final = "paddock.lock.outcome"
BLOCKED_BY: Final = "paddock.lock.blocked_by"
BLOCKING_SESSION: Final = "paddock.lock.blocked_by.session"


def hexadecimal(number: int) -> str:
    """Return a session id or a zxid as text."""
    return f"0x{number & (1 << 64) - 1:x}"


def type_of(error: BaseException) -> str:
    """Return what `error.type` says: the name of a class, or that the call was cancelled."""
    return "cancelled" if isinstance(error, asyncio.CancelledError) else type(error).__name__


def status_code(error: BaseException) -> str | None:
    """Return the result code of an error that the service has answered."""
    if isinstance(error, TransactionFailedError) and error.cause is not None:
        error = error.cause
    if not isinstance(error, ServiceError) or isinstance(error, ConnectionLostError):
        return None
    return str(error.code)
