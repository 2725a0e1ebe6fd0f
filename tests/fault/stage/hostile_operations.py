"""Every operation of the protocol, on nodes that are as costly for it as an attacker can make them.

Each is tried alone, pipelined by one client; in a transaction, where it may stand in one; and
behind a write: what is none itself as W R R R … W, another write as W O W O … .

The nodes: `large` has a megabyte of data, `wide` thousands of children, `guarded` an ACL of
thousands of entries; the client has many identities, and of the ACLs that are not open only its
last one counts. A quota stands above all of them, and recursive watchers hear of every change.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from paddock.protocol import opcodes, operations
from tests.fault.stage.hostile import Case
from tests.fault.stage.hostile_stage import Stage, credentials, multis
from tests.support import requests as rq
from tests.support.records import Acl, Mode, Op, Perm, Request

WATCHERS = 10
#: How many sessions end at a time.
CLOSING = 40


#: Makes the requests of one round, for a stage and the number of the round.
Round = Callable[[Stage, int], Sequence[Request]]


@dataclass(frozen=True, slots=True)
class Work:
    """How to ask for one operation again and again."""

    op: Op
    #: How many rounds there are at scale 1.
    rounds: int
    round: Round
    #: What the replies may take, if a client has to wait for them, and the nodes that stay.
    memory_mb: float = 0

    @property
    def is_read(self) -> bool:
        return self.op not in operations.WRITES

    @property
    def is_step(self) -> bool:
        """Whether a transaction, or a multiRead, may hold it."""
        return operations.BY_NUMBER[self.op].step_of != 0


def large(stage: Stage) -> str:
    return stage.path("large")


def wide(stage: Stage) -> str:
    return stage.path("wide")


def guarded(stage: Stage) -> str:
    return stage.path("guarded")


def prepare(stage: Stage) -> None:
    """Make the nodes, the quota and the watchers, and one client with many identities."""
    stage.create([wide(stage)])
    stage.create([large(stage)], bytes(1_000_000))
    stage.create(f"{wide(stage)}/{number:06d}" for number in range(5_000 * stage.scale))
    stage.prepared = [stage.identified()]
    # As many as a request holds.
    stage.guard(guarded(stage), stage.last_identity(), min(30_000, 5_000 * stage.scale))
    above = f"/zookeeper/quota{stage.root}"
    stage.create([above])
    stage.create([f"{above}/zookeeper_limits"], b"count=1000000,bytes=-1")
    stage.create([f"{above}/zookeeper_stats"])
    watchers = stage.join(WATCHERS)
    stage.ask(watchers, [rq.add_watch(stage.root, 1)])
    stage.listen(*watchers)


def deletes(stage: Stage, number: int) -> Sequence[Request]:
    """Return a delete, and a create before it."""
    return rq.create(stage.path(f"d{number}")), rq.delete(stage.path(f"d{number}"))


def long_acl(number: int) -> list[Acl]:
    more = (Acl(number, "digest", f"s{other}:x") for other in range(300))
    return [Acl(Perm.ALL, "world", "anyone"), *more]


def missing(number: int, count: int) -> list[str]:
    return [f"/{number}/{other}" for other in range(count)]


WORKS = (
    Work(Op.CREATE, 500, lambda s, n: [rq.create(s.path(f"a{n}"), acl=[s.last_identity()])], 20),
    Work(Op.CREATE2, 500, lambda s, n: [rq.create2(s.path(f"b{n}"), acl=[s.last_identity()])], 20),
    Work(Op.CREATE_CONTAINER, 500, lambda s, n: [rq.create_container(s.path(f"c{n}"))], 20),
    Work(Op.CREATE_TTL, 500, lambda s, n: [rq.create_ttl(s.path(f"t{n}"), 1 << 39)], 20),
    Work(Op.DELETE, 500, deletes),
    Work(Op.DELETE_CONTAINER, 1_000, lambda s, n: [rq.delete_container(wide(s))]),
    Work(Op.SET_DATA, 1_000, lambda s, n: [rq.set_data(guarded(s), b"")]),
    Work(Op.SET_ACL, 30, lambda s, n: [rq.set_acl(s.root, long_acl(n))], 20),
    Work(Op.CHECK, 1_000, lambda s, n: [rq.check(guarded(s))]),
    Work(Op.RECONFIG, 1_000, lambda s, n: [rq.reconfig("server.1=a", "", "")]),
    Work(Op.MULTI, 20, lambda s, n: [rq.multi(*[rq.check(guarded(s))] * 200)]),
    Work(Op.EXISTS, 500, lambda s, n: [rq.exists(large(s)), rq.exists(guarded(s), watch=True)]),
    Work(Op.GET_DATA, 1_000, lambda s, n: [rq.get_data(guarded(s))]),
    Work(Op.GET_ACL, 60, lambda s, n: [rq.get_acl(guarded(s))], 64),
    Work(Op.GET_CHILDREN, 100, lambda s, n: [rq.get_children(wide(s))], 64),
    Work(Op.GET_CHILDREN2, 100, lambda s, n: [rq.get_children2(wide(s))], 64),
    Work(Op.MULTI_READ, 20,
         lambda s, n: [rq.multi_read(rq.get_children(wide(s)), *[rq.get_data(guarded(s))] * 200)],
         64),
    Work(Op.SYNC, 100, lambda s, n: [rq.sync("/" + "x" * 10_000)], 64),
    Work(Op.CHECK_WATCHES, 1_000, lambda s, n: [rq.check_watches(s.root, 3)]),
    Work(Op.REMOVE_WATCHES, 500,
         lambda s, n: [rq.exists(large(s), watch=True), rq.remove_watches(large(s), 3)]),
    Work(Op.ADD_WATCH, 500, lambda s, n: [rq.add_watch(s.path(f"{n}" + "/x" * 100), 1)], 10),
    Work(Op.SET_WATCHES, 5, lambda s, n: [rq.set_watches(0, missing(n, 1_000))], 32),
    Work(Op.SET_WATCHES2, 5,
         lambda s, n: [rq.set_watches2(1 << 40, (), (), (), (), missing(n, 1_000))], 32),
    Work(Op.GET_EPHEMERALS, 300, lambda s, n: [rq.get_ephemerals("/")]),
    Work(Op.GET_ALL_CHILDREN_NUMBER, 100, lambda s, n: [rq.get_all_children_number(s.root)]),
    Work(Op.WHO_AM_I, 500, lambda s, n: [rq.who_am_i()], 64),
    Work(Op.CHANGES, 500, lambda s, n: [rq.changes(f"{wide(s)}/{n}", -1, n)], 10),
    Work(Op.PING, 5_000, lambda s, n: [rq.ping()]),
    Work(Op.AUTH, 1_000, lambda s, n: [credentials(s.identities - 1)]),
    Work(Op.SASL, 1_000, lambda s, n: [rq.sasl(b"x" * 100)]),
)  # fmt: skip

#: What is tried in another case: a handshake has no place in a pipeline or a transaction.
ELSEWHERE = {opcodes.CREATE_SESSION: "handshakes"}

#: The names of the forms.
ALONE, IN_A_MULTI, BEHIND_A_WRITE = "alone", "in a multi", "behind a write"

# One form after the other has numbers of its own, so that none finds what another one has left.
_ALONE, _IN_A_MULTI, _BEHIND_A_WRITE = range(0, 3_000_000, 1_000_000)


def cases() -> list[Case]:
    """Return every operation in every form that it may have."""
    made: list[Case] = []
    for work in WORKS:
        made.append(_case(work.op, ALONE, _attack(work, _ALONE, _alone), work.memory_mb))
        if work.is_step:
            attack = _attack(work, _IN_A_MULTI, _in_a_multi)
            made.append(_case(work.op, IN_A_MULTI, attack, work.memory_mb))
        attack = _attack(work, _BEHIND_A_WRITE, _behind_a_write)
        made.append(_case(work.op, BEHIND_A_WRITE, attack, work.memory_mb))
    made.append(_case(Op.CLOSE_SESSION, ALONE, _ends_of_sessions, 10))
    made.append(_case(Op.CLOSE_SESSION, BEHIND_A_WRITE, _ends_behind_writes, 10))
    return made


def _case(op: Op, form: str, attack: Callable[[Stage], None], memory_mb: float) -> Case:
    name = operations.NAMES[op]
    return Case(
        f"{name}, {form}",
        name,
        "data, children, ACL, identities, watchers",
        attack,
        prepare,
        memory_mb=memory_mb,
        memory_mb_each=memory_mb / 4,
        # One request of these is one step.
        is_atomic=form == IN_A_MULTI or op in (Op.MULTI, Op.MULTI_READ),
        root="/operations",
    )


def _attack(
    work: Work, first: int, form: Callable[[list[Request], bool, Stage], list[Request]]
) -> Callable[[Stage], None]:
    def attack(stage: Stage) -> None:
        numbers = range(first, first + work.rounds * stage.scale)
        requests = [one for number in numbers for one in work.round(stage, number)]
        stage.ask(stage.prepared, form(requests, work.is_read, stage))

    return attack


def _alone(requests: list[Request], is_read: bool, stage: Stage) -> list[Request]:
    return requests


def _in_a_multi(requests: list[Request], is_read: bool, stage: Stage) -> list[Request]:
    return multis(requests, Op.MULTI_READ if is_read else Op.MULTI)


def _behind_a_write(requests: list[Request], is_read: bool, stage: Stage) -> list[Request]:
    change = rq.set_data(stage.root, b"")
    if is_read:
        return [change, *requests, change]
    return [one for request in requests for one in (change, request)]


def _ephemerals(stage: Stage) -> list[Request]:
    return [rq.create(stage.path("e"), flags=Mode.EPHEMERAL_SEQUENTIAL)] * 10


def _ends_of_sessions(stage: Stage) -> None:
    for _ in range(stage.scale):
        some = stage.join(CLOSING)
        stage.ask(some, _ephemerals(stage))
        stage.ask(some, [rq.close_session()])


def _ends_behind_writes(stage: Stage) -> None:
    for _ in range(stage.scale):
        stage.ask(stage.join(CLOSING), [*_ephemerals(stage), rq.close_session()])
