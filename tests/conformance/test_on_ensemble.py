"""The lists of what runs on an ensemble name tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.on_ensemble import IN_EVERY_RUN, LEFT_OUT, When, when

FOLDER = Path(__file__).parent


@pytest.mark.parametrize("name", sorted({*IN_EVERY_RUN, *LEFT_OUT}))
def test_what_is_named_exists(name: str) -> None:
    module, _, test = name.partition("::")
    text = (FOLDER / f"{module}.py").read_text()
    assert f"def {test}(" in text if test else "def test_" in text


def test_a_module_is_named_in_one_list_only() -> None:
    assert not IN_EVERY_RUN & LEFT_OUT.keys()


def test_a_test_may_be_left_out_of_a_module_that_is_named() -> None:
    assert when("test_zxid", "test_sync_echoes_its_path") is When.EVERY_RUN
    assert when("test_zxid", "test_a_lone_check_that_succeeds") is When.NEVER
    assert when("test_acl", "test_anything") is When.LONG_RUNS
    assert when("test_restart", "test_anything") is When.NEVER
