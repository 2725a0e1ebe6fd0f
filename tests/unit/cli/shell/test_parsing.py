"""Lines and flags: words, where flags may stand, and what is said of wrong ones."""

import pytest

from paddock.cli.shell.parsing import Flag, Flags, words
from paddock.cli.shell.texts import CommandError

FLAGS = Flags(
    (
        Flag("s", "stats"),
        Flag("w", "watch"),
        Flag("v", "version", takes_value=True),
        Flag("file", "path", takes_value=True),
    )
)
ONE_OF = Flags((Flag("n", "number", True), Flag("b", "bytes", True)), exclusive=True, required=True)


@pytest.mark.parametrize(
    ("line", "arguments", "flags"),
    [
        ("/a", ("/a",), {}),
        ("-s /a", ("/a",), {"s": None}),
        ("/a -s", ("/a",), {"s": None}),
        ("-sw /a", ("/a",), {"s": None, "w": None}),
        ("-v 3 /a", ("/a",), {"v": "3"}),
        ("-v3 /a", ("/a",), {"v": "3"}),
        ("-v=3 /a", ("/a",), {"v": "3"}),
        ("-sv3 /a", ("/a",), {"s": None, "v": "3"}),
        ("-v -1 /a", ("/a",), {"v": "-1"}),
        ("-v -x /a", ("/a",), {"v": "-x"}),
        ("-v 1 -v 2 /a", ("/a",), {"v": "1"}),
        ('-v "3" /a', ("/a",), {"v": "3"}),
        ("-file name /a", ("/a",), {"file": "name"}),
        ("-s -- -w /a", ("-w", "/a"), {"s": None}),
        ("- /a", ("-", "/a"), {}),
        ("-s -s /a", ("/a",), {"s": None}),
    ],
)
def test_flags_are_found_wherever_they_stand(
    line: str, arguments: tuple[str, ...], flags: dict[str, str | None]
) -> None:
    given = FLAGS.parse(line.split())
    assert given.arguments == arguments
    assert given.flags == flags


@pytest.mark.parametrize(
    ("flags", "line", "says"),
    [
        (FLAGS, "-x /a", "UnrecognizedOptionException: Unrecognized option: -x"),
        (FLAGS, "-sx /a", "UnrecognizedOptionException: Unrecognized option: -sx"),
        (FLAGS, "--s /a", "UnrecognizedOptionException: Unrecognized option: --s"),
        (FLAGS, "-s=1 /a", "UnrecognizedOptionException: Unrecognized option: -s=1"),
        (FLAGS, "-file=x", "UnrecognizedOptionException: Unrecognized option: -file=x"),
        (FLAGS, "-5", "UnrecognizedOptionException: Unrecognized option: -5"),
        (FLAGS, "/a -v", "MissingArgumentException: Missing argument for option: v"),
        (FLAGS, "-v -s /a", "MissingArgumentException: Missing argument for option: v"),
        (FLAGS, "-v --s /a", "UnrecognizedOptionException: Unrecognized option: --s"),
        (
            ONE_OF,
            "-n 1 -b 2 /a",
            (
                "AlreadySelectedException: The option 'b' was specified but an option from this"
                " group has already been selected: 'n'"
            ),
        ),
        (
            ONE_OF,
            "/a",
            "MissingOptionException: Missing required option: [-n number, -b bytes]",
        ),
    ],
)
def test_what_is_no_flag_is_refused_in_upstreams_words(flags: Flags, line: str, says: str) -> None:
    with pytest.raises(CommandError) as refusal:
        flags.parse(line.split())
    assert str(refusal.value) == f"org.apache.commons.cli.{says}"


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
