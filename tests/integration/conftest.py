"""Which tests of the client run on an ensemble in every run: those of the modules named here.

All others that ask for `server` (tests/integration/test_client.py) do in `make test-all`.
"""

from __future__ import annotations

from typing import Final

import pytest

#: Modules that run on it in `make test`.
ON_ENSEMBLE_IN_EVERY_RUN: Final = frozenset({"test_client", "test_client_streams"})


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the rest before anything is chosen by its marks."""
    for item in items:
        if not isinstance(item, pytest.Function) or "callspec" not in vars(item):
            continue
        package, _, module = item.module.__name__.rpartition(".")
        is_on_it = (
            package == "tests.integration"
            and module.startswith("test_client")
            and item.callspec.params.get("server") == "ensemble"
        )
        if is_on_it and module not in ON_ENSEMBLE_IN_EVERY_RUN:
            item.add_marker(pytest.mark.long)
