"""What the tests of commands run on: Paddock, and an Apache ZooKeeper.

On Paddock all of them run. Those marked `everywhere` show a command on Apache ZooKeeper in every
run; the rest does there in `make test-all`.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddock.sync import Client, connect
from tests.support.server import Service


@pytest.fixture(params=["paddock", pytest.param("apache", marks=pytest.mark.judge)])
def service(request: pytest.FixtureRequest) -> Service:
    """The service under test."""
    found: Service = request.getfixturevalue(f"shared_{request.param}")
    return found


@pytest.fixture
def client(service: Service) -> Iterator[Client]:
    """A client of it, to prepare what a command is to find and to see what it has done."""
    with connect(service.hosts) as connected:
        yield connected


@pytest.fixture
def path(request: pytest.FixtureRequest, client: Client) -> Iterator[str]:
    """The path of a node that is there and that this test alone uses."""
    name = "".join(one if one.isalnum() else "-" for one in request.node.name)
    yield client.create(f"/{name}")
    client.delete_tree(f"/{name}")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what is not for every run before anything is chosen by its marks."""
    for item in items:
        if not isinstance(item, pytest.Function) or "callspec" not in vars(item):
            continue
        if item.module.__name__.rpartition(".")[0] != "tests.integration.commands":
            continue
        if (
            item.callspec.params.get("service") == "apache"
            and item.get_closest_marker("everywhere") is None
        ):
            item.add_marker(pytest.mark.long)
