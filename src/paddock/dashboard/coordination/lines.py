"""Lines of contenders: locks, read-write locks, semaphores, elections, double barriers.

Contenders of one line see each other, those of other lines at the same path do not: kazoo's locks
and Curator's do not exclude one another. Curator's and Paddock's do; a line of both is shown as
Curator's, whose layout it is.

Who holds is decided as the recipes do it. Of a lock and an election it is the first. Of a
read-write lock a writer holds if it is the first, and a reader if no writer is before it. Of a
semaphore all leases are held, except the last one if it belongs to the first in the line of turns
and is younger than that turn: this is the contender that waits for the next lease.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence

from paddock.dashboard.coordination.nodes import Node
from paddock.dashboard.coordination.recipe import Contender, Kind, Needs, Recipe, contender
from paddock.layouts import (
    CURATOR,
    KAZOO,
    KAZOO_LOCK,
    KAZOO_READ,
    LATCH,
    LEASE,
    LOCK,
    MEMBER,
    PADDOCK,
    READ,
    WAIT,
    WORKER,
    WRITE,
    Place,
    place_of,
    ranked,
)


def is_lease(node: Node) -> bool:
    """Return whether it is a lease of a semaphore, or Paddock's Lease."""
    return _is(node, LEASE)


def is_turn(node: Node) -> bool:
    """Return whether it is a place in the line of a lock, or of a semaphore."""
    return _is(node, LOCK)


def is_member(node: Node) -> bool:
    """Return whether it is a member of Paddock's double barrier or partitioner."""
    return _is(node, MEMBER)


def is_waiting_consumer(node: Node) -> bool:
    """Return whether it is a consumer that waits at Paddock's queue."""
    return _is(node, WAIT)


def is_kazoo_turn(node: Node) -> bool:
    """Return whether it is a place in the line of a lock or semaphore of kazoo's."""
    return _is(node, KAZOO_LOCK)


def is_timed_lease(node: Node) -> bool:
    """Return whether it is a lease whose data say for how many seconds it is held."""
    return is_lease(node) and _seconds(node) is not None


def in_line(nodes: Iterable[Node]) -> list[Node]:
    """Return contenders of one line, the first one first."""
    return [node for _, node in _in_order(_placed(nodes))]


def lines(path: str, places: Sequence[tuple[Place, Node]], ready: Node | None) -> Iterator[Recipe]:
    """Yield the recipes whose contenders stand right below a path."""

    def those(*kinds: str) -> list[tuple[Place, Node]]:
        return _in_order([found for found in places if found[0].kind in kinds])

    yield from _locks(path, those(LOCK))
    yield from _timed(path, those(LEASE))
    yield from _read_write(path, those(READ, WRITE), WRITE)
    of_kazoo = those(KAZOO_LOCK, KAZOO_READ)
    if any(place.kind == KAZOO_READ for place, _ in of_kazoo):
        yield from _read_write(path, of_kazoo, KAZOO_LOCK)
    else:
        yield from _locks(path, of_kazoo)
    if latches := those(LATCH):
        leader, *others = latches
        yield Recipe(
            Kind.ELECTION,
            _layout(latches),
            path,
            (contender(leader[1], "leads"),),
            tuple(contender(node, "stands for election") for _, node in others),
            limit=1,
        )
    if members := those(MEMBER):
        yield _double_barrier(path, [node for _, node in members], ready)
    if workers := those(WORKER):
        there = tuple(contender(node, "works") for _, node in workers)
        yield Recipe(Kind.MEMBERS, PADDOCK, path, there, size=len(there))


def semaphore(path: str, leases: Iterable[Node], turns: Iterable[Node]) -> Recipe:
    """Return a semaphore of Paddock's or Curator's."""
    held, line = in_line(filter(is_lease, leases)), in_line(filter(is_turn, turns))
    is_next = (
        bool(held and line)
        and held[-1].session == line[0].session
        and held[-1].czxid > line[0].czxid
    )
    holders = held[:-1] if is_next else held
    return Recipe(
        Kind.SEMAPHORE,
        _layout(_placed([*held, *line])),
        path,
        tuple(contender(one, "holds a lease") for one in holders),
        tuple(contender(one, "waits for a lease") for one in line),
        # Otherwise the first in the line is about to look: a lease may be free.
        needs=Needs.ANY if is_next else None,
    )


def kazoo_semaphore(path: str, leases: Iterable[Node], turns: Iterable[Node], limit: int) -> Recipe:
    """Return a semaphore of kazoo's."""
    held = sorted(leases, key=lambda one: one.czxid)
    line = in_line(filter(is_kazoo_turn, turns))
    return Recipe(
        Kind.SEMAPHORE,
        KAZOO,
        path,
        tuple(contender(one, "holds a lease") for one in held),
        tuple(contender(one, "waits for a lease") for one in line),
        limit=limit,
        needs=Needs.ANY if len(held) >= limit else None,
    )


def partitioner(path: str, members: Iterable[Node], items: int) -> Recipe:
    """Return the members of a partitioner, and how many items they have."""
    line = in_line(filter(is_member, members))
    there = tuple(contender(one, "has a share") for one in line)
    return Recipe(Kind.MEMBERS, PADDOCK, path, there, size=items)


def _locks(path: str, line: Sequence[tuple[Place, Node]]) -> Iterator[Recipe]:
    if line:
        (_, first), *others = line
        yield Recipe(
            Kind.LOCK,
            _layout(line),
            path,
            (contender(first, "holds"),),
            tuple(contender(node, "waits") for _, node in others),
            limit=1,
            needs=Needs.ALL,
        )


def _timed(path: str, line: Sequence[tuple[Place, Node]]) -> Iterator[Recipe]:
    """Yield Paddock's Lease: whatever its holder waits for, its time will be over."""
    if line:
        first, *others = [
            contender(
                node, f"leases for {_seconds(node)} s" if _seconds(node) else "leases", data=b""
            )
            for _, node in line
        ]
        yield Recipe(Kind.LOCK, _layout(line), path, (first,), tuple(others), limit=1)


def _read_write(path: str, line: Sequence[tuple[Place, Node]], writes: str) -> Iterator[Recipe]:
    if not line:
        return
    holders: list[Contender] = []
    waiters: list[Contender] = []
    first = line[0][0]
    has_writer = False
    for place, node in line:
        is_writer = place.kind == writes
        # A writer that goes on as a reader has two nodes with one number.
        is_same = place.number == first.number
        is_holding = not holders or is_same or not (is_writer or has_writer)
        has_writer = has_writer or is_writer
        one = contender(node, "writes" if is_writer else "reads")
        (holders if is_holding else waiters).append(one)
    yield Recipe(
        Kind.READ_WRITE_LOCK,
        _layout(line),
        path,
        tuple(holders),
        tuple(waiters),
        needs=Needs.ALL,
    )


def _double_barrier(path: str, members: Sequence[Node], ready: Node | None) -> Recipe:
    # The mark of the round, and its members.
    names = [] if ready is None else ready.data.decode(errors="replace").split("\n")[1:]
    inside = [one for one in members if one.name in names]
    return Recipe(
        Kind.BARRIER,
        PADDOCK,
        path,
        tuple(contender(one, "inside") for one in inside),
        tuple(contender(one, "waits") for one in members if one.name not in names),
        size=len(names) or None,
    )


def _placed(nodes: Iterable[Node]) -> list[tuple[Place, Node]]:
    return [(place, node) for node in nodes if (place := place_of(node.name)) is not None]


def _in_order(places: Sequence[tuple[Place, Node]]) -> list[tuple[Place, Node]]:
    ranks = ranked([place.number for place, _ in places])
    # A writer before the reader that it goes on as.
    keys = [(rank, node.czxid, node.name) for rank, (_, node) in zip(ranks, places, strict=True)]
    return [places[one] for one in sorted(range(len(places)), key=keys.__getitem__)]


def _layout(line: Sequence[tuple[Place, Node]]) -> str:
    layouts = {place.layout for place, _ in line}
    return layouts.pop() if len(layouts) == 1 else CURATOR


def _is(node: Node, kind: str) -> bool:
    place = place_of(node.name)
    return place is not None and place.kind == kind


def _seconds(node: Node) -> float | None:
    try:
        seconds = float(node.data)
    except ValueError:
        return None
    return seconds if seconds > 0 and math.isfinite(seconds) else None
