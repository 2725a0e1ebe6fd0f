"""What tests of faults share: a server to be killed."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from paddock.testing import ServerProcess


@pytest.fixture
def server(tmp_path: Path) -> Iterator[ServerProcess]:
    """One that grants short sessions, and keeps its data over a kill."""
    with ServerProcess(tmp_path / "data", ("--tick-time-ms", "200")) as running:
        yield running
