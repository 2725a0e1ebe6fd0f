"""What the tests of recipes run on: Paddock, an Apache ZooKeeper, and three of each.

On Paddock all of them run, with both APIs. Those marked `everywhere` show their recipe once on
Apache ZooKeeper, in every run and with asyncio; of these, the modules in `IN_EVERY_RUN` do on three
servers as well. The rest of the matrix is for `make test-all`.
"""

from __future__ import annotations

from typing import Final

import pytest

from tests.support.apis import api
from tests.support.paddock_cluster import PaddockCluster
from tests.support.server import Service

__all__ = ["api"]

#: By the name of the service.
IN_EVERY_RUN: Final = {
    "ensemble": frozenset({"test_lock"}),
    "cluster": frozenset({"test_lock", "test_cache", "test_counter"}),
}


@pytest.fixture(
    params=[
        "paddock",
        pytest.param("apache", marks=pytest.mark.judge),
        pytest.param("ensemble", marks=pytest.mark.judge),
        pytest.param("cluster", marks=pytest.mark.judge),
    ]
)
def service(request: pytest.FixtureRequest) -> Service:
    """The service under test."""
    found: Service = request.getfixturevalue(f"shared_{request.param}")
    # Tests read at once what another of their clients wrote: all of them are on one of our servers.
    # tests/fault/test_recipes_on_ensemble.py has them on all three.
    return found.followers()[0] if isinstance(found, PaddockCluster) else found


@pytest.fixture
def path(request: pytest.FixtureRequest) -> str:
    """The path of a node that this test alone uses."""
    return "/" + "".join(one if one.isalnum() else "-" for one in request.node.name)


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is not for every run before anything is chosen by its marks."""
    for item in items:
        if not isinstance(item, pytest.Function) or "callspec" not in vars(item):
            continue
        package, _, module = item.module.__name__.rpartition(".")
        if package != "tests.integration.recipes":
            continue
        chosen = item.callspec.params
        where, api = chosen.get("service", "paddock"), chosen.get("api", "asyncio")
        is_shown = item.get_closest_marker("everywhere") is not None and api == "asyncio"
        if where == "apache" and not is_shown:
            item.add_marker(pytest.mark.long)
        if where in IN_EVERY_RUN and not (is_shown and module in IN_EVERY_RUN[where]):
            item.add_marker(pytest.mark.long)
