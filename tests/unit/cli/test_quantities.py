"""Sizes and ages, as they are written and read."""

import click
import pytest

from paddock.cli.quantities import (
    NumberRange,
    WholeNumber,
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
    with pytest.raises(click.BadParameter, match="'nan' is not a number"):
        NumberRange(min=0).convert("nan", None, None)


@pytest.mark.parametrize(
    ("wanted", "given", "says"),
    [
        (NumberRange(), "x", "'x' is not a number"),
        (NumberRange(min=0), "-1", "'-1' is not a number, 0 or more"),
        (NumberRange(min=0, min_open=True), "0", "'0' is not a number above 0"),
        (NumberRange(min=0.5, max=60), "61", "'61' is not a number from 0.5 to 60"),
        (WholeNumber(min=1), "1.5", "'1.5' is not a whole number, 1 or more"),
        (WholeNumber(-1, 9), "10", "'10' is not a whole number from -1 to 9"),
    ],
)
def test_of_a_number_that_will_not_do_it_is_said_which_would(
    wanted: NumberRange | WholeNumber, given: str, says: str
) -> None:
    with pytest.raises(click.BadParameter) as caught:
        wanted.convert(given, None, None)
    assert caught.value.message == says
