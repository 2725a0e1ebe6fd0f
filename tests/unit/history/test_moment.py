"""Moments, as people write them."""

from datetime import UTC, datetime, timedelta, timezone

import pytest

from paddock.history.moment import NOW, Moment, parse_moment, shown_time

HERE = timezone(timedelta(hours=2))
AT = datetime(2026, 11, 17, 9, 30, tzinfo=HERE)


def ms(*when: int, zone: timezone = HERE) -> int:
    return int(datetime(*when, tzinfo=zone).timestamp() * 1000)  # type: ignore[arg-type,misc]


@pytest.mark.parametrize(
    ("text", "zxid"), [("0x1a3", 0x1A3), ("0X1A3", 0x1A3), ("419", 419), ("0", 0), ("007", 7)]
)
def test_a_number_is_a_zxid(text: str, zxid: int) -> None:
    assert parse_moment(text, AT) == Moment(zxid=zxid)


@pytest.mark.parametrize(
    ("text", "time_ms"),
    [
        ("03:12", ms(2026, 11, 17, 3, 12)),
        ("3:12", ms(2026, 11, 17, 3, 12)),
        ("03:12:30", ms(2026, 11, 17, 3, 12, 30)),
        # Not today yet, so it was yesterday.
        ("23:59", ms(2026, 11, 16, 23, 59)),
        ("2026-11-17 03:12", ms(2026, 11, 17, 3, 12)),
        ("2026-11-17T03:12:05.5", ms(2026, 11, 17, 3, 12, 5) + 500),
        ("2026-11-17T03:12Z", ms(2026, 11, 17, 3, 12, zone=UTC)),
        ("2026-11-16", ms(2026, 11, 16)),
        ("90s", ms(2026, 11, 17, 9, 28, 30)),
        ("15m", ms(2026, 11, 17, 9, 15)),
        ("15m ago", ms(2026, 11, 17, 9, 15)),
        ("2h", ms(2026, 11, 17, 7, 30)),
        ("3d", ms(2026, 11, 14, 9, 30)),
        ("1w", ms(2026, 11, 10, 9, 30)),
    ],
)
def test_a_time_is_of_here_unless_it_says_where(text: str, time_ms: int) -> None:
    assert parse_moment(text, AT) == Moment(time_ms=time_ms)


@pytest.mark.parametrize(
    "text", ["", "yesterday", "25:00", "12:60", "-5m", "2026-13-01", "0x", "1.5h", "999999999w"]
)
def test_anything_else_is_named_with_what_would_do(text: str) -> None:
    with pytest.raises(ValueError, match=r"is neither a time, such as 03:12, .* nor a zxid"):
        parse_moment(text, AT)


def test_a_zxid_has_63_bits() -> None:
    with pytest.raises(ValueError, match="63 bits"):
        parse_moment("0xffffffffffffffff", AT)


def test_now_is_the_end() -> None:
    assert parse_moment("now", AT) == NOW
    assert not NOW.is_reached(10**18, 10**18)
    assert NOW.has(10**18, 10**18)


def test_a_zxid_is_reached_with_its_write_and_a_time_with_all_up_to_it() -> None:
    assert Moment(zxid=5).is_reached(5, 0)
    assert not Moment(zxid=5).is_reached(4, 10**15)
    assert Moment(time_ms=100).is_reached(0, 101)
    assert not Moment(time_ms=100).is_reached(10**15, 100)
    assert (Moment(zxid=5).has(5, 0), Moment(zxid=5).has(6, 0)) == (True, False)
    assert (Moment(time_ms=5).has(0, 5), Moment(time_ms=5).has(0, 6)) == (True, False)


def test_moments_are_shown_as_they_are_meant() -> None:
    assert str(Moment(zxid=419)) == "zxid 0x1a3"
    assert str(NOW) == "the end"
    here = datetime(2026, 11, 17, 3, 12).astimezone()
    assert str(Moment(time_ms=int(here.timestamp() * 1000))) == "2026-11-17 03:12:00.000"
    assert shown_time(10**18) == "1000000000000000000 ms"
