"""Deadlocks of random small worlds, compared with a search through all sets of sessions' holdings.

The search knows the rule and nothing of graphs: it tries every set of holdings, and asks of each
whether all in it are kept from going on by others in it.
"""

from __future__ import annotations

import itertools

from hypothesis import given, settings
from hypothesis import strategies as st

from paddock.dashboard.coordination.deadlocks import find_deadlocks
from paddock.dashboard.coordination.recipe import Contender, Kind, Needs, Recipe


def contender(session: int, czxid: int) -> Contender:
    return Contender("", session, 0, czxid, b"", "", None)


@st.composite
def worlds(draw: st.DrawFn) -> list[Recipe]:
    """Draw two to four recipes with one or two holders and one or two waiters each."""
    zxids = iter(draw(st.permutations(range(1, 17))))
    recipes = []
    for number in range(draw(st.integers(2, 4))):
        needs = draw(st.sampled_from([Needs.ALL, Needs.ALL, Needs.ANY]))
        # As a rule nobody waits for itself, and waiters came late: or deadlocks were rare.
        order = draw(st.permutations([1, 2, 3, 4]))
        holders, waiters = order[: draw(st.integers(1, 2))], order[2 : 2 + draw(st.integers(1, 2))]
        if draw(st.integers(0, 7)) == 7:
            waiters = [*waiters[:1], holders[0]]
        late = 0 if draw(st.integers(0, 7)) == 7 else 100
        recipes.append(
            Recipe(
                Kind.LOCK,
                "kazoo",
                f"/{number}",
                tuple(contender(one, next(zxids)) for one in holders),
                tuple(contender(one, late + next(zxids)) for one in waiters),
                needs=needs,
            )
        )
    return recipes


# A holding is a recipe's number and its holder's.
Holding = tuple[int, int]


def blocked_by(recipes: list[Recipe], holding: Holding) -> list[list[Holding]]:
    """Return for each counted wait of a holding's session the holdings that it waits for."""
    here = recipes[holding[0]].holders[holding[1]]
    return [
        [(number, place) for place in range(len(recipe.holders))]
        for number, recipe in enumerate(recipes)
        if recipe.holders
        and here.session not in {one.session for one in recipe.holders}
        and any(one.session == here.session and one.czxid > here.czxid for one in recipe.waiters)
    ]


def keeps_itself(recipes: list[Recipe], group: frozenset[Holding]) -> bool:
    """Tell whether each of a group waits for something that the group does not give back."""

    def is_kept(recipe: Recipe, held: list[Holding]) -> bool:
        inside = [one in group for one in held]
        return all(inside) if recipe.needs is Needs.ANY else any(inside)

    return all(
        any(is_kept(recipes[held[0][0]], held) for held in blocked_by(recipes, one))
        for one in group
    )


def is_connected(recipes: list[Recipe], group: frozenset[Holding]) -> bool:
    """Tell whether each of a group waits for each other, directly or not, within the group."""

    def reach(start: Holding) -> set[Holding]:
        seen: set[Holding] = set()
        todo = [start]
        while todo:
            for held in blocked_by(recipes, todo.pop()):
                recipe = recipes[held[0][0]]
                inside = {one for one in held if one in group}
                # A semaphore that lets somebody go on connects nobody.
                if recipe.needs is Needs.ANY and len(inside) < len(held):
                    continue
                todo += inside - seen
                seen |= inside
        return seen

    return all(reach(one) == group for one in group)


def by_search(recipes: list[Recipe]) -> set[frozenset[int]]:
    """Return the sessions of every largest group that keeps itself and is connected."""
    holdings = [
        (number, place)
        for number, recipe in enumerate(recipes)
        if recipe.waiters
        for place in range(len(recipe.holders))
    ]
    groups = [
        frozenset(group)
        for size in range(1, len(holdings) + 1)
        for group in itertools.combinations(holdings, size)
    ]
    found = [one for one in groups if keeps_itself(recipes, one) and is_connected(recipes, one)]
    largest = [one for one in found if not any(one < other for other in found)]
    sessions = [
        frozenset(recipes[number].holders[place].session for number, place in one)
        for one in largest
    ]
    return {one for one in sessions if len(one) > 1}


@settings(max_examples=100, deadline=None)
@given(worlds())
def test_deadlocks_are_those_that_a_search_finds(recipes: list[Recipe]) -> None:
    deadlocks = find_deadlocks(recipes)
    assert {frozenset(one.sessions) for one in deadlocks} == by_search(recipes)
    for deadlock in deadlocks:
        circle = [wait.waiter for wait in deadlock.waits]
        assert list(deadlock.sessions[: len(circle)]) == circle
        assert [wait.holder for wait in deadlock.waits] == [*circle[1:], circle[0]]
        for wait in deadlock.waits:
            [recipe] = [one for one in recipes if one.path == wait.path]
            assert wait.waiter in {one.session for one in recipe.waiters}
            assert wait.holder in {one.session for one in recipe.holders}
