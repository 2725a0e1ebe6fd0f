"""What is written to the log: the form of a line, that none can be forged, how many there are."""

import gc
import io
import json
import logging
import re

import pytest

from paddock.server.admin.log_handler import BURST, INTERVAL, JSON, TEXT, LogHandler, escaped


class Clock:
    """Seconds, as the test wants them."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


class Said:
    """A logger that writes to a log handler, and what it has written."""

    def __init__(self, form: str) -> None:
        self.clock = Clock()
        self.stream = io.StringIO()
        self.log_handler = LogHandler(self.stream, form, self.clock)
        # One of its own, which ends with the test.
        self.logger = logging.Logger("paddock.test")  # noqa: LOG001
        self.logger.addHandler(self.log_handler)

    def lines(self) -> list[str]:
        """Take what was written."""
        text = self.stream.getvalue()
        self.stream.seek(0)
        self.stream.truncate()
        assert text == "" or text.endswith("\n")
        return text.splitlines()


@pytest.fixture
def said() -> Said:
    return Said(TEXT)


def test_a_line_of_text_has_time_level_logger_and_message(said: Said) -> None:
    said.logger.warning("session 0x%x is %s", 31, "lost", extra={"session": 31})
    (line,) = said.lines()
    assert re.fullmatch(
        r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d,\d{3} WARNING paddock\.test: session 0x1f is lost", line
    )


def test_a_line_of_json_has_the_same_and_the_fields_that_were_named() -> None:
    said = Said(JSON)
    said.logger.info(
        "session 0x%x is %s", 31, "lost", extra={"session": 31, "zxid": 255, "seconds": 1.1 + 2.2}
    )
    (line,) = said.lines()
    found = json.loads(line)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", found.pop("time"))
    assert found == {
        "level": "info",
        "logger": "paddock.test",
        "message": "session 0x1f is lost",
        "session": "0x1f",
        "zxid": "0xff",
        "seconds": 3.3,
    }


@pytest.mark.parametrize("form", [TEXT, JSON])
@pytest.mark.parametrize("end", ["\n", "\r", "\x0b", "\x1c", "\x85", "\u2028", "\r\n"])
def test_whatever_a_client_sends_is_one_line(form: str, end: str) -> None:
    said = Said(form)
    said.logger.warning("path %s", f"/a{end}2026-01-01 00:00:00,000 INFO paddock: forged")
    (line,) = said.lines()
    assert "forged" in line


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("/plain/päth 1", "/plain/päth 1"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\x1b[2J", "\\x1b[2J"),
        ("\u202egpj", "\\u202egpj"),
        ("\udcff", "\\udcff"),
    ],
)
def test_only_what_does_not_print_is_escaped(text: str, shown: str) -> None:
    assert escaped(text) == shown


def fail(said: Said) -> None:
    try:
        raise ValueError("first\n2026-01-01 00:00:00,000 INFO paddock: forged")
    except ValueError:
        said.logger.exception("it went wrong")


def test_an_exception_is_indented_in_text_and_so_forges_no_line(said: Said) -> None:
    fail(said)
    first, *rest = said.lines()
    assert first.endswith("it went wrong")
    assert any("ValueError: first" in line for line in rest)
    assert all(line.startswith("  ") for line in rest)


def test_an_exception_is_inside_the_one_line_of_json() -> None:
    said = Said(JSON)
    fail(said)
    (line,) = said.lines()
    assert "ValueError: first" in json.loads(line)["exception"]


def test_of_one_kind_a_burst_is_written_and_then_one_line_each_interval(said: Said) -> None:
    for number in range(BURST + 1234):
        said.logger.warning("refused %d", number)
    assert len(said.lines()) == BURST
    said.clock.now += INTERVAL
    said.logger.warning("refused %d", -1)
    said.logger.warning("refused %d", -2)
    (line,) = said.lines()
    assert line.endswith("refused -1 (and 1,234 more like it)")


def test_of_a_message_of_several_lines_the_first_one_is_its_kind(said: Said) -> None:
    for number in range(100):
        message = f"a callback failed\nhandle: <Handle {number}>"
        said.logger.error(message)
    assert len(said.lines()) == BURST


def test_other_kinds_are_written_all_the_same(said: Said) -> None:
    for number in range(BURST + 5):
        said.logger.warning("refused %d", number)
    said.lines()
    said.logger.warning("something else")
    assert len(said.lines()) == 1


def test_the_end_of_a_flood_is_told_with_its_last_line_and_once(said: Said) -> None:
    for number in range(BURST + 5):
        said.logger.warning("refused %d", number)
    said.lines()
    said.log_handler.flush_suppressed()
    assert said.lines() == []
    said.clock.now += INTERVAL
    said.log_handler.flush_suppressed()
    (line,) = said.lines()
    assert line.endswith(f"refused {BURST + 4} (and 4 more like it)")
    said.clock.now += INTERVAL
    said.log_handler.flush_suppressed()
    assert said.lines() == []


def test_at_the_end_everything_is_told(said: Said) -> None:
    for number in range(BURST + 1):
        said.logger.warning("refused %d", number)
    said.lines()
    said.log_handler.flush_suppressed(everything=True)
    (line,) = said.lines()
    assert line.endswith(f"refused {BURST}")


def test_a_quiet_time_gives_the_whole_burst_again_and_no_more(said: Said) -> None:
    for _ in range(2):
        for number in range(2 * BURST):
            said.logger.warning("refused %d", number)
        assert len(said.lines()) == BURST
        said.clock.now += 10 * BURST * INTERVAL


def test_how_many_were_left_out_is_a_field_of_json() -> None:
    said = Said(JSON)
    for number in range(BURST + 3):
        said.logger.warning("refused %d", number)
    said.lines()
    said.clock.now += INTERVAL
    said.logger.warning("refused %d", -1)
    (line,) = said.lines()
    assert json.loads(line)["suppressed"] == 3
    assert json.loads(line)["message"] == "refused -1"


def test_debug_is_written_in_full(said: Said) -> None:
    for number in range(10 * BURST):
        said.logger.debug("request %d", number)
    assert len(said.lines()) == 10 * BURST


def test_what_was_left_out_keeps_no_frames_alive(said: Said) -> None:
    class Witness:
        pass

    def lose() -> None:
        witness = Witness()
        try:
            raise ValueError(str(witness))
        except ValueError:
            said.logger.exception("it went wrong")

    for _ in range(BURST + 1):
        lose()
    gc.collect()
    assert not [one for one in gc.get_objects() if isinstance(one, Witness)]


def test_sentences_that_never_end_take_bounded_memory(said: Said) -> None:
    for number in range(5000):
        said.logger.warning(str(number))
    assert len(said.log_handler._messages) <= 1000
