"""How the demo draws a tree: few lines, in the order of the line in which contenders stand."""

from paddock.cli.demo.tree import Branch, drawn

ONE = "0123456789abcdef0123456789abcdef"
OTHER = "fedcba98-7654-3210-fedc-ba9876543210"


def node(path: str, owner: int = 0) -> tuple[str, int]:
    return path, owner


def test_contenders_stand_in_the_order_of_their_numbers_whatever_their_marks() -> None:
    nodes = [
        node(f"/lock/_c_{ONE}-lock-0000000010", 7),
        node("/lock"),
        node(f"/lock/_c_{OTHER}-lock-0000000009", 8),
    ]
    assert list(drawn(dict(nodes))) == [
        Branch(0, "/lock", 0, 0),
        Branch(1, "…-lock-0000000009", 8, 0),
        Branch(1, "…-lock-0000000010", 7, 0),
    ]


def test_what_goes_with_no_session_is_counted_and_not_drawn() -> None:
    nodes = [
        node("/jobs"),
        node("/jobs/entries"),
        node("/jobs/entries/item-1"),
        node("/jobs/entries/item-1/attempts"),
        node("/jobs/entries/item-2"),
        node("/jobs/taken"),
        node(f"/jobs/taken/{ONE}", 7),
    ]
    assert list(drawn(dict(nodes))) == [
        Branch(0, "/jobs", 0, 0),
        Branch(1, "entries", 0, 2),
        Branch(1, "taken", 0, 0),
        Branch(2, "012345…", 7, 0),
    ]


def test_nothing_is_drawn_of_nothing() -> None:
    assert list(drawn({})) == []
