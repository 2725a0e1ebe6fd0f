"""Numbers, sizes and ages, as they are read."""

import click
import pytest

from paddock.cli.arguments import NumberRange, WholeNumber, parse_age, parse_size


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
