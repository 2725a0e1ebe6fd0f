"""Who waits for whom, and which sets of sessions cannot go on."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

from paddock.dashboard.coordination.deadlocks import Wait, find_deadlocks, find_waits
from paddock.dashboard.coordination.recipe import Contender, Kind, Needs, Recipe

A, B, C, D = 1, 2, 3, 4
_zxids = itertools.count(1)


def contender(session: int, czxid: int = 0) -> Contender:
    return Contender("", session, 0, czxid or next(_zxids), b"", "", None)


def recipe(
    path: str, holders: Sequence[int], waiters: Sequence[int], needs: Needs | None = Needs.ALL
) -> Recipe:
    """Return a recipe whose waiters came after all holders of all recipes."""
    return Recipe(
        Kind.LOCK,
        "Paddock",
        path,
        tuple(contender(one) for one in holders),
        tuple(contender(one, 1_000_000 + next(_zxids)) for one in waiters),
        needs=needs,
    )


def lists(*recipes: Recipe) -> list[list[int]]:
    return [list(one.sessions) for one in find_deadlocks(recipes)]


def test_two_locks_taken_crosswise() -> None:
    recipes = [recipe("/one", [A], [B]), recipe("/two", [B], [A])]
    [deadlock] = find_deadlocks(recipes)
    assert deadlock.sessions == (A, B)
    assert deadlock.waits == (Wait(A, B, "/two"), Wait(B, A, "/one"))
    assert find_waits(recipes) == [Wait(B, A, "/one"), Wait(A, B, "/two")]


def test_a_circle_of_three_is_told_once_and_in_its_order() -> None:
    recipes = [recipe("/a", [C], [A]), recipe("/b", [A], [B]), recipe("/c", [B], [C])]
    for order in itertools.permutations(recipes):
        [deadlock] = find_deadlocks(order)
        assert deadlock.sessions == (A, C, B)
        assert [one.path for one in deadlock.waits] == ["/a", "/c", "/b"]


def test_a_chain_is_no_deadlock() -> None:
    assert lists(recipe("/a", [A], [B]), recipe("/b", [B], [C]), recipe("/c", [C], [D])) == []


def test_who_only_waits_for_a_deadlock_is_not_in_it() -> None:
    crosswise = [recipe("/one", [A], [B, C]), recipe("/two", [B], [A])]
    assert lists(*crosswise, recipe("/three", [C], [D])) == [[A, B]]


def test_two_deadlocks_are_two() -> None:
    assert lists(
        recipe("/1", [A], [B]),
        recipe("/2", [B], [A]),
        recipe("/3", [C], [D]),
        recipe("/4", [D], [C]),
    ) == [[A, B], [C, D]]


def test_of_a_semaphore_one_holder_who_goes_on_is_enough() -> None:
    semaphore = recipe("/semaphore", [B, C], [A], Needs.ANY)
    assert lists(semaphore, recipe("/lock", [A], [B])) == []
    both = lists(semaphore, recipe("/lock", [A], [B, C]))
    assert both == [[A, B, C]]


def test_of_a_read_write_lock_all_holders_have_to_go() -> None:
    readers = recipe("/rw", [B, C], [A])
    assert lists(readers, recipe("/lock", [A], [B])) == [[A, B]]


def test_a_set_that_another_deadlock_keeps_is_none_of_its_own() -> None:
    """A waits for B or C. B waits for A, but C would let A go on, if D let C."""
    recipes = [
        recipe("/semaphore", [B, C], [A], Needs.ANY),
        recipe("/lock", [A], [B]),
        recipe("/3", [C], [D]),
        recipe("/4", [D], [C]),
    ]
    assert lists(*recipes) == [[C, D]]


def test_what_does_not_end_by_itself_counts_only() -> None:
    timed = recipe("/lease", [B], [A], None)
    assert lists(recipe("/lock", [A], [B]), timed) == []
    assert find_waits([timed]) == []


def test_tasks_of_one_session_contend_as_strangers() -> None:
    # A holds it, and two more tasks of it wait, with B's among them.
    assert lists(recipe("/lock", [A], [A, B, A])) == []
    # Two workers for each lease of a semaphore, in two processes.
    assert lists(recipe("/semaphore", [A, B], [A, B], Needs.ANY)) == []
    # One session alone.
    assert lists(recipe("/one", [A], [A]), recipe("/two", [A], [A])) == []
    assert find_waits([recipe("/lock", [A], [A])]) == []


def test_what_was_taken_during_a_wait_belongs_to_another_task() -> None:
    def crosswise(taken: int, waits: int) -> list[Recipe]:
        return [
            Recipe(
                Kind.LOCK,
                "kazoo",
                "/one",
                (contender(A, taken),),
                (contender(B, 50),),
                needs=Needs.ALL,
            ),
            Recipe(
                Kind.LOCK,
                "kazoo",
                "/two",
                (contender(B, 10),),
                (contender(A, waits),),
                needs=Needs.ALL,
            ),
        ]

    assert lists(*crosswise(taken=20, waits=30)) == [[A, B]]
    assert lists(*crosswise(taken=30, waits=20)) == []


def test_nodes_without_a_session_are_no_actors() -> None:
    assert lists(recipe("/one", [0], [A]), recipe("/two", [A], [0])) == []
    assert find_waits([recipe("/one", [0], [A]), recipe("/two", [A], [0])]) == []


def test_a_chain_of_many_ends_in_no_recursion() -> None:
    count = 2000
    ring = [recipe(f"/{one}", [one], [one % count + 1]) for one in range(1, count + 1)]
    [deadlock] = find_deadlocks(ring)
    assert len(deadlock.sessions) == count


def test_waits_are_limited() -> None:
    crowd = recipe("/rw", range(1, 50), range(100, 150))
    assert len(find_waits([crowd], 7)) == 7
    assert len(find_waits([crowd])) == 49 * 50
