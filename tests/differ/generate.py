"""Random operations from a seed: what several sessions do, small enough an alphabet to collide.

A run is cut into segments. A segment works below a base node of its own with sessions of its own,
so that a difference in it can be replayed alone: the same seed and segment give the same steps
below any base. Nothing here looks at an answer; a rough guess of which nodes are there makes more
of the operations succeed.

`rules.py` says what is left out of a run, and with which servers.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Sequence
from typing import Any, Final

from tests.differ import rules
from tests.differ.moves import Burst, Move, Reattach, Renew, Step
from tests.differ.rules import Rules
from tests.support.records import OPEN, READ_ONLY, Acl, Op
from tests.support.server import SUPER_CREDENTIALS, digest

SESSIONS: Final = 4
SEGMENT_OPERATIONS: Final = 1500
BURST_MAX: Final = 8

LONG_TTL_MS: Final = 0xFFFFFFFF
ANN, BOB = b"ann:1", b"bob:2"
_NAMES: Final = ("a", "b", "c")
NEVER: Final = 1 << 20

ONE_SHOT, PERSISTENT, RECURSIVE = -1, 0, 1
ANY_KIND: Final = 3
CONTAINER: Final = 4

_ACLS: Final[tuple[tuple[Acl, ...], ...]] = (
    OPEN,
    OPEN,
    READ_ONLY,
    (Acl(31, "auth", ""),),
    (Acl(31, "digest", digest(ANN)),),
    (Acl(31, "digest", digest(BOB)), Acl(1, "world", "anyone")),
    (Acl(30, "world", "anyone"), Acl(1, "digest", digest(ANN))),
    (Acl(31, "ip", "127.0.0.0/8"),),
    (Acl(31, "ip", "10.0.0.0/8"), Acl(24, "world", "anyone")),
    (Acl(7, "world", "anyone"), Acl(16, "auth", "")),
    (Acl(0, "world", "anyone"),),
    (),
    (Acl(31, "nobody", "x"),),
    (Acl(31, "digest", "no-colon"),),
    (Acl(31, "world", None),),
)
_IPV6_ACLS: Final[tuple[tuple[Acl, ...], ...]] = (
    (Acl(31, "ip", "::1"), Acl(25, "world", "anyone")),
    (Acl(31, "ip", "2001:db8::/32"), Acl(31, "digest", digest(BOB))),
    (Acl(31, "ip", "2001:db8::/129"),),
    (Acl(31, "ip", "2001:db8:::1"),),
)


def generate(
    seed: str, base: str, operations: int = SEGMENT_OPERATIONS, only: Rules | None = None
) -> list[Step]:
    """Return a segment's steps below `base`; they hold about that many operations."""
    return _Generator(seed, base, only or Rules()).steps(operations)


class _Generator:
    def __init__(self, seed: str, base: str, only: Rules) -> None:
        self._random = random.Random(seed)
        self._seed = seed
        self._base = base
        self._may = only.allow
        #: Nodes that are probably there.
        self._alive: list[str] = [base]

    def steps(self, operations: int) -> list[Step]:
        steps: list[Step] = [self._login(session) for session in range(SESSIONS)]
        steps.append(Burst(0, (Move("create", (f"{self._base}/k",)),)))
        steps += [Burst(0, (move,)) for move in self._quota()]
        count = 0
        while count < operations:
            step = self._step()
            steps.append(step)
            count += len(step.moves) if isinstance(step, Burst) else 2
            # Identities belong to the connection: most sessions ask for theirs again.
            if not isinstance(step, Burst) and self._random.random() < 0.7:
                steps.append(self._login(step.session))
        return steps

    def _login(self, session: int) -> Step:
        who = (ANN, BOB, b"nobody:x", SUPER_CREDENTIALS)[session % 4]
        return Burst(session, (Move("auth", ("digest", who)),))

    def _step(self) -> Step:
        r = self._random
        session = r.randrange(SESSIONS)
        kinds = ("one", "burst", "alone", "governed", "renew", "reattach")
        match r.choices(kinds, (68, 15, 4, 10, 1.5, 1.5))[0]:
            case "governed":
                return Burst(session, (self._governed(),))
            case "one":
                return Burst(session, (self._move(),))
            case "burst":
                return Burst(session, self._pipelined(r.randint(2, BURST_MAX)))
            case "alone":
                return Burst(session, (self._lonely(),))
            case "renew":
                return Renew(session)
        breaking = Move("raw", (r.choice((99, 0, -1)), b"x")) if r.random() < 0.2 else None
        return Reattach(session, breaking, self._set_watches())

    def _pipelined(self, size: int) -> tuple[Move, ...]:
        """Return up to so many moves at once, but no write behind one that sets an ACL."""
        moves: list[Move] = []
        may_follow = self._may(rules.WRITES_BEHIND_AN_ACL)
        is_list_set = False
        for _ in range(size):
            move = self._move()
            if not is_list_set or move.name in _READS or may_follow:
                moves.append(move)
            is_list_set = is_list_set or move.name == "set_acl"
        return tuple(moves)

    def _quota(self) -> list[Move]:
        """A quota on `q`, before there is such a node."""
        quota = f"/zookeeper/quota{self._base}"
        return [
            Move("create", (quota,)),
            Move("create", (f"{quota}/q",)),
            Move("create", (f"{quota}/q/zookeeper_limits", self._random.choice(_LIMITS))),
            Move("create", (f"{quota}/q/zookeeper_stats",)),
            Move("create", (f"{self._base}/q",)),
        ]

    def _governed(self) -> Move:
        """Something below a quota, never pipelined nor in one transaction with its like."""
        assert not self._may(rules.WRITES_TOGETHER_BELOW_A_QUOTA)
        r = self._random
        path = f"{self._base}/q" + r.choice(("", "/a", "/b", "/c", "/a/a", "/a/b"))
        quota = f"/zookeeper/quota{self._base}/q"
        match r.choices(
            ("create", "set_data", "delete", "limits", "statistics"), (40, 30, 20, 4, 6)
        )[0]:
            case "create":
                name = r.choice(("create", "create2", "create_container", "create_ttl"))
                ttl = (LONG_TTL_MS,) if name == "create_ttl" else ()
                flags = 5 if name == "create_ttl" else r.choice((0, 0, 1, 2, 3))
                move = Move(name, (path, *ttl, self._data(), OPEN, flags))
            case "set_data":
                move = Move("set_data", (path, self._data(), self._version()))
            case "delete":
                move = Move("delete", (path, -1))
            case "limits":
                return Move("set_data", (f"{quota}/zookeeper_limits", r.choice(_LIMITS)))
            case _:
                return Move("get_data", (f"{quota}/zookeeper_stats", True))
        if r.random() < 0.2 and move.name != "create_ttl":
            return Move("multi", (self._part(move),))
        return move

    def _lonely(self) -> Move:
        """Something that is never pipelined."""
        assert not self._may(rules.OUT_OF_TURN)
        assert not self._may(rules.UNDECODABLE_BEHIND_OTHERS)
        r = self._random
        match r.randrange(6):
            case 0:
                return Move("auth", ("digest", r.choice((ANN, BOB))))
            case 1:
                return Move("sasl", (b"token",))
            case 5:
                return Move("ping", ())
            case 2:
                move = self._multi()
                return Move("multi", (*move.arguments, Move("get_data", (self._path(),))))
            case 3 if self._may(rules.MULTI_WITH_BAD_FLAGS):
                name = r.choice(("create", "create2", "create_container"))
                odd = Move(name, (self._path(), b"", OPEN, r.choice((5, 6))))
                return Move("multi", (*self._multi().arguments, odd))
            case _:
                return self._malformed()

    def _move(self) -> Move:
        r = self._random
        (kind,) = r.choices(_KINDS, _WEIGHTS)
        while not all(map(self._may, _RULED.get(kind, ()))):
            (kind,) = r.choices(_KINDS, _WEIGHTS)
        match kind:
            case "create":
                return self._create()
            case "delete":
                return self._delete()
            case "set_data":
                return Move("set_data", (self._path(), self._data(), self._version()))
            case "set_acl":
                return Move("set_acl", (self._secret_path(), self._acl(), self._version()))
            case "exists" | "get_data" | "get_children" | "get_children2":
                path = self._path()
                while kind == "exists" and not self._may_exist(path):
                    path = self._path()
                return Move(kind, (path, r.random() < 0.5 and self._may_watch(path, ONE_SHOT)))
            case "get_acl" | "sync" | "get_all_children_number":
                return Move(kind, (self._path(),))
            case "get_ephemerals":
                prefix = r.choice((self._base, self._path(), "/", "", None))
                return Move(kind, (prefix,))
            case "check":
                may_succeed = self._may(rules.LONE_CHECK_THAT_SUCCEEDS)
                return Move("check", (self._path(), -1 if may_succeed else NEVER))
            case "multi":
                return self._multi()
            case "multi_read":
                path = self._path()
                is_watched = self._may_watch(path, ONE_SHOT)
                reads = (Move(r.choice(("get_data", "get_children")), (path, is_watched)),)
                return Move(kind, reads * r.randint(0, 2) + reads)
            case "add_watch":
                mode = r.choice((PERSISTENT, RECURSIVE))
                return Move(kind, (self._path_to_watch(mode), mode))
            case "remove_watches" | "check_watches":
                return Move(kind, self._kind_of_watch())
            case "delete_container":
                return Move(kind, (self._container_to_delete(),))
            case "set_watches":
                return self._set_watches()
            case "who_am_i":
                return Move(kind, ())
            case _:
                return Move("reconfig", ("", "", ""))

    def _create(self, in_multi: bool = False) -> Move:
        r = self._random
        path = self._new_path()
        acl: tuple[Acl, ...] | None = OPEN
        if "/k" in path and r.random() < 0.6:
            path, acl = self._secret_path(), self._acl()
        elif r.random() < 0.02:
            acl = r.choice((None, (), (Acl(31, "nobody", "x"),)))
            if in_multi and acl is None and not self._may(rules.MULTI_WITH_BAD_FLAGS):
                acl = ()
        (name,) = r.choices(
            ("create", "create2", "create_container", "create_ttl"), (50, 25, 12, 13)
        )
        if r.random() < 0.2:
            path += r.choice(("", "/", "s"))
        if name == "create_ttl":
            odd_ttl_ms = -1 if self._may(rules.TTL_BELOW_ZERO) else 0
            flags, ttl_ms = r.choice((5, 5, 6, 0, 3)), r.choice((LONG_TTL_MS,) * 6 + (odd_ttl_ms,))
            return Move(name, (path, ttl_ms, self._data(), acl, flags))
        modes: tuple[int, ...] = (0, 0, 0, 1, 2, 3, 4)
        if r.random() < 0.03 and not in_multi:
            modes = (5, 6, 7, -1)
        elif r.random() < 0.03 and self._may(rules.MULTI_WITH_BAD_FLAGS):
            modes = (7, -1)
        flags = r.choice(modes)
        if flags in (0, 4) and acl is OPEN:
            self._note(path)
        return Move(name, (path, self._data(), acl, flags))

    def _note(self, path: str) -> None:
        parent, _, name = path.rpartition("/")
        if parent in self._alive and path not in self._alive and name in _NAMES:
            self._alive.append(path)

    def _delete(self) -> Move:
        r = self._random
        leaves = self._leaves()
        if not leaves or r.random() < 0.3:
            return Move("delete", (self._path(), self._version()))
        path, version = r.choice(leaves), self._version()
        if version == -1:
            self._alive.remove(path)
        return Move("delete", (path, version))

    def _multi(self) -> Move:
        if self._random.random() < 0.5:
            return self._careful_multi()
        alive = list(self._alive)
        move = self._wild_multi()
        self._alive = alive
        return move

    def _careful_multi(self) -> Move:
        """One that should succeed as a whole."""
        r = self._random
        parts: list[Move] = []
        for _ in range(r.randint(1, 4)):
            path = r.choice(self._alive)
            match r.choices(("create", "delete", "set_data", "check"), (50, 20, 20, 10))[0]:
                case "create" if path.count("/") < 5:
                    name = r.choice(("create", "create2", "create_container"))
                    path += "/" + r.choice(_NAMES)
                    flags = r.choice((0, 4)) if path not in self._alive else 2
                    parts.append(self._part(Move(name, (path, self._data(), OPEN, flags))))
                    if flags != 2:
                        self._note(path)
                case "delete" if leaves := self._leaves():
                    leaf = r.choice(leaves)
                    self._alive.remove(leaf)
                    parts.append(Move("delete", (leaf, -1)))
                case "check":
                    parts.append(Move("check", (path, -1)))
                case _:
                    parts.append(Move("set_data", (path, self._data(), -1)))
        return Move("multi", tuple(parts))

    def _wild_multi(self) -> Move:
        r = self._random
        parts: list[Move] = []
        for _ in range(r.choice((0, 1, 1, 2, 2, 3, 3, 4, 6))):
            match r.choices(("create", "delete", "set_data", "check"), (40, 20, 20, 20))[0]:
                case "create":
                    parts.append(self._part(self._create(in_multi=True)))
                case "delete":
                    parts.append(self._delete())
                case "set_data":
                    parts.append(Move("set_data", (self._path(), self._data(), self._version())))
                case _:
                    parts.append(Move("check", (self._path(), self._version())))
        return Move("multi", tuple(parts))

    def _part(self, move: Move) -> Move:
        """Return what takes a move's place in a multi, where its flags say what is created."""
        if move.name in ("create2", "create_container") and not self._may(rules.CREATE2_IN_A_MULTI):
            return Move("create", move.arguments)
        if move.name == "create_container" and move.arguments[-1] != CONTAINER:
            may_be = self._may(rules.CONTAINER_FLAGS_IN_A_MULTI)
            return move if may_be else Move("create2", move.arguments)
        return move

    def _leaves(self) -> list[str]:
        parents = {path.rpartition("/")[0] for path in self._alive}
        return [path for path in self._alive[1:] if path not in parents]

    def _set_watches(self) -> Move:
        r = self._random
        lag = r.choice((0, 1, 2, 5, 20, 100, -1))
        may_leak = self._may(rules.MISSED_EVENTS_WITHOUT_READ)
        choose = self._path if may_leak else self._open_path
        one_shot = [
            [path for _ in range(r.randrange(3)) if self._may_watch(path := choose(), ONE_SHOT)]
            for _ in range(3)
        ]
        if r.random() < 0.4:
            return Move("set_watches", (lag, *one_shot))
        lasting = [
            [self._path_to_watch(mode) for _ in range(r.randrange(2))]
            for mode in (PERSISTENT, RECURSIVE)
        ]
        return Move("set_watches2", (lag, *one_shot, *lasting))

    def _may_watch(self, path: str, mode: int) -> bool:
        """Tell whether a path may be watched in a mode.

        Where each path has but one mode, it is chosen by the path, so that it is the same one for
        all sessions of the segment.
        """
        if self._may(rules.SEVERAL_WATCH_MODES):
            return True
        return self._only_mode(path) == mode

    def _only_mode(self, path: str) -> int:
        relative = path.replace(self._base, "", 1)
        number = zlib.crc32(f"{self._seed} {relative}".encode())
        return (ONE_SHOT, ONE_SHOT, ONE_SHOT, PERSISTENT, RECURSIVE)[number % 5]

    def _path_to_watch(self, mode: int) -> str:
        path = self._path()
        while not self._may_watch(path, mode):
            path = self._path() if self._random.random() < 0.8 else self._open_path()
        return path

    def _kind_of_watch(self) -> tuple[str, int]:
        """Return a path, and the kind of watches to remove from it or to look for."""
        r = self._random
        path = self._path()
        kind = r.randint(1, 5 if self._may(rules.WATCH_KINDS_OF_39) else 3)
        return path, kind if self._may_watch(path, ONE_SHOT) else ANY_KIND

    def _may_exist(self, path: str) -> bool:
        is_secret = path.startswith(f"{self._base}/k")
        return not is_secret or self._may(rules.EXISTS_WITHOUT_READ)

    def _container_to_delete(self) -> str:
        leaves = self._leaves()
        if leaves and self._random.random() < 0.5:
            path = self._random.choice(leaves)
            self._alive.remove(path)
            return path
        may_be_secret = self._may(rules.DELETE_CONTAINER_WITHOUT_DELETE)
        return self._path() if may_be_secret else self._open_path()

    def _acl(self) -> tuple[Acl, ...]:
        if self._random.random() < 0.1 and self._may(rules.IPV6_ACLS):
            return self._random.choice(_IPV6_ACLS)
        return self._random.choice(_ACLS)

    def _malformed(self) -> Move:
        """A body that is cut, or has a null where text should be."""
        r = self._random
        if r.random() < 0.3:
            name, arguments = r.choice(_NULLS)
            return Move(name, arguments)
        whole = self._move().request(0)
        while whole.op == Op.WHO_AM_I or not self._may_cut(whole.op):
            whole = self._move().request(0)
        # Not randrange, which may use more of the generator for a longer base.
        return Move("raw", (whole.op, whole.body[: int(r.random() * len(whole.body))]))

    def _may_cut(self, op: int) -> bool:
        return op not in _CUT_WRITES or self._may(rules.CUT_WRITES)

    def _path(self) -> str:
        r = self._random
        chance = r.random()
        if chance < 0.02:
            return r.choice(_SPECIAL)
        if chance < 0.04:
            return self._base + r.choice(_BAD)
        if chance < 0.15:
            return self._secret_path()
        if chance < 0.6:
            return r.choice(self._alive)
        return self._open_path()

    def _new_path(self) -> str:
        if self._random.random() < 0.4:
            return self._path()
        path = self._random.choice(self._alive) + "/" + self._random.choice(_NAMES)
        return path if path.count("/") <= 5 else self._open_path()

    def _open_path(self) -> str:
        return self._walk(self._base, self._random.choice((0, 1, 1, 1, 2, 2, 2, 3, 3, 4)))

    def _secret_path(self) -> str:
        return self._walk(f"{self._base}/k", self._random.choice((0, 1, 1, 1, 2)))

    def _walk(self, path: str, depth: int) -> str:
        r = self._random
        for _ in range(depth):
            if r.random() < 0.06:
                path += f"/s{r.randrange(12):010d}"
            else:
                path += r.choice(("/a", "/a", "/b", "/c"))
        return path

    def _version(self) -> int:
        return self._random.choice((-1, -1, -1, -1, -1, -1, 0, 0, 1, 2, 3, -2, 7))

    def _data(self) -> bytes | None:
        return self._random.choice((b"", b"x", b"data", None, bytes(200)))


_MIX: Final = {
    "create": 26,
    "delete": 14,
    "set_data": 10,
    "set_acl": 4,
    "exists": 7,
    "get_data": 7,
    "get_children": 5,
    "get_children2": 4,
    "get_acl": 3,
    "multi": 9,
    "multi_read": 2,
    "add_watch": 3,
    "remove_watches": 3,
    "check_watches": 1.5,
    "delete_container": 1,
    "set_watches": 1.5,
    "get_ephemerals": 1.5,
    "get_all_children_number": 1,
    "check": 1,
    "sync": 1,
    "who_am_i": 0.5,
    "reconfig": 0.2,
}
#: Requests of which rules may be.
_RULED: Final = {
    "check": (rules.LONE_CHECK,),
    "check_watches": (rules.CHECK_WATCHES,),
    "delete_container": (rules.DELETE_CONTAINER, rules.DELETE_CONTAINER_BY_CLIENTS),
}
_CUT_WRITES: Final = frozenset(
    {
        Op.CREATE,
        Op.CREATE2,
        Op.CREATE_CONTAINER,
        Op.CREATE_TTL,
        Op.DELETE,
        Op.DELETE_CONTAINER,
        Op.SET_DATA,
        Op.SET_ACL,
        Op.CHECK,
    }
)
_READS: Final = frozenset(
    {"exists", "get_data", "get_children", "get_children2", "get_acl", "multi_read"}
)
_KINDS: Final[Sequence[str]] = tuple(_MIX)
_WEIGHTS: Final[Sequence[float]] = tuple(_MIX.values())

_LIMITS: Final = (
    b"count=-1,bytes=-1=;byteHardLimit=-1;countHardLimit=4",
    b"count=2,bytes=-1=;byteHardLimit=-1;countHardLimit=3",
    b"count=-1,bytes=-1=;byteHardLimit=205;countHardLimit=-1",
    b"byteHardLimit=400;;countHardLimit=+5,",
    b"byteHardLimit=4",
    b"countHardLimit=0",
    b"count=2,bytes=10",
    b"",
)
_SPECIAL: Final = ("/", "", "/zookeeper", "/zookeeper/quota", "/zookeeper/config", "/zookeeper/x")
_BAD: Final = ("/", "//a", "/.", "/..", "/\x01", "/a/", "/\x00", "/\ue000", "/é", "/\xff")

_NULLS: Final[tuple[tuple[str, tuple[Any, ...]], ...]] = (
    ("create", (None,)),
    ("create2", (None,)),
    ("create_ttl", (None, LONG_TTL_MS)),
    ("delete", (None,)),
    ("set_data", (None, b"")),
    ("set_acl", (None, OPEN)),
    ("exists", (None,)),
    ("get_data", (None,)),
    ("get_children", (None,)),
    ("get_acl", (None,)),
    ("sync", (None,)),
    ("remove_watches", (None, 3)),
    ("set_watches", (0, None, (), ())),
)
