"""What a test does on a machine that lacks what it is judged by."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from typing import NoReturn

import pytest

from tests.support.server import ServerMissingError


def skip_or_fail(reason: str) -> NoReturn:
    """Skip what cannot be done on this machine; on CI that is a failure."""
    if os.environ.get("CI"):
        pytest.fail(reason)
    pytest.skip(reason)


@contextlib.contextmanager
def skipped_where_missing() -> Iterator[None]:
    """Skip what needs a server or a right that this machine lacks; on CI that is a failure."""
    try:
        yield
    except ServerMissingError as missing:
        skip_or_fail(str(missing))
