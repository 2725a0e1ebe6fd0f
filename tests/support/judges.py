"""Tests on a machine that lacks what they are judged by: they are skipped, and fail on CI."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

import pytest

from tests.support.server import ServerMissingError


@contextlib.contextmanager
def skipped_where_missing() -> Iterator[None]:
    """Skip what needs a server or a right that this machine lacks."""
    try:
        yield
    except ServerMissingError as missing:
        pytest.skip(str(missing))
