"""The lists of what runs on several servers name tests that exist."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conformance.on_ensemble import SERVICES, When

FOLDER = Path(__file__).parent
NAMED = {name for lists in SERVICES.values() for name in (*lists.in_every_run, *lists.left_out)}


@pytest.mark.parametrize("name", sorted(NAMED))
def test_what_is_named_exists(name: str) -> None:
    module, _, test = name.partition("::")
    text = (FOLDER / f"{module}.py").read_text()
    assert f"def {test}(" in text if test else "def test_" in text


@pytest.mark.parametrize("service", SERVICES)
def test_a_module_is_named_in_one_list_only(service: str) -> None:
    assert not SERVICES[service].in_every_run & SERVICES[service].left_out.keys()


def test_a_test_may_be_left_out_of_a_module_that_is_named() -> None:
    ensemble = SERVICES["ensemble"]
    assert ensemble.when("test_zxid", "test_sync_echoes_its_path") is When.EVERY_RUN
    assert ensemble.when("test_zxid", "test_a_lone_check_that_succeeds") is When.NEVER
    assert ensemble.when("test_acl", "test_anything") is When.LONG_RUNS
    assert ensemble.when("test_restart", "test_anything") is When.NEVER
