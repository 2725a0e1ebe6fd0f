"""Words about asyncio code, as words about blocking code."""

from __future__ import annotations

import pytest

from tools.blocking.words import adapted, left_of_asyncio


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (
            "    async with lock:\n        await client.sync()",
            "    with lock:\n        client.sync()",
        ),
        ("If it is cancelled, it ends.", "If it is given up, it ends."),
        ("The scope cancels its\nbody then.", "The scope tells its body when that leaves then."),
        (
            "It must not block. What it raises goes to the event\nloop's exception handler.",
            "It may make calls. What it raises is logged.",
        ),
    ],
)
def test_words_are_replaced_also_over_the_end_of_a_line(said: str, expected: str) -> None:
    assert adapted(said, 80) == expected


def test_a_paragraph_that_has_become_too_wide_is_filled_again_and_no_other() -> None:
    before = "Short lines\nstay."
    told = "If the grant is lost, its body\nis cancelled, and nobody else is."
    filled = "If the grant is lost, its body hears of\nit when it leaves, and nobody else is."
    assert adapted(f"{before}\n\n{told}", 40) == f"{before}\n\n{filled}"


def test_what_is_left_of_asyncio_is_found() -> None:
    assert left_of_asyncio("on the event loop, asynchronously") == "event loop"
    assert left_of_asyncio("nothing, not even an asynchronous word") is None
