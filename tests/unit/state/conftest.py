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
