"""A line, taken apart into words; what upstream makes of each was asked of it."""

import pytest

from paddock.cli.shell.line import words


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("ls /", ["ls", "/"]),
        ("  ls\t /a  ", ["ls", "/a"]),
        ('set /a "two words"', ["set", "/a", "two words"]),
        ("set /a 'two words'", ["set", "/a", "two words"]),
        ("set /a 'say \"so\"'", ["set", "/a", 'say "so"']),
        ('set /a say"so" x', ["set", "/a", 'say"so"', "x"]),
        ('set /a ""', ["set", "/a", ""]),
        ('"ls" /', ["ls", "/"]),
        # No blank is needed behind a quote.
        ('set "/a"b', ["set", "/a", "b"]),
        # A quote that is not closed is passed over.
        ('set /a "not closed', ["set", "/a", "not", "closed"]),
        ('"', []),
        ("", []),
        # Of blanks alone the last one is a word.
        ("   ", [" "]),
    ],
)
def test_a_line_has_upstreams_words(line: str, expected: list[str]) -> None:
    assert words(line) == expected
