"""What is measured, and what is too much."""

from __future__ import annotations

import dataclasses

import pytest

from paddock.cli.bench.plan import CELL_BYTES_MAX, CELL_NODES_MAX, OPERATIONS, Cell, Plan

PLAN = Plan((*OPERATIONS,), seconds=0.5, clients=4, window=100, size=100, watchers=40)


def test_an_operation_is_measured_alone_then_by_several_then_with_many_under_way() -> None:
    plan = dataclasses.replace(PLAN, operations=("get", "watch", "lock"))
    assert plan.cells() == [
        Cell("get", 1, 1),
        Cell("get", 4, 1),
        Cell("get", 4, 100),
        Cell("watch", 40, 1),
        Cell("lock", 1, 1),
        Cell("lock", 4, 1),
    ]


@pytest.mark.parametrize(
    ("clients", "window", "expected"),
    [
        (1, 1, [Cell("set", 1, 1)]),
        (1, 7, [Cell("set", 1, 1), Cell("set", 1, 7)]),
        (3, 1, [Cell("set", 1, 1), Cell("set", 3, 1)]),
    ],
)
def test_no_cell_is_measured_twice(clients: int, window: int, expected: list[Cell]) -> None:
    plan = dataclasses.replace(PLAN, operations=("set",), clients=clients, window=window)
    assert plan.cells() == expected


def test_the_defaults_take_less_than_twenty_seconds() -> None:
    assert 10 < PLAN.seconds_in_all() < 20


@pytest.mark.parametrize("operation", ["set", "create", "ephemeral", "mix"])
@pytest.mark.parametrize("size", [0, 1, 1000, 1_000_000])
def test_what_a_cell_writes_is_bounded(operation: str, size: int) -> None:
    plan = dataclasses.replace(PLAN, size=size)
    limit = plan.limit(Cell(operation, 4, 100))
    assert limit is not None
    assert limit > 0
    assert limit * size <= CELL_BYTES_MAX
    assert operation != "create" or limit <= CELL_NODES_MAX


@pytest.mark.parametrize("operation", ["get", "exists", "children", "watch", "lock"])
def test_what_leaves_nothing_behind_is_bounded_by_its_time(operation: str) -> None:
    assert PLAN.limit(Cell(operation, 4, 100)) is None


def test_the_defaults_are_not_too_much() -> None:
    assert PLAN.problem() is None


@pytest.mark.parametrize(
    ("clients", "window", "size", "named"),
    [
        (100, 101, 1, "10100 requests at once"),
        (100, 100, 10_000, "give a smaller --window"),
        (2, 50, 700_000, "70000000 bytes"),
    ],
)
def test_too_much_at_once_is_refused(clients: int, window: int, size: int, named: str) -> None:
    plan = dataclasses.replace(PLAN, clients=clients, window=window, size=size)
    problem = plan.problem()
    assert problem is not None
    assert named in problem
