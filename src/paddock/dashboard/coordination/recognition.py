"""Recipes recognised by their nodes: a pure function of a listing.

A recipe is recognised by a signature that nothing else has: names with a mark (`paddock.layouts`),
data of a known form, nodes that were created in one transaction. What has none is not guessed:

* Ephemeral nodes with ten digits at the end are `contenders` of an unknown layout, in their order;
  other ephemeral nodes are `members`. So are the members of kazoo's and Curator's double barriers,
  until the node `ready` tells what they are.
* kazoo's elections and Curator's LeaderSelector are locks by their nodes, so they are shown as
  locks; a kazoo lock is one for reading and writing as soon as a reader is there.
* A single barrier of kazoo or of Curator is a node like any other, and is not shown. Neither are a
  recipe that nobody uses and the waiters of a `SimpleMutex`, who leave no nodes.
* The number of leases is in kazoo's semaphores only.

`recipes_at` looks at one node, its children, and the children of its parts, so that a change is
looked at alone; `affected_by` says where.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Final

from paddock.dashboard.coordination import lines
from paddock.dashboard.coordination.nodes import Index, Node
from paddock.dashboard.coordination.recipe import UNKNOWN, Kind, Recipe, contender
from paddock.layouts import (
    CLOSED_BARRIER,
    CURATOR,
    KAZOO,
    PADDOCK,
    fenced,
    is_party_member,
    item_layout,
    number_of,
    place_of,
    ranked,
    unique_layout,
)
from paddock.protocol.paths import child_path, parent_path
from paddock.recipes.common.encoding import decode_object
from paddock.recipes.values.versioned_node import MARKER_PREFIX

_SEMAPHORE: Final = ("locks", "leases")
_QUEUE: Final = ("entries", "taken", "receipts", "dead")
_PARTITIONER: Final = ("members", "items")
_KAZOO_LINE: Final = "-__lock__"


def recognise(nodes: Iterable[Node]) -> list[Recipe]:
    """Return the recipes in a listing, by their paths."""
    index = Index(nodes)
    places = {place for path in index.parents() for place in affected_by(path)}
    found = [recipe for path in places for recipe in recipes_at(index, path)]
    return sorted(found, key=lambda one: (one.path, one.kind, one.layout))


def affected_by(path: str) -> set[str]:
    """Return where recipes may be others when a node has changed."""
    found = {path}
    for _ in range(2):
        if path == "/":
            break
        # A queue's consumer is at `taken`, what it is a part of is above; and its siblings count.
        above = parent_path(path)
        found |= {above, path.removesuffix(_KAZOO_LINE), path + _KAZOO_LINE}
        found |= {child_path(above, part) for part in (*_SEMAPHORE, *_QUEUE, *_PARTITIONER)}
        path = above
    return found


def recipes_at(index: Index, path: str) -> list[Recipe]:
    """Return the recipes at a path, and those of single nodes right below it."""
    if path != "/":
        above, name = parent_path(path), path[path.rfind("/") + 1 :]
        if (
            (name in _SEMAPHORE and is_semaphore(index, above))
            or (name in _QUEUE and _queue_layout(index, above) is not None)
            or (name in _PARTITIONER and _is_partitioner(index, above))
            or (
                path.endswith(_KAZOO_LINE)
                and _kazoo_limit(index, path.removesuffix(_KAZOO_LINE)) is not None
            )
        ):
            # A part of what is above, or beside it.
            return []
    rest = dict(index.below(path))
    return [*_whole(index, path, rest), *_single(path, rest), *_groups(path, rest)]


# Recipes of several nodes. Each takes its nodes out of the rest.


def _whole(index: Index, path: str, rest: dict[str, Node]) -> Iterator[Recipe]:
    if is_semaphore(index, path):
        yield lines.semaphore(
            path,
            index.below(child_path(path, "leases")).values(),
            index.below(child_path(path, "locks")).values(),
        )
    limit = _kazoo_limit(index, path)
    if limit is not None:
        holders = _take(rest, [one for one in rest.values() if _is_kazoo_lease(one)])
        line = index.below(path + _KAZOO_LINE).values()
        yield lines.kazoo_semaphore(path, holders, line, limit)
    if _is_partitioner(index, path):
        items = index.below(child_path(path, "items"))
        members = index.below(child_path(path, "members")).values()
        claimed = sum(fenced(name) not in items for name in items)
        yield lines.partitioner(path, members, claimed)
    layout = _queue_layout(index, path)
    if layout is not None:
        yield _queue_with_consumers(index, path, layout, rest)
    elif (direct := index.queue_layout(path)) is not None:
        yield Recipe(Kind.QUEUE, direct, path, size=index.size(path))
    places = [
        (place, node)
        for node in rest.values()
        # kazoo's locks may be persistent.
        if (place := place_of(node.name)) is not None and (node.session or place.layout == KAZOO)
    ]
    _take(rest, [node for _, node in places])
    ready = rest.pop("ready", None)
    yield from lines.lines(path, places, ready)
    if ready is not None:
        for unique in (KAZOO, CURATOR):
            inside = [one for one in rest.values() if _is_unique(one, unique)]
            if inside:
                yield Recipe(
                    Kind.BARRIER,
                    unique,
                    path,
                    tuple(contender(one, "inside") for one in _by_age(_take(rest, inside))),
                )


def is_semaphore(index: Index, path: str) -> bool:
    """Return whether a path is a semaphore of Paddock's or Curator's."""
    leases = index.below(child_path(path, "leases")).values()
    turns = index.below(child_path(path, "locks")).values()
    if not any(map(lines.is_lease, leases)):
        return False
    # Or it is Paddock's Lease at a path that ends so: its data say how long it is.
    return any(map(lines.is_turn, turns)) or not all(map(lines.is_timed_lease, leases))


def _kazoo_limit(index: Index, path: str) -> int | None:
    """Return how many leases a semaphore of kazoo's has; None if the path is none, or unused."""
    node = index.get(path)
    if node is None or len(node.data) > 10 or not node.data.isdigit() or int(node.data) == 0:
        return None
    holders = index.below(path).values()
    line = index.below(path + _KAZOO_LINE).values()
    is_one = any(map(_is_kazoo_lease, holders)) or any(map(lines.is_kazoo_turn, line))
    return int(node.data) if is_one else None


def _is_kazoo_lease(node: Node) -> bool:
    return node.session != 0 and unique_layout(node.name) == KAZOO


def _is_partitioner(index: Index, path: str) -> bool:
    members = index.get(child_path(path, "members"))
    # Or it is a double barrier at a path that ends so. A partitioner has a division, in JSON.
    has_division = members is not None and members.data.startswith(b"{")
    below = index.below(child_path(path, "members")).values()
    return (has_division or "items" in index.below(path)) and any(map(lines.is_member, below))


def _queue_layout(index: Index, path: str) -> str | None:
    """Return whose queue with consumers is at a path; None if there is none."""
    layout = index.queue_layout(child_path(path, "entries"))
    if layout in (PADDOCK, KAZOO):
        return layout
    below = index.below(path)
    is_waited_for = any(map(lines.is_waiting_consumer, below.values()))
    return PADDOCK if is_waited_for or all(part in below for part in _QUEUE) else None


def _queue_with_consumers(index: Index, path: str, layout: str, rest: dict[str, Node]) -> Recipe:
    taken = [one for one in index.below(child_path(path, "taken")).values() if one.session]
    waiting = lines.in_line(_take(rest, filter(lines.is_waiting_consumer, [*rest.values()])))
    return Recipe(
        Kind.QUEUE,
        layout,
        path,
        tuple(contender(one, "processes an item") for one in _by_age(taken)),
        tuple(contender(one, "waits for an item") for one in waiting),
        size=index.size(child_path(path, "entries")) or 0,
    )


# Recipes of a node or two.


def _single(path: str, rest: dict[str, Node]) -> Iterator[Recipe]:
    for node in [*rest.values()]:
        if not node.session and node.data == CLOSED_BARRIER:
            closed = contender(node, "closed", data=b"")
            yield Recipe(Kind.BARRIER, PADDOCK, node.path, (closed,))
            continue
        of = fenced(node.name) if node.session else None
        if of is None:
            continue
        if of.endswith("-closed"):
            # Of somebody who closes a barrier.
            rest.pop(node.name)
        elif (claim := rest.get(of)) is not None and _is_together(claim, node):
            _take(rest, [claim, node])
            mark = node.name[len(of) + 1 :].encode()
            said = b"" if claim.data == mark else claim.data
            yield Recipe(Kind.LOCK, PADDOCK, claim.path, (contender(claim, "holds", data=said),))
    lease = rest.pop("lease_holder", None)
    fields = {} if lease is None else _fields(lease.data)
    if lease is not None and {"version", "holder", "end"} <= fields.keys():
        holder = contender(
            lease, f"leases until {fields['end']} UTC", data=str(fields["holder"]).encode()
        )
        yield Recipe(Kind.LOCK, KAZOO, path, (holder,), limit=1)


def _is_together(one: Node, other: Node) -> bool:
    return one.session == other.session and one.czxid == other.czxid


# Groups: each of their nodes is a member.


def _groups(path: str, rest: dict[str, Node]) -> Iterator[Recipe]:
    there = [one for one in rest.values() if one.session and not one.name.startswith(MARKER_PREFIX)]
    if path == "/":
        # What is there is known by its name, and no group.
        return
    service = path[path.rfind("/") + 1 :]
    instances = [(one, fields) for one in there if (fields := _instance(one, service))]
    if instances:
        is_curators = any("registrationTimeUTC" in fields for _, fields in instances)
        yield Recipe(
            Kind.SERVICE,
            CURATOR if is_curators else PADDOCK,
            path,
            tuple(
                contender(
                    one,
                    "disabled" if fields.get("enabled") is False else "serves",
                    address=_address(fields),
                )
                for one, fields in sorted(instances, key=lambda found: found[0].czxid)
            ),
        )
    nodes = {one.name for one, _ in instances}
    there = [one for one in there if one.name not in nodes]
    takers = [one for one in there if item_layout(one.name) == CURATOR]
    if takers:
        # The lock path of a queue, which its user has chosen.
        held = tuple(contender(one, "processes an item") for one in _by_age(takers))
        yield Recipe(Kind.QUEUE, CURATOR, path, held)
    there = [one for one in there if item_layout(one.name) is None]
    party = [one for one in there if is_party_member(one.name)]
    yield from _members(KAZOO, path, party)
    there = [one for one in there if not is_party_member(one.name)]
    numbered = [one for one in there if number_of(one.name) is not None]
    if numbered:
        ranks = ranked([number_of(one.name) or 0 for one in numbered])
        line = [one for _, one in sorted(zip(ranks, numbered, strict=True))]
        waiting = tuple(contender(one, "stands in a line") for one in line)
        yield Recipe(Kind.CONTENDERS, UNKNOWN, path, waiters=waiting)
    yield from _members(UNKNOWN, path, [one for one in there if number_of(one.name) is None])


def _members(layout: str, path: str, nodes: list[Node]) -> Iterator[Recipe]:
    if nodes:
        members = tuple(contender(one, "is a member") for one in _by_age(nodes))
        yield Recipe(Kind.MEMBERS, layout, path, members, size=len(members))


def _instance(node: Node, service: str) -> dict[str, object]:
    """Return the instance of a service in a node; nothing if there is none."""
    if not node.data.startswith(b"{"):
        return {}
    fields = _fields(node.data)
    return fields if fields.get("name") == service and "serviceType" in fields else {}


def _address(fields: dict[str, object]) -> str | None:
    address, port = fields.get("address"), fields.get("port") or fields.get("sslPort")
    if not isinstance(address, str) or not address:
        return None
    host = f"[{address}]" if ":" in address else address
    return f"{host}:{port}" if isinstance(port, int) else address


def _fields(data: bytes) -> dict[str, object]:
    try:
        return decode_object(data)
    except ValueError:
        return {}


def _is_unique(node: Node, layout: str) -> bool:
    return node.session != 0 and unique_layout(node.name) == layout


def _by_age(nodes: Iterable[Node]) -> list[Node]:
    return sorted(nodes, key=lambda one: (one.czxid, one.name))


def _take(rest: dict[str, Node], nodes: Iterable[Node]) -> list[Node]:
    """Take nodes out of the rest."""
    taken = list(nodes)
    for node in taken:
        rest.pop(node.name, None)
    return taken
