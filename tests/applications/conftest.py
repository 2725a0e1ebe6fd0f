"""A Paddock for each module, with the limits that it has by default."""

from collections.abc import Iterator

import pytest

from tests.support.paddock_server import PaddockServer
from tests.support.server import Options

OPTIONS = Options(tick_ms=2000, min_session_timeout_ms=4000, max_session_timeout_ms=40_000)


@pytest.fixture(scope="module")
def paddock() -> Iterator[PaddockServer]:
    with PaddockServer(OPTIONS) as running:
        yield running
