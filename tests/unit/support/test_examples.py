"""How examples of the documentation are run."""

from __future__ import annotations

import asyncio

import pytest

from tests.support.examples import run_example


def run(text: str) -> None:
    asyncio.run(run_example(text, {"asyncio": asyncio}))


def test_what_is_printed_is_what_the_comment_says() -> None:
    run("for number in 1, 2:\n    print(number, number)  # 1 1, then 2 2")
    run("await asyncio.sleep(0)\nprint(object())  # <object ...>\nprint(3)")


@pytest.mark.parametrize("text", ["print(2)  # 1", "if False:\n    print(1)  # 1"])
def test_a_promise_that_is_not_kept_is_found(text: str) -> None:
    with pytest.raises(AssertionError, match="instead of '1'"):
        run(text)


def test_an_example_that_awaits_nothing_may_run_a_loop_of_its_own() -> None:
    run("asyncio.run(asyncio.sleep(0))")
