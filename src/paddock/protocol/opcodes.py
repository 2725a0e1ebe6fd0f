"""The operations of ZooKeeper 3.9, by the numbers that the wire has for them."""

from __future__ import annotations

from typing import Final

NOTIFICATION: Final = 0
CREATE: Final = 1
DELETE: Final = 2
EXISTS: Final = 3
GET_DATA: Final = 4
SET_DATA: Final = 5
GET_ACL: Final = 6
SET_ACL: Final = 7
GET_CHILDREN: Final = 8
SYNC: Final = 9
PING: Final = 11
GET_CHILDREN2: Final = 12
CHECK: Final = 13
MULTI: Final = 14
CREATE2: Final = 15
RECONFIG: Final = 16
CHECK_WATCHES: Final = 17
REMOVE_WATCHES: Final = 18
CREATE_CONTAINER: Final = 19
DELETE_CONTAINER: Final = 20
CREATE_TTL: Final = 21
MULTI_READ: Final = 22
AUTH: Final = 100
SET_WATCHES: Final = 101
SASL: Final = 102
GET_EPHEMERALS: Final = 103
GET_ALL_CHILDREN_NUMBER: Final = 104
SET_WATCHES2: Final = 105
ADD_WATCH: Final = 106
WHO_AM_I: Final = 107
CREATE_SESSION: Final = -10
CLOSE_SESSION: Final = -11
ERROR: Final = -1

WRITES: Final = frozenset(
    {
        CREATE,
        CREATE2,
        CREATE_CONTAINER,
        CREATE_TTL,
        DELETE,
        DELETE_CONTAINER,
        SET_DATA,
        SET_ACL,
        CHECK,
        MULTI,
        RECONFIG,
        CLOSE_SESSION,
    }
)
"""What goes through the log, because it may change the state or takes a zxid."""

READS: Final = frozenset(
    {
        EXISTS,
        GET_DATA,
        GET_ACL,
        GET_CHILDREN,
        GET_CHILDREN2,
        SYNC,
        MULTI_READ,
        CHECK_WATCHES,
        REMOVE_WATCHES,
        SET_WATCHES,
        SET_WATCHES2,
        ADD_WATCH,
        GET_EPHEMERALS,
        GET_ALL_CHILDREN_NUMBER,
        WHO_AM_I,
    }
)
"""What is answered from memory, in its session's order."""

HEAVY: Final = frozenset({MULTI_READ, SET_WATCHES, SET_WATCHES2, GET_EPHEMERALS})
"""Reads of many nodes: their work grows with what they name, or with what the session owns."""

NAMES: Final[dict[int, str]] = {
    CREATE: "create",
    DELETE: "delete",
    EXISTS: "exists",
    GET_DATA: "get",
    SET_DATA: "set",
    GET_ACL: "get_acl",
    SET_ACL: "set_acl",
    GET_CHILDREN: "get_children",
    SYNC: "sync",
    PING: "ping",
    GET_CHILDREN2: "get_children2",
    CHECK: "check",
    MULTI: "multi",
    CREATE2: "create2",
    RECONFIG: "reconfig",
    CHECK_WATCHES: "check_watches",
    REMOVE_WATCHES: "remove_watches",
    CREATE_CONTAINER: "create_container",
    DELETE_CONTAINER: "delete_container",
    CREATE_TTL: "create_ttl",
    MULTI_READ: "multi_read",
    AUTH: "auth",
    SET_WATCHES: "set_watches",
    SASL: "sasl",
    GET_EPHEMERALS: "get_ephemerals",
    GET_ALL_CHILDREN_NUMBER: "get_all_children_number",
    SET_WATCHES2: "set_watches2",
    ADD_WATCH: "add_watch",
    WHO_AM_I: "who_am_i",
    CREATE_SESSION: "create_session",
    CLOSE_SESSION: "close_session",
}
