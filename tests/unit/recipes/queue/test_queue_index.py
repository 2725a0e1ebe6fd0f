"""The names of a queue's items, and their order."""

from __future__ import annotations

from paddock.recipes.queue.queue_index import draw, in_order, new_name

ID = "0123456789abcdef" * 2


def test_a_name_says_everything_and_keeps_the_zeros_of_its_number() -> None:
    name = new_name(5, ID, 0) + "0000000007"
    assert in_order([name]) == [(name, ID, 5, 0, 7)]
    delayed = new_name(-5, ID, 1_700_000_000_000) + "0000000012"
    assert in_order([delayed]) == [(delayed, ID, -5, 1_700_000_000_000, 12)]


def test_priorities_and_numbers_are_compared_as_numbers() -> None:
    names = [
        new_name(priority, ID, 0) + number
        for priority, number in (
            (-20, "0000000009"),
            (-3, "0000000008"),
            (9, "0000000007"),
            (10, "0000000005"),
            (10, "0000000006"),
            (100, "0000000001"),
        )
    ]
    assert [entry.name for entry in in_order(sorted(names, reverse=True))] == names


def test_after_the_largest_number_comes_the_least() -> None:
    names = [new_name(1, ID, 0) + number for number in ("2147483647", "-2147483648", "-2147483647")]
    assert [entry.name for entry in in_order(reversed(names))] == names


def test_names_of_others_are_ignored() -> None:
    strangers = ["item-", "element0000000001", f"item-1-{ID}-12", f"item-1-{ID}-due-0000000001"]
    assert in_order(strangers) == []


def test_what_is_drawn_by_lot_is_as_urgent_as_the_first() -> None:
    entries = in_order(
        new_name(priority, ID, 0) + f"{number:010d}"
        for number, priority in enumerate((5, 5, 5, 6, 6))
    )
    assert [draw(entries, lot) for lot in (0.0, 0.33, 0.34, 0.67, 0.999)] == [0, 0, 1, 2, 2]
    assert draw(entries[3:4], 0.999) == 0
