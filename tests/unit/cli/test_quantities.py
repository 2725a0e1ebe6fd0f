"""Sizes and ages, as they are written and read."""

import click
import pytest

from paddock.cli.quantities import (
    NumberRange,
    duration_text,
    parse_age,
    parse_size,
    size_text,
)


@pytest.mark.parametrize(
    ("text", "size"), [("0", 0), ("512", 512), ("10k", 10_240), ("1.5M", 1_572_864), ("2 g", 2**31)]
)
def test_a_size_is_read(text: str, size: int) -> None:
    assert parse_size(text) == size


@pytest.mark.parametrize(
    ("text", "age"), [("30", 30), ("30s", 30), ("1.5m", 90), ("12h", 43_200), ("2d", 172_800)]
)
def test_an_age_is_read(text: str, age: float) -> None:
    assert parse_age(text) == age


@pytest.mark.parametrize("text", ["", "k", "-1", "1y", "1e9", "1kk", "nan", "9" * 99])
def test_what_is_none_is_refused(text: str) -> None:
    with pytest.raises(click.BadParameter, match="is no size"):
        parse_size(text)
    with pytest.raises(click.BadParameter, match="is no age"):
        parse_age(text)


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


def test_a_number_has_to_be_one_that_bounds_say_something_about() -> None:
    assert NumberRange(min=0).convert("1.5", None, None) == 1.5
    with pytest.raises(click.BadParameter, match="'nan' is no number"):
        NumberRange(min=0).convert("nan", None, None)
