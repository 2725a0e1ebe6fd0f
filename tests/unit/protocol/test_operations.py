"""The table of operations: it is whole, and its rows agree with each other."""

from __future__ import annotations

from paddock.client.client import Client
from paddock.protocol import opcodes
from paddock.protocol.operations import BY_NUMBER, HEAVY, READS, TABLE, WRITES, name_of


def test_every_number_of_an_operation_has_one_row() -> None:
    numbers = [value for value in vars(opcodes).values() if isinstance(value, int)]
    assert sorted(numbers) == sorted([opcodes.ERROR, *(row.number for row in TABLE)])


def test_no_two_operations_have_the_same_name() -> None:
    assert len({row.name for row in TABLE}) == len(TABLE)
    assert name_of(opcodes.GET_DATA) == "get"
    assert name_of(987) == "987"


def test_only_reads_are_heavy() -> None:
    assert HEAVY < READS
    assert not READS & WRITES


def test_a_step_is_a_write_in_a_transaction_and_a_read_in_a_multi_read() -> None:
    for row in TABLE:
        if row.step_of:
            assert row.route == BY_NUMBER[row.step_of].route, row.name
            assert hasattr(row.request, "path"), row.name


def test_an_operation_on_a_node_takes_permissions_of_one_node() -> None:
    for row in TABLE:
        assert not (row.permission and row.parent_permission), row.name
        assert hasattr(row.request, "path") or not (row.permission | row.parent_permission)


def test_a_method_that_a_row_names_is_one_of_the_client() -> None:
    for row in TABLE:
        assert row.method is None or hasattr(Client, row.method), row.name
