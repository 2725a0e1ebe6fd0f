"""What most tests of the state begin with."""

from __future__ import annotations

import pytest

from tests.unit.state.driver import Connection, World


@pytest.fixture
def world() -> World:
    return World()


@pytest.fixture
def client(world: World) -> Connection:
    return world.open()


@pytest.fixture
def writer(world: World) -> Connection:
    return world.open()


@pytest.fixture
def watcher(world: World, writer: Connection) -> Connection:
    """Return another client, once there are `/a` and `/a/b` to watch."""
    writer.create(b"/a")
    writer.create(b"/a/b")
    return world.open()
