"""The page of the mutations is that of what was found."""

from tests.mutants.page import PAGE, page
from tests.mutants.run import SEEDS_MAX, Found, read_found
from tests.mutants.table import BY_NAME


def test_the_page_is_that_of_what_was_found() -> None:
    assert PAGE.read_text() == page(read_found()), "python -m tests.mutants --page writes it"


def test_all_are_found() -> None:
    found = read_found()
    assert list(found) == list(BY_NAME)
    assert all(1 <= one.seed <= SEEDS_MAX for one in found.values())


def test_a_check_is_shown_in_one_cell() -> None:
    shown = page({"ephemerals-survive": Found(7, "replies: a 0x1f | b\n" + "x " * 100)})
    assert "| 7 | **replies**: a … \\| b x x " in shown
    assert "x …" in shown
    assert "0x1f" not in shown
