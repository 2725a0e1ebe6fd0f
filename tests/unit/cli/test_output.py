"""Sizes and durations, as they are written."""

import pytest

from paddock.cli.output import duration_text, size_text


@pytest.mark.parametrize(
    ("size", "text"),
    [(0, "0 B"), (1023, "1023 B"), (1536, "1.5 kB"), (2**20, "1.0 MB"), (2**43, "8192.0 GB")],
)
def test_a_size_is_written(size: int, text: str) -> None:
    assert size_text(size) == text


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0s"), (59.9, "59s"), (61, "1m 1s"), (3600, "1h"), (90_061, "1d 1h"), (3601, "1h 1s")],
)
def test_a_duration_is_written(seconds: float, text: str) -> None:
    assert duration_text(seconds) == text
