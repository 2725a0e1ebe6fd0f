"""Which tests of the client run where in every run: those of the modules named here.

On one Apache ZooKeeper all of them run, but with the blocking client only the operations; on three
of these some with asyncio, and the operations with both; on three Paddocks some with asyncio. All
others that ask for `server` (tests/integration/test_client.py) do in `make test-all`.
"""

from __future__ import annotations

from typing import Final

import pytest

#: What runs with which API; None stands for all modules.
IN_EVERY_RUN: Final[dict[tuple[str, str], frozenset[str] | None]] = {
    ("apache", "asyncio"): None,
    ("apache", "blocking"): frozenset({"test_client"}),
    ("ensemble", "asyncio"): frozenset({"test_client", "test_client_streams"}),
    ("ensemble", "blocking"): frozenset({"test_client"}),
    ("cluster", "asyncio"): frozenset({"test_client", "test_client_streams"}),
    ("cluster", "blocking"): frozenset(),
}


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the rest before anything is chosen by its marks."""
    for item in items:
        if not isinstance(item, pytest.Function) or "callspec" not in vars(item):
            continue
        package, _, module = item.module.__name__.rpartition(".")
        if package != "tests.integration" or not module.startswith("test_client"):
            continue
        chosen = item.callspec.params
        named = IN_EVERY_RUN.get((str(chosen.get("server")), str(chosen.get("api", "asyncio"))))
        if named is not None and module not in named:
            item.add_marker(pytest.mark.long)
