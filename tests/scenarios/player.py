"""Plays a scenario: commands to a state machine, and a trace of what came of them.

A scenario is a text file of blocks. A block is one command or several, a line `----`, and the trace
that they are expected to leave; an empty line ends it. `#` begins a comment.

    create bob /a data=hello
    ----
    create bob /a: ok, zxid 2, /a
      created /a

The trace has a line for each answer; below it the changes, and who hears of which event, with the
zxid of the event if it is not that of the answer. Names are clients; a client that attached again
sends from its last connection but one with `old`:

    old create bob /b

`PADDOCK_RECORD_SCENARIOS=1 pytest tests/scenarios` writes the traces anew; read the difference.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from paddock import errors
from paddock.errors import OK
from paddock.protocol import opcodes, operations
from paddock.protocol.acl import ACL, ADMIN, ALL, ANYONE, CREATE, DELETE, READ, WRITE, Identity
from paddock.protocol.jute import Reader
from paddock.protocol.records import MultiHeader, Stat
from paddock.protocol.replies import Create2Response, CreateResponse, GetACLResponse, IntResponse
from paddock.protocol.requests import (
    CreateRequest,
    CreateTTLRequest,
    PathRequest,
    SetDataRequest,
    VersionRequest,
    WatchedRequest,
)
from paddock.state.machine import Outcome
from paddock.state.node import CONTAINER, TTL_BASE, Node
from paddock.state.operations import Change
from paddock.state.snapshot import Snapshot, restore
from tests.unit.state.driver import Connection, Record, World, encode, set_watches_body

CODES = {
    value: name.lower()
    for name, value in vars(errors).items()
    if name.isupper() and isinstance(value, int)
}
CHANGES = {
    Change.CREATED: "created",
    Change.DELETED: "deleted",
    Change.DATA: "data",
    Change.ACL: "acl",
}
EVENTS = {1: "created", 2: "deleted", 3: "data changed", 4: "children changed"}
MODES = {
    "persistent": 0,
    "ephemeral": 1,
    "sequential": 2,
    "ephemeral-sequential": 3,
    "container": 4,
    "ttl": 5,
    "ttl-sequential": 6,
}
LETTERS = {"r": READ, "w": WRITE, "c": CREATE, "d": DELETE, "a": ADMIN}
KINDS = {"children": 1, "data": 2, "any": 3, "persistent": 4, "recursive": 5}


def play(text: str) -> str:
    """Carry out a scenario, and give it back with the traces that it left."""
    player = Player()
    out: list[str] = []
    for comments, commands in blocks(text):
        out += comments
        if commands:
            trace: list[str] = []
            for command in commands:
                trace += player.run(command)
            out += [*commands, "----", *(trace or ["(nothing)"])]
        out.append("")
    return "\n".join(out).rstrip("\n") + "\n"


def blocks(text: str) -> Iterator[tuple[list[str], list[str]]]:
    """Yield the comments and the commands of each block, without its traces."""
    for block in text.strip("\n").split("\n\n"):
        lines = block.strip("\n").split("\n")
        if "----" in lines:
            lines = lines[: lines.index("----")]
        comments = [line for line in lines if line.startswith("#")]
        yield comments, [line for line in lines if not line.startswith("#")]


class Player:
    """One machine, and the clients of a scenario by name."""

    def __init__(self) -> None:
        self.world = World()
        self.clients: dict[str, Connection] = {}
        self.older: dict[str, Connection] = {}

    def run(self, line: str) -> list[str]:
        verb, *words = shlex.split(line)
        clients = self.clients
        if verb == "old":
            verb, *words = words
            clients = self.older
        options = dict(word.split("=", 1) for word in words if "=" in word)
        words = [word for word in words if "=" not in word]
        match [verb, *words]:
            case ["open", name]:
                self.clients[name] = self.world.open()
                return [f"{line}: session {self.clients[name].session}"]
            case ["attach", name]:
                outcome, connection = self.world.attach(self.clients[name].session)
                self.world.watches.remove_some(self.clients[name], 1 << 30)
                self.older[name] = self.clients[name]
                self.clients[name] = connection
                return self._told(line, outcome, f"generation {connection.generation}")
            case ["expire", name]:
                client = clients[name]
                return self._told(line, self.world.expire(client.session, client.generation))
            case ["reap", path]:
                node = self.world.machine.tree.nodes.get(path.encode())
                czxid = int(options.get("czxid", node.czxid if node else 0))
                mzxid = int(options.get("mzxid", node.mzxid if node else 0))
                return self._told(line, self.world.reap(path.encode(), czxid, mzxid))
            case ["counter", path, number]:
                # As if so many children had been created here.
                tree = self.world.machine.tree
                tree.nodes[path.encode()].created = int(number)
                tree.adopt_digest()
                return [f"{line}: set"]
            case ["restart"]:
                world = World(restore(Snapshot(self.world.machine).chunks()))
                world.time_ms = self.world.time_ms
                for client in self.clients.values():
                    client.world = world
                self.world = world
                return [f"{line}: zxid {world.machine.zxid}"]
            case ["tree", *path]:
                return [f"{line}:", *self._tree(path[0].encode() if path else b"/")]
            case ["sessions"]:
                return [f"{line}:"] + [
                    f"  {session.id} generation {session.generation}"
                    for session in self.world.machine.sessions.by_id.values()
                ]
            case [_, name, *arguments]:
                return self._ask(line, verb, clients[name], arguments, options)
        raise ValueError(f"no such command: {line}")

    def _ask(
        self, line: str, verb: str, client: Connection, words: list[str], options: dict[str, str]
    ) -> list[str]:
        match [verb, *words]:
            case ["auth", scheme, identifier]:
                client.be(Identity(scheme, identifier))
                return [f"{line}: ok"]
            case ["close"]:
                return self._told(line, client.close())
            case ["multi", *_]:
                body = [_step(step) for step in _split(words, options)]
                outcome = client.multi(*body)
                return self._told(line, outcome, *_results(outcome))
            case ["set-acl", path, *_]:
                outcome = client.set_acl(path.encode(), _acls(options), _version(options))
                return self._told(line, outcome)
            case ["get" | "exists" | "children" | "get-acl" as what, path, *watch]:
                return self._read(line, client, what, path.encode(), watch == ["watch"])
            case ["watch", path, mode]:
                error = client.add_watch(path.encode(), ["persistent", "recursive"].index(mode))
                return [f"{line}: {CODES[error]}"]
            case ["unwatch", path, kind]:
                error = client.remove_watches(path.encode(), KINDS[kind])
                return [f"{line}: {CODES[error]}"]
            case ["check-watch", path, kind]:
                error = client.check_watches(path.encode(), KINDS[kind])
                return [f"{line}: {CODES[error]}"]
            case ["set-watches", zxid]:
                lists = [
                    [path.encode() for path in options.get(kind, "").split(",") if path]
                    for kind in ("data", "exists", "child", "persistent", "recursive")
                ]
                error, _ = client.ask(opcodes.SET_WATCHES2, set_watches_body(int(zxid), *lists))
                return [f"{line}: {CODES[error]}", *self._heard(self.world.machine.zxid)]
            case _:
                operation, request = _step([verb, *words], options)
                outcome = client.send(operation, encode(request))
                return self._told(line, outcome, *_reply(operation, outcome))

    def _read(
        self, line: str, client: Connection, what: str, path: bytes, watch: bool
    ) -> list[str]:
        operation = {
            "get": opcodes.GET_DATA,
            "exists": opcodes.EXISTS,
            "children": opcodes.GET_CHILDREN2,
            "get-acl": opcodes.GET_ACL,
        }[what]
        request: Record = PathRequest(path) if what == "get-acl" else WatchedRequest(path, watch)
        error, body = client.ask(operation, encode(request))
        if error != OK:
            return [f"{line}: {CODES[error]}"]
        reader = Reader(body)
        if what == "get":
            shown = repr(reader.buffer())
        elif what == "children":
            shown = " ".join(sorted(name.decode() for name in reader.strings()))
        elif what == "get-acl":
            response = GetACLResponse.read(reader)
            return [f"{line}: {' '.join(_show_acl(acl) for acl in response.acls)}"]
        else:
            shown = "ok"
        stat = Stat.read(reader)
        return [f"{line}: {shown}, version {stat.version}, mzxid {stat.mzxid}"]

    def _told(self, line: str, outcome: Outcome, *more: str) -> list[str]:
        answer = ", ".join([CODES[outcome.error], f"zxid {outcome.zxid}", *more])
        changes = [f"  {CHANGES[change.kind]} {change.path.decode()}" for change in outcome.changes]
        return [f"{line}: {answer}", *changes, *self._heard(outcome.zxid)]

    def _heard(self, now: int) -> list[str]:
        lines: list[str] = []
        for name, client in self.clients.items():
            for kind, path, zxid in client.events:
                when = "" if zxid == now else f", zxid {zxid}"
                lines.append(f"  {name} hears: {EVENTS[kind]} {path.decode()}{when}")
            client.events.clear()
        return lines

    def _tree(self, path: bytes, depth: int = 1) -> list[str]:
        nodes = self.world.machine.tree.nodes
        node = nodes[path]
        stat = self.world.stat(path)
        zxids = f"zxids {stat.czxid} {stat.mzxid} {stat.pzxid}"
        versions = f"versions {stat.version} {stat.cversion} {stat.aversion}"
        head = f"{'  ' * depth}{path.decode()} {node.data!r}{_owner(node)}"
        lines = [f"{head}: {zxids}, {versions}"]
        for name in sorted(node.child_names()):
            if path != b"/" or name != b"zookeeper":
                lines += self._tree(path.rstrip(b"/") + b"/" + name, depth + 1)
        return lines


def _owner(node: Node) -> str:
    if node.owner == CONTAINER:
        return " container"
    if node.owner < 0:
        return f" ttl {node.owner - TTL_BASE}"
    return f" of session {node.owner}" if node.owner else ""


def _split(words: list[str], options: dict[str, str]) -> list[list[str]]:
    """Cut the words of a transaction at its semicolons; it has no options of its own."""
    assert not options, "write the options of a step as step:key:value"
    steps: list[list[str]] = [[]]
    for word in words:
        if word == ";":
            steps.append([])
        else:
            steps[-1].append(word)
    return [step for step in steps if step]


def _step(words: list[str], options: dict[str, str] | None = None) -> tuple[int, Record]:
    if options is None:
        options = dict(word.split(":", 1) for word in words if ":" in word)
        words = [word for word in words if ":" not in word]
    verb, target = words
    path = target.encode()
    data = None if options.get("data") == "null" else options.get("data", "").encode()
    flags = MODES[options.get("mode", "persistent")]
    match verb:
        case "create" | "create2":
            operation = opcodes.CREATE if verb == "create" else opcodes.CREATE2
            return operation, CreateRequest(path, data, _acls(options), flags)
        case "create-container":
            return opcodes.CREATE_CONTAINER, CreateRequest(path, data, _acls(options), 4)
        case "create-ttl":
            flags = MODES[options.get("mode", "ttl")]
            ttl_ms = int(options["ttl"])
            return opcodes.CREATE_TTL, CreateTTLRequest(path, data, _acls(options), flags, ttl_ms)
        case "delete":
            return opcodes.DELETE, VersionRequest(path, _version(options))
        case "check":
            return opcodes.CHECK, VersionRequest(path, _version(options))
        case "set":
            return opcodes.SET_DATA, SetDataRequest(path, data, _version(options))
    raise ValueError(f"no such operation: {verb}")


def _version(options: dict[str, str]) -> int:
    return int(options.get("version", -1))


def _acls(options: dict[str, str]) -> list[ACL | None]:
    """Read `rw@world/anyone,a@digest/bob/hash`; open to all if nothing is said."""
    acls: list[ACL | None] = []
    for text in options.get("acl", "rwcda@world/anyone").split(","):
        letters, _, who = text.partition("@")
        scheme, _, identifier = who.partition("/")
        permissions = sum(LETTERS[letter] for letter in letters)
        identifier = identifier.replace("/", ":", 1) if scheme == "digest" else identifier
        acls.append(ACL(permissions, Identity(scheme, identifier)))
    return acls


def _show_acl(acl: ACL) -> str:
    if acl == ACL(ALL, ANYONE):
        return "open"
    letters = "".join(letter for letter, bit in LETTERS.items() if acl.permissions & bit)
    return f"{letters}@{acl.identity.scheme}/{acl.identity.id}"


def _reply(operation: int, outcome: Outcome) -> list[str]:
    if outcome.error != OK or not outcome.body:
        return []
    reader = Reader(outcome.body)
    if operation in (opcodes.SET_DATA, opcodes.CHECK):
        return [f"version {Stat.read(reader).version}"]
    return [CreateResponse.read(reader).path.decode()]


def _results(outcome: Outcome) -> list[str]:
    if outcome.error != OK:
        return []
    reader = Reader(outcome.body)
    shown: list[str] = []
    while not (header := MultiHeader.read(reader)).done:
        match header.operation:
            case opcodes.ERROR:
                shown.append(CODES[IntResponse.read(reader).value])
            case opcodes.CREATE:
                shown.append(CreateResponse.read(reader).path.decode())
            case opcodes.CREATE2:
                shown.append(Create2Response.read(reader).path.decode() + " with stat")
            case opcodes.SET_DATA:
                shown.append(f"version {Stat.read(reader).version}")
            case _:
                shown.append(operations.NAMES[header.operation])
    return [f"[{' | '.join(shown)}]"]
