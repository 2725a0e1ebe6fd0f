"""What several clients may do, one after another: the actions, and how they are drawn.

An action names a client by its slot and never a session, so a list of actions makes sense in any
state, and a part of it does too: that is what makes a failure shrink to few actions.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias, TypeVar

from hypothesis import strategies as st

from paddock.protocol import opcodes
from paddock.protocol.acl import ACL, ALL, ANYONE, CREATE, CREATOR, READ, SUPER, WRITE, Identity
from paddock.protocol.requests import (
    AddWatchRequest,
    CreateRequest,
    CreateTTLRequest,
    PathRequest,
    ReconfigRequest,
    SetACLRequest,
    SetDataRequest,
    SetWatchesRequest,
    VersionRequest,
    WatchedRequest,
    WatchesRequest,
)
from paddock.testing.model import QUOTA, TTL_MS_MAX, ReadRequest, WriteRequest

SLOTS = 3


@dataclass(frozen=True)
class Open:
    """Begin a session, if the slot has none."""

    slot: int


@dataclass(frozen=True)
class Attach:
    """Take the session over with a new connection."""

    slot: int
    timeout_ms: int


@dataclass(frozen=True)
class Close:
    slot: int
    stale: bool


@dataclass(frozen=True)
class Expire:
    """End a session from outside, by a decision on a generation `behind` the current one."""

    slot: int
    behind: int


@dataclass(frozen=True)
class Authenticate:
    slot: int
    identity: Identity


@dataclass(frozen=True)
class Write:
    slot: int
    operation: int
    # None: bytes that cannot be decoded.
    request: WriteRequest | None
    # From a connection that the session has left.
    stale: bool


@dataclass(frozen=True)
class Multi:
    slot: int
    steps: list[tuple[int, WriteRequest]]
    stale: bool


@dataclass(frozen=True)
class Read:
    slot: int
    operation: int
    request: ReadRequest


@dataclass(frozen=True)
class Reap:
    """Delete a container or TTL node, by a decision on another state where an offset is not 0."""

    path: bytes
    czxid_offset: int
    mzxid_offset: int


Action: TypeAlias = Open | Attach | Close | Expire | Authenticate | Write | Multi | Read | Reap

BOB = Identity("digest", "bob:hash")
EVE = Identity("digest", "eve:other")
ADDRESSES = [Identity("ip", "127.0.0.1"), Identity("ip", "10.1.2.3"), Identity("ip", "::1")]

_T = TypeVar("_T")


def _plain_create(slot: int, path: bytes, data: bytes | None = b"") -> Action:
    return Write(slot, opcodes.CREATE, CreateRequest(path, data, [ACL(ALL, ANYONE)], 0), False)


def _weighted(*choices: tuple[int, st.SearchStrategy[_T]]) -> st.SearchStrategy[_T]:
    """Choose by weight; `one_of` would count the branches of its branches."""
    bag = [strategy for weight, strategy in choices for _ in range(weight)]
    return st.sampled_from(bag).flatmap(lambda strategy: strategy)


_slots = st.integers(0, SLOTS - 1)
_stale = _weighted((15, st.just(False)), (1, st.just(True)))

# Few paths, so that clients meet.
_names = st.sampled_from([b"a", b"b", b"a", b"b", b"a", b"b", b"s0000000000"])
_plain_paths = _weighted(
    (5, _names.map(lambda a: b"/" + a)),
    (4, st.tuples(_names, _names).map(lambda ab: b"/" + b"/".join(ab))),
    (1, st.sampled_from([b"/a/a/a", b"/a/b/a"])),
)
_odd_paths = st.sampled_from(
    [
        *(b"/", b"", b"/zookeeper", b"/zookeeper/config", b"/zookeeper/quota", b"/zookeeper/a"),
        *(b"/zookeeper/quota/a/zookeeper_limits", b"/zookeeper/quota/a/zookeeper_stats"),
        *(b"/zookeeper/quota/a", b"/zookeeper/quota/zookeeper_stats"),
        *(b"/zookeeper/quota/zookeeper_limits", b"/zookeeper/quotas/zookeeper_limits"),
        *(b"/a/", b"//", b"a", b"a/b", b"/a/..", b"/.", b"/a\0b", b"/\x01", b"/\xff", b"/a//b"),
        *("/é".encode(), "/😀".encode(), "/a/\ue000".encode()),
    ]
)
_paths = _weighted((20, _plain_paths), (1, _odd_paths))
_maybe_paths = _weighted((30, _paths), (1, st.none()))
_create_paths = _weighted((10, _paths), (3, st.sampled_from([b"/s", b"/a/s", b"/b/", b"/b/s"])))

_versions = st.sampled_from([-1, -1, -1, -1, 0, 1, 2])
_data = st.sampled_from([None, b"", b"x", b"longer data"])
_flags = _weighted((8, st.just(0)), (8, st.integers(1, 4)), (1, st.sampled_from([5, 6, 7, -1])))
_ttl_flags = _weighted((6, st.sampled_from([5, 6])), (1, st.sampled_from([0, 1, 4, 9])))
_ttls = _weighted((6, st.just(1000)), (1, st.sampled_from([-1, 0, 1, TTL_MS_MAX, TTL_MS_MAX + 1])))
_open: list[ACL | None] = [ACL(ALL, ANYONE)]
_other_acls: list[list[ACL | None] | None] = [
    None,
    [],
    [None],
    [ACL(READ, ANYONE)],
    [ACL(ALL, CREATOR)],
    [ACL(ALL, BOB)],
    [ACL(READ | CREATE, EVE), ACL(ALL, BOB), ACL(ALL, BOB)],
    [ACL(READ, ANYONE), ACL(ALL, CREATOR)],
    [ACL(ALL, Identity("ip", "10.0.0.0/8"))],
    [ACL(WRITE, Identity("ip", "::1")), ACL(READ, ANYONE)],
    [ACL(ALL, Identity("digest", "nonsense"))],
    [ACL(ALL, Identity("unknown", "x"))],
    [ACL(0, ANYONE)],
]
_acls = _weighted((5, st.just(_open)), (1, st.sampled_from(_other_acls)))

# Quotas come and go, on a node and on one above it, and what is in them is changed by hand.
_quota_paths = st.sampled_from(
    [
        QUOTA + governed + last
        for governed in (b"/a", b"/a", b"/a", b"/a/b", b"/b", b"/zookeeper", b"/none")
        for last in (b"", b"/zookeeper_limits", b"/zookeeper_limits", b"/zookeeper_stats")
    ]
)
_quota_texts = st.sampled_from(
    [
        *(b"count=2,bytes=12", b"count=-1,bytes=12=;byteHardLimit=12;countHardLimit=-1"),
        *(b"count=1,bytes=-1=;byteHardLimit=-1;countHardLimit=3", b"countHardLimit=2"),
        *(b"countHardLimit=4,byteHardLimit=15", b"byteHardLimit=0", b"countHardLimit=0"),
        *(b"countHardLimit==;byteHardLimit=11", b"countHardLimit=+3=x,,", b",countHardLimit=1"),
        *(b"countHardLimit=", b"count=1;z=2;bytes=3;b=4", b"count=0,bytes=0", b"=3", b"\xff=1"),
        *(b"nonsense", b"", None, b"countHardLimit=9223372036854775808", b"count==5"),
        # As long as it may be, as long as it may be counted in, and longer.
        *(b"x" * 998 + b"=1", b"x" * 943 + b"=1", b"x" * 944 + b"=1", b"x" * 999 + b"=1"),
    ]
)

_creates = st.builds(CreateRequest, _create_paths, _data, _acls, _flags)
_ttl_creates = st.builds(CreateTTLRequest, _create_paths, _data, _acls, _ttl_flags, _ttls)
_of_version = st.builds(VersionRequest, _maybe_paths, _versions)


def _write(
    operation: int, requests: st.SearchStrategy[WriteRequest]
) -> st.SearchStrategy[tuple[int, WriteRequest]]:
    return st.tuples(st.just(operation), requests)


_steps = _weighted(
    (12, _write(opcodes.CREATE, _creates)),
    (2, _write(opcodes.CREATE2, _creates)),
    (2, _write(opcodes.CREATE_CONTAINER, _creates)),
    (3, _write(opcodes.CREATE_TTL, _ttl_creates)),
    (6, _write(opcodes.DELETE, _of_version)),
    (9, _write(opcodes.SET_DATA, st.builds(SetDataRequest, _maybe_paths, _data, _versions))),
    (2, _write(opcodes.CHECK, _of_version)),
)
_set_acl = _write(opcodes.SET_ACL, st.builds(SetACLRequest, _maybe_paths, _acls, _versions))
_quota_requests: st.SearchStrategy[tuple[int, WriteRequest]] = _weighted(
    (
        2,
        _write(
            opcodes.CREATE,
            st.builds(CreateRequest, _quota_paths, _quota_texts, st.just(_open), st.just(0)),
        ),
    ),
    (
        2,
        _write(
            opcodes.SET_DATA, st.builds(SetDataRequest, _quota_paths, _quota_texts, st.just(-1))
        ),
    ),
    (1, _write(opcodes.DELETE, st.builds(VersionRequest, _quota_paths, st.just(-1)))),
)
_requests = _weighted(
    (30, _steps),
    (3, _quota_requests),
    (4, _set_acl),
    (2, _write(opcodes.DELETE_CONTAINER, st.builds(PathRequest, _maybe_paths))),
    (1, _write(opcodes.RECONFIG, st.just(ReconfigRequest(None, None, "x", -1)))),
)
_writes: st.SearchStrategy[Action] = st.builds(
    lambda slot, request, stale: Write(slot, request[0], request[1], stale),
    _slots,
    _requests,
    _stale,
)
_undecodable: st.SearchStrategy[Action] = st.builds(
    Write,
    _slots,
    st.sampled_from(
        [
            *(opcodes.CREATE, opcodes.CREATE_TTL, opcodes.DELETE, opcodes.SET_DATA),
            *(opcodes.SET_ACL, opcodes.CHECK, opcodes.RECONFIG),
        ]
    ),
    st.none(),
    st.just(False),
)
# Steps that are no operations of a transaction at all come seldom.
_multis: st.SearchStrategy[Action] = st.builds(
    Multi,
    _slots,
    st.lists(_weighted((40, _steps), (3, _quota_requests), (1, _set_acl)), max_size=4),
    _stale,
)

_watched = st.builds(WatchedRequest, _paths, st.booleans())
_path_only = st.builds(PathRequest, _maybe_paths)
_lists = st.lists(_paths, max_size=2)


def _read(
    operation: int, requests: st.SearchStrategy[ReadRequest]
) -> st.SearchStrategy[tuple[int, ReadRequest]]:
    return st.tuples(st.just(operation), requests)


_watches = st.builds(WatchesRequest, _maybe_paths, st.sampled_from([1, 2, 3, 4, 5, 0, 6]))
_queries = _weighted(
    (4, _read(opcodes.EXISTS, _watched)),
    (4, _read(opcodes.GET_DATA, _watched)),
    (4, _read(opcodes.GET_CHILDREN, _watched)),
    (2, _read(opcodes.GET_CHILDREN2, _watched)),
    (1, _read(opcodes.SYNC, _path_only)),
    (2, _read(opcodes.GET_ACL, _path_only)),
    (1, _read(opcodes.GET_EPHEMERALS, _path_only)),
    (1, _read(opcodes.GET_ALL_CHILDREN_NUMBER, _path_only)),
    (1, _read(opcodes.WHO_AM_I, st.none())),
    (
        3,
        _read(
            opcodes.SET_WATCHES2,
            st.builds(
                SetWatchesRequest, st.integers(0, 30), _lists, _lists, _lists, _lists, _lists
            ),
        ),
    ),
    (
        6,
        _read(
            opcodes.ADD_WATCH,
            st.builds(
                AddWatchRequest,
                _weighted((5, _paths), (2, st.just(b"/"))),
                st.sampled_from([0, 0, 1, 1, 1, 2]),
            ),
        ),
    ),
    (1, _read(opcodes.CHECK_WATCHES, _watches)),
    (3, _read(opcodes.REMOVE_WATCHES, _watches)),
    (
        2,
        _read(
            opcodes.MULTI_READ,
            st.lists(
                st.tuples(st.sampled_from([opcodes.GET_DATA, opcodes.GET_CHILDREN]), _watched),
                max_size=3,
            ),
        ),
    ),
)
_reads: st.SearchStrategy[Action] = st.builds(
    lambda slot, request: Read(slot, request[0], request[1]), _slots, _queries
)
_offsets = st.sampled_from([0, 0, 0, 1])
_others: st.SearchStrategy[Action] = _weighted(
    (6, st.builds(Open, _slots)),
    (3, st.builds(Attach, _slots, st.sampled_from([4000, 40_000]))),
    (1, st.builds(Close, _slots, _stale)),
    (1, st.builds(Expire, _slots, st.sampled_from([0, 0, 1]))),
    (3, st.builds(Authenticate, _slots, st.sampled_from([BOB, BOB, EVE, SUPER]))),
    (4, st.builds(Reap, _plain_paths, _offsets, _offsets)),
)
# All clients have come, and there is something to work on.
_beginning: list[Action] = [
    *[Open(slot) for slot in range(SLOTS)],
    *[_plain_create(slot, path) for slot, path in enumerate([b"/a", b"/b", b"/a/b"])],
]


def _quota(limits: bytes | None) -> list[Action]:
    path = QUOTA + b"/a"
    return [
        _plain_create(0, path),
        _plain_create(0, path + b"/zookeeper_limits", limits),
        _plain_create(0, path + b"/zookeeper_stats"),
    ]


def _some(actions: st.SearchStrategy[Action]) -> st.SearchStrategy[list[Action]]:
    """Draw some forty actions; lists of lists, since one list alone would be drawn short."""
    lists = st.lists(st.lists(actions, max_size=10), min_size=4, max_size=14)
    return st.tuples(st.booleans(), _quota_texts, lists).map(
        lambda drawn: [
            *_beginning,
            *(_quota(drawn[1]) if drawn[0] else []),
            *[action for part in drawn[2] for action in part],
        ]
    )


histories = _some(
    _weighted((20, _writes), (1, _undecodable), (6, _multis), (12, _reads), (6, _others))
)
"""Everything that can happen."""

# Many small writes in one place that has little room.
_governed_paths = st.sampled_from(
    [b"/a", b"/a/a", b"/a/b", b"/a/c", b"/a/b/a", b"/a/b/c", b"/a/s", b"/b"]
)
_governed_steps: st.SearchStrategy[tuple[int, WriteRequest]] = _weighted(
    (
        6,
        _write(
            opcodes.CREATE,
            st.builds(
                CreateRequest, _governed_paths, _data, st.just(_open), st.sampled_from([0, 0, 1, 2])
            ),
        ),
    ),
    (6, _write(opcodes.SET_DATA, st.builds(SetDataRequest, _governed_paths, _data, _versions))),
    (3, _write(opcodes.DELETE, st.builds(VersionRequest, _governed_paths, st.just(-1)))),
    (2, _quota_requests),
)
_room = st.tuples(
    st.sampled_from([b"countHardLimit=", b"byteHardLimit=", b"count=5,bytes=5=;countHardLimit="]),
    st.integers(1, 12),
).map(lambda drawn: drawn[0] + b"%d" % drawn[1])
_governed_actions: st.SearchStrategy[Action] = _weighted(
    (8, st.builds(lambda step: Write(0, step[0], step[1], False), _governed_steps)),
    (2, st.builds(Multi, st.just(1), st.lists(_governed_steps, max_size=4), st.just(False))),
    (1, st.builds(Close, st.just(1), st.just(False))),
    (1, st.builds(Open, st.just(1))),
)

crowded = st.tuples(_room, st.lists(_governed_actions, min_size=10, max_size=60)).map(
    lambda drawn: [*_beginning, *_quota(drawn[0]), *drawn[1]]
)
"""What happens below a quota that is soon used up."""

changes = _some(_weighted((20, _writes), (1, _undecodable), (6, _multis), (6, _others)))
"""The same without reads: what the log holds."""
