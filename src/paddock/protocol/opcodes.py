"""The numbers of operations on the wire: those of ZooKeeper 3.9, and one of our own.

`operations` has a row for each.
"""

from __future__ import annotations

from typing import Final

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
# Ours: see `paddock.protocol.changes`. No version of ZooKeeper counts so far.
CHANGES: Final = 0x5061_6401
CREATE_SESSION: Final = -10
CLOSE_SESSION: Final = -11
ERROR: Final = -1
