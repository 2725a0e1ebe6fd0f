"""Who waits for whom across locks, and deadlocks: sets of sessions of which nobody can go on.

A waiter of a lock or of a read-write lock waits until all its holders have gone: the waiters before
it in the line wait for these, too, so they add nothing. A waiter of a semaphore waits for any one
of the holders, and for nobody if a lease is free. Elections, queues, barriers and leases with a
time do not count: a candidate works on while it waits, and a time is over some day.

The rule of a deadlock. A session gives back what it holds when everything is granted that it began
to wait for later (by the zxids of the nodes: what waits cannot take anything meanwhile, so what was
taken later belongs to another task of that session). A set of sessions is a deadlock if each of
them is kept from that by others of the set, even if everybody outside gave back all at once; and if
each is reached from each other along the waits. So a semaphore with one holder who can go on is in
none, and sessions that only wait for a deadlocked one are not listed.

A session is taken for one that does one thing after the other, unless it shows that it does not: if
it waits for a lock that it holds itself, it has several tasks, which contend as strangers do. Such
waits are not counted, and a session alone is never called a deadlock. Tasks that show nothing can
still look like a deadlock for a moment. A real one stays.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from paddock.dashboard.coordination.recipe import Contender, Needs, Recipe, session_text

# A recipe, or what somebody holds of one: numbers in `_Graph`.
_Node: TypeAlias = int


class Wait(NamedTuple):
    """A session waits for what another session holds."""

    waiter: int
    holder: int
    path: str

    def fields(self) -> dict[str, str]:
        """Return it as plain data."""
        return {
            "waiter_session": session_text(self.waiter),
            "holder_session": session_text(self.holder),
            "path": self.path,
        }


class Deadlock(NamedTuple):
    """Sessions that wait for each other, and what for.

    The sessions begin with a circle, each waiting for the next one and the last for the first, from
    the smallest. `waits` are those of the circle, in its order. If the deadlock has more sessions
    than its shortest circle, they follow.
    """

    sessions: tuple[int, ...]
    waits: tuple[Wait, ...]


def find_waits(recipes: Iterable[Recipe], limit: int | None = None) -> list[Wait]:
    """Return who waits for whom: each pair once for each recipe, at most `limit` of them."""
    found: dict[Wait, None] = {}
    for recipe in recipes:
        if recipe.needs is None:
            continue
        holders = dict.fromkeys(one.session for one in recipe.holders if one.session)
        for waiter in dict.fromkeys(one.session for one in recipe.waiters if one.session):
            for holder in holders:
                if waiter != holder:
                    found[Wait(waiter, holder, recipe.path)] = None
                if limit is not None and len(found) >= limit:
                    return list(found)
    return list(found)


@dataclass
class _Graph:
    """What is blocked by what.

    A recipe is blocked while all of its holders stay, or any of them, as its waiters need; what is
    held, while any recipe is blocked that its session waits for.
    """

    needs: dict[_Node, Needs] = field(default_factory=dict)
    blockers: dict[_Node, list[_Node]] = field(default_factory=dict)
    paths: dict[_Node, str] = field(default_factory=dict)
    # Of what is held.
    sessions: dict[_Node, int] = field(default_factory=dict)


def find_deadlocks(recipes: Iterable[Recipe]) -> list[Deadlock]:
    """Return every deadlock once, by its smallest session."""
    graph = _graph([one for one in recipes if one.needs and one.holders and one.waiters])
    todo: list[Collection[_Node]] = [_stuck(graph, graph.blockers)]
    found = []
    while todo:
        for part in _strong_parts(graph.blockers, todo.pop()):
            # Those who are stuck without anybody outside.
            stuck = _stuck(graph, part)
            if len(stuck) < len(part):
                todo.append(stuck)
            elif len({graph.sessions[one] for one in part if one in graph.sessions}) > 1:
                found.append(_deadlock(graph, part))
    return sorted(found)


def _graph(recipes: list[Recipe]) -> _Graph:
    graph = _Graph()
    holdings: dict[int, list[tuple[_Node, Contender]]] = {}
    numbers = iter(range(len(recipes) + sum(len(one.holders) for one in recipes)))
    waiting: dict[int, list[tuple[_Node, int]]] = {}
    for recipe in recipes:
        assert recipe.needs is not None, "the others were left out"
        here = next(numbers)
        graph.needs[here], graph.paths[here] = recipe.needs, recipe.path
        graph.blockers[here] = []
        own = {one.session for one in recipe.holders}
        for one in recipe.holders:
            held = next(numbers)
            graph.blockers[here].append(held)
            graph.sessions[held], graph.blockers[held] = one.session, []
            holdings.setdefault(one.session, []).append((held, one))
        for waiter in recipe.waiters:
            if waiter.session not in own:
                waiting.setdefault(waiter.session, []).append((here, waiter.czxid))
    # A node that belongs to no session waits for nothing.
    holdings.pop(0, None)
    for session, held_ones in holdings.items():
        for held, one in held_ones:
            later = [here for here, czxid in waiting.get(session, ()) if czxid > one.czxid]
            graph.blockers[held] = list(dict.fromkeys(later))
    return graph


def _stuck(graph: _Graph, nodes: Collection[_Node]) -> set[_Node]:
    """Return those of the nodes that stay blocked if everything outside goes away."""
    inside = set(nodes)
    # How many blockers have to go until it goes itself.
    missing: dict[_Node, int] = {}
    blocks: dict[_Node, list[_Node]] = {}
    free = []
    for node in inside:
        within = [one for one in graph.blockers[node] if one in inside]
        is_any = graph.needs.get(node) is Needs.ANY
        is_free = not within or (is_any and len(within) < len(graph.blockers[node]))
        missing[node] = 0 if is_free else 1 if is_any else len(within)
        for one in within:
            blocks.setdefault(one, []).append(node)
        if is_free:
            free.append(node)
    while free:
        gone = free.pop()
        inside.discard(gone)
        for node in blocks.get(gone, ()):
            missing[node] -= 1
            if missing[node] == 0:
                free.append(node)
    return inside


def _strong_parts(
    blockers: Mapping[_Node, list[_Node]], nodes: Collection[_Node]
) -> list[list[_Node]]:
    """Return the strongly connected parts of more than one node (Tarjan's algorithm)."""
    inside = set(nodes)
    order: dict[_Node, int] = {}
    low: dict[_Node, int] = {}
    stack: list[_Node] = []
    on_stack: set[_Node] = set()
    found: list[list[_Node]] = []
    for root in sorted(inside):
        if root in order:
            continue
        # Without recursion: a chain of waits may be long.
        path = [(root, iter([one for one in blockers[root] if one in inside]))]
        order[root] = low[root] = len(order)
        stack.append(root)
        on_stack.add(root)
        while path:
            node, rest = path[-1]
            following = next(rest, None)
            if following is None:
                path.pop()
                if path:
                    low[path[-1][0]] = min(low[path[-1][0]], low[node])
                if low[node] == order[node]:
                    part = [stack.pop()]
                    while part[-1] != node:
                        part.append(stack.pop())
                    on_stack.difference_update(part)
                    if len(part) > 1:
                        found.append(part)
            elif following not in order:
                order[following] = low[following] = len(order)
                stack.append(following)
                on_stack.add(following)
                path.append((following, iter([o for o in blockers[following] if o in inside])))
            elif following in on_stack:
                low[node] = min(low[node], order[following])
    return found


def _deadlock(graph: _Graph, part: Collection[_Node]) -> Deadlock:
    sessions = {graph.sessions[one] for one in part if one in graph.sessions}
    # By session: the recipes of the part that it waits for, and who holds these.
    edges: dict[int, dict[int, str]] = {one: {} for one in sessions}
    inside = set(part)
    for held in sorted(one for one in inside if one in graph.sessions):
        for recipe in graph.blockers[held]:
            for other in graph.blockers[recipe] if recipe in inside else ():
                if other in inside and graph.sessions[other] != graph.sessions[held]:
                    edges[graph.sessions[held]].setdefault(
                        graph.sessions[other], graph.paths[recipe]
                    )
    circle = _shortest_circle(edges, min(sessions))
    pairs = zip(circle, [*circle[1:], circle[0]], strict=True)
    waits = tuple(Wait(one, other, edges[one][other]) for one, other in pairs)
    return Deadlock((*circle, *sorted(sessions - {*circle})), waits)


def _shortest_circle(edges: Mapping[int, Iterable[int]], start: int) -> list[int]:
    """Return the nodes of a shortest circle through a node of a strongly connected graph."""
    before: dict[int, int] = {}
    todo = [start]
    while todo:
        following = []
        for one in todo:
            for other in sorted(edges[one]):
                if other == start:
                    circle = [one]
                    while circle[-1] != start:
                        circle.append(before[circle[-1]])
                    return circle[::-1]
                if other not in before:
                    before[other] = one
                    following.append(other)
        todo = following
    raise AssertionError("the graph is not strongly connected")
