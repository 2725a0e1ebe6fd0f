"""What the tests of the blocking side begin with: a loop on a thread of its own."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from paddock.sync.portal import Portal, open_portal


@pytest.fixture
def portal() -> Iterator[Portal]:
    holder = object()
    portal = open_portal(holder)
    yield portal
    portal.release(holder)
    assert not portal._thread.is_alive()
