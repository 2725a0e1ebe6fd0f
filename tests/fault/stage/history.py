"""What one writer did, and what its part of the tree must therefore look like.

A writer has a node of its own, below which nobody else writes, and one session, whose requests the
server carries out in the order in which they were sent. So after a crash its part of the tree is
what its acknowledged writes made of it, and then the first few of those that were never answered,
for some number of them: any other tree is a mistake of the server. That one comparison covers lost
writes, refused writes that took effect, transactions in parts, and numbers given twice.

`Realm` predicts; it knows nothing of Paddock's own code.
"""

from __future__ import annotations

import copy
import enum
from dataclasses import dataclass, field

from tests.fault.stage.process import Tree
from tests.support import requests as rq
from tests.support.records import Code, Mode, Reply, Request

#: Where all writers create sequential nodes; the data says whose they are.
SHARED = "/shared"


class Kind(enum.Enum):
    CREATE = enum.auto()
    SET = enum.auto()
    DELETE = enum.auto()
    CHECK = enum.auto()


@dataclass(frozen=True, slots=True)
class Step:
    """One operation, alone or in a multi."""

    kind: Kind
    path: str
    data: bytes = b""
    flags: int = 0
    version: int = rq.ANY_VERSION

    def request(self) -> Request:
        match self.kind:
            case Kind.CREATE:
                return rq.create(self.path, self.data, flags=self.flags)
            case Kind.SET:
                return rq.set_data(self.path, self.data, self.version)
            case Kind.DELETE:
                return rq.delete(self.path, self.version)
            case Kind.CHECK:
                return rq.check(self.path, self.version)


@dataclass(frozen=True, slots=True)
class Write:
    """One request: a step, or several in a multi. Numbers go up and are never used again."""

    number: int
    steps: tuple[Step, ...]

    @property
    def is_multi(self) -> bool:
        return len(self.steps) > 1

    def request(self) -> Request:
        if self.is_multi:
            return rq.multi(*(step.request() for step in self.steps))
        return self.steps[0].request()


@dataclass(slots=True)
class Node:
    """A node as it must be. Who created and changed it is told by the numbers of the writes."""

    data: bytes
    created_by: int
    changed_by: int
    is_ephemeral: bool = False
    version: int = 0


@dataclass(slots=True)
class Realm:
    """The predicted part of one writer."""

    base: str
    nodes: dict[str, Node] = field(default_factory=dict)
    #: Creates below the base, which number the sequential ones; creates and deletes; the last one.
    created: int = 0
    child_changes: int = 0
    children_changed_by: int | None = None
    #: The writer's nodes below SHARED, by their data; None is a name that nobody was told.
    shared: dict[bytes, str | None] = field(default_factory=dict)

    def apply(self, write: Write) -> list[tuple[int, str]]:
        """Carry a write out, or refuse it; return each step's error and path."""
        before = copy.deepcopy(self) if write.is_multi else self
        results = []
        for step in write.steps:
            results.append(self._apply(step, write.number))
            if results[-1][0] != Code.OK:
                if write.is_multi:
                    self._become(before)
                break
        return results

    def _become(self, other: Realm) -> None:
        self.nodes, self.shared = other.nodes, other.shared
        self.created, self.child_changes = other.created, other.child_changes
        self.children_changed_by = other.children_changed_by

    def _apply(self, step: Step, number: int) -> tuple[int, str]:
        if step.path.startswith(SHARED):
            return self._apply_shared(step)
        node = self.nodes.get(step.path)
        if step.kind is Kind.CREATE:
            path = step.path
            if step.flags & Mode.SEQUENTIAL:
                path += f"{self.created:010d}"
            elif node is not None:
                return Code.NODE_EXISTS, ""
            is_ephemeral = bool(step.flags & Mode.EPHEMERAL)
            self.nodes[path] = Node(step.data, number, number, is_ephemeral)
            self.created += 1
            self._children_changed(number)
            return Code.OK, path
        if node is None:
            return Code.NO_NODE, ""
        if step.version not in (rq.ANY_VERSION, node.version):
            return Code.BAD_VERSION, ""
        if step.kind is Kind.SET:
            node.data, node.changed_by, node.version = step.data, number, node.version + 1
        elif step.kind is Kind.DELETE:
            del self.nodes[step.path]
            self._children_changed(number)
        return Code.OK, step.path

    def _apply_shared(self, step: Step) -> tuple[int, str]:
        if step.kind is Kind.CREATE:
            self.shared[step.data] = None
            return Code.OK, ""
        for data, path in self.shared.items():
            if path == step.path:
                del self.shared[data]
                return Code.OK, path
        return Code.NO_NODE, ""

    def _children_changed(self, number: int) -> None:
        self.child_changes += 1
        self.children_changed_by = number


class History:
    """A writer's record: what was answered, what was not, which transaction got which zxid."""

    def __init__(self, name: str, session_id: int) -> None:
        self.name = name
        self.session_id = session_id
        self.realm = Realm(f"/{name}")
        #: Sent and not answered, in the order of sending.
        self.unanswered: list[Write] = []
        #: The zxid of each write, as far as anybody was told.
        self.zxids: dict[int, int] = {}
        self.acknowledged = 0
        self.refused = 0
        #: zxid and sequence number of what was created below SHARED since this was last emptied.
        self.sequence: list[tuple[int, int]] = []

    def answered(self, reply: Reply) -> None:
        """Take the next reply, and compare it with the prediction."""
        write = self.unanswered.pop(0)
        predicted = self.realm.apply(write)
        assert all(reply.zxid > zxid for zxid in list(self.zxids.values())[-1:])
        self.zxids[write.number] = reply.zxid
        errors = [error for error, _ in predicted]
        if write.is_multi:
            results = reply.results
            assert [result.err for result in results][: len(errors)] == errors, (write, results)
        else:
            assert [reply.err] == errors, (write, reply)
            if write.steps[0].kind is Kind.CREATE and reply.err == Code.OK:
                self._created(write, predicted[0][1], reply)
        if errors[-1] == Code.OK:
            self.acknowledged += 1
        else:
            self.refused += 1

    def _created(self, write: Write, predicted: str, reply: Reply) -> None:
        step = write.steps[0]
        if step.path.startswith(SHARED):
            self.realm.shared[step.data] = reply.path
            self.sequence.append((reply.zxid, int(reply.path[-10:])))
        else:
            assert reply.path == predicted

    def reconcile(self, tree: Tree) -> int:
        """Find out how many of the unanswered writes took effect; fail if no number explains it."""
        problems = []
        for count in range(len(self.unanswered) + 1):
            realm = copy.deepcopy(self.realm)
            for write in self.unanswered[:count]:
                realm.apply(write)
            learned: dict[int, int] = {}
            problem = self._difference(realm, tree, learned)
            if problem is None:
                self._adopt(realm, learned, tree)
                return count
            problems.append(f"with {count} of the unanswered writes: {problem}")
        raise AssertionError(
            f"{self.name}: nothing that was sent leads to this tree\n"
            + "\n".join(problems)
            + f"\nunanswered: {self.unanswered}"
        )

    def _adopt(self, realm: Realm, learned: dict[int, int], tree: Tree) -> None:
        self.realm = realm
        self.unanswered = []
        last = max(self.zxids.values(), default=0)
        for number, zxid in sorted(learned.items()):
            assert zxid > last, f"{self.name}: write {number} got the zxid of an earlier one"
            last = zxid
            self.zxids[number] = zxid
        for path, data in shared_nodes(tree, self.name).items():
            if realm.shared[data] is None:
                realm.shared[data] = path
                self.sequence.append((tree[path][1].czxid, int(path[-10:])))

    def _difference(self, realm: Realm, tree: Tree, learned: dict[int, int]) -> str | None:
        """Say in what the tree differs from the prediction; None if in nothing."""

        def is_zxid(number: int, zxid: int) -> bool:
            if number in self.zxids:
                return self.zxids[number] == zxid
            return learned.setdefault(number, zxid) == zxid

        base = tree[realm.base][1]
        found = {path for path in tree if path.startswith(f"{realm.base}/")}
        if found != set(realm.nodes):
            missing, more = sorted(set(realm.nodes) - found), sorted(found - set(realm.nodes))
            return f"missing {missing}, unexpected {more}"
        if base.cversion != realm.child_changes:
            return f"{realm.child_changes} changes of the children, found {base.cversion}"
        if realm.children_changed_by is not None and not is_zxid(
            realm.children_changed_by, base.pzxid
        ):
            return f"pzxid of {realm.base} is {base.pzxid}"
        for path, node in realm.nodes.items():
            data, stat = tree[path]
            owner = self.session_id if node.is_ephemeral else 0
            if (data, stat.version, stat.ephemeral_owner) != (node.data, node.version, owner):
                return f"{path} should be {node}, and is {data!r} with {stat}"
            if not is_zxid(node.created_by, stat.czxid) or not is_zxid(node.changed_by, stat.mzxid):
                return f"{path} should be {node}, and has other zxids: {stat}"
        shared = {data: path for path, data in shared_nodes(tree, self.name).items()}
        if set(shared) != set(realm.shared):
            return f"below {SHARED} there should be {realm.shared}, and is {shared}"
        for tag, name in realm.shared.items():
            number = int(tag.split(b":")[1])
            if name not in (None, shared[tag]) or not is_zxid(number, tree[shared[tag]][1].czxid):
                return f"{name} of write {number} is {shared[tag]}: {tree[shared[tag]]}"
        return None


def shared_nodes(tree: Tree, name: str) -> dict[str, bytes]:
    """Return one writer's nodes below SHARED."""
    return {
        path: data
        for path, (data, _) in tree.items()
        if path.startswith(f"{SHARED}/")
        and data is not None
        and data.startswith(f"{name}:".encode())
    }
