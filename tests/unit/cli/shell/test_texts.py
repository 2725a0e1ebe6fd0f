"""What the shell says: numbers that are none, paths that are none, errors, bytes, limits."""

import time

import pytest

from paddock.cli.shell.administration import for_clients
from paddock.cli.shell.parsing import as_int, as_long, decoded_int, version_of
from paddock.cli.shell.quotas import Track
from paddock.cli.shell.texts import (
    CommandError,
    acl_lines,
    check_path,
    hex_lines,
    line_about,
    permissions_of,
    stat_lines,
)
from paddock.errors import (
    ConnectionLostError,
    InvalidArgumentError,
    NoNodeError,
    NoWatcherError,
    PaddockError,
    ReconfigInProgressError,
    UnknownCodeError,
)
from paddock.protocol.acl import ACL, Identity
from paddock.protocol.records import Stat


def test_numbers_have_javas_bounds() -> None:
    assert as_int("2147483647") == 2147483647
    assert as_int("2147483648") is None
    assert as_int("-2147483648") == -2147483648
    assert as_long("9223372036854775807") == 9223372036854775807
    assert as_long("9223372036854775808") is None
    assert as_long("1f", 16) == 31
    assert [as_int(text) for text in ("", "+", "1 ", "1_0", "٣", "x")] == [None] * 6
    assert as_int("+5") == 5
    # More digits than Python reads.
    assert as_int("9" * 5000) is None
    assert as_long("-" + "9" * 5000) is None


@pytest.mark.parametrize(
    ("text", "number"),
    [("7", 7), ("0", 0), ("010", 8), ("0x10", 16), ("0X10", 16), ("#10", 16), ("-0x1", -1)],
)
def test_a_number_of_the_history_may_have_a_base(text: str, number: int) -> None:
    assert decoded_int(text) == number


@pytest.mark.parametrize("text", ["", "x", "09", "0x", "ff", "--1", "99999999999"])
def test_what_is_no_number_is_one_line(text: str) -> None:
    with pytest.raises(CommandError, match=r"^For input string: "):
        decoded_int(text)


def test_a_version_below_any_is_one_that_no_node_has() -> None:
    assert version_of(None) == version_of("-1") == -1
    assert version_of("-7") == 2**31 - 1
    with pytest.raises(CommandError, match=r'^For input string: "x"$'):
        version_of("x")


@pytest.mark.parametrize("path", ["/", "/a", "/a/b.c", "/a/..b", "/a/...", "/ü", "/a b"])
def test_a_path_is_let_through(path: str) -> None:
    check_path(path)


@pytest.mark.parametrize(
    ("path", "says"),
    [
        ("", "Path length must be > 0"),
        ("a", "Path must start with / character"),
        ("/a/", "Path must not end with / character"),
        ("//", "Path must not end with / character"),
        ("/a//b", 'Invalid path string "/a//b" caused by empty node name specified @3'),
        ("/./a", 'Invalid path string "/./a" caused by relative paths not allowed @1'),
        ("/a/..", 'Invalid path string "/a/.." caused by relative paths not allowed @4'),
        ("/a\0", 'Invalid path string "/a\0" caused by null character not allowed @2'),
        ("/a\x1f", 'Invalid path string "/a\x1f" caused by invalid character @2'),
        ("/\ufff0", 'Invalid path string "/\ufff0" caused by invalid character @1'),
        ("/\U0001f600", 'Invalid path string "/\U0001f600" caused by invalid character @1'),
    ],
)
def test_what_is_no_path_is_refused_in_upstreams_words(path: str, says: str) -> None:
    with pytest.raises(CommandError) as refusal:
        check_path(path)
    assert str(refusal.value) == says


def test_a_sequential_node_may_be_named_by_its_number_alone() -> None:
    check_path("/a/", sequential=True)
    check_path("/", sequential=True)


@pytest.mark.parametrize(
    ("error", "says"),
    [
        (NoNodeError("get", "/a"), "Node does not exist: /a"),
        (NoWatcherError("removeWatches", "/a"), "KeeperErrorCode = No such watcher for /a"),
        (ConnectionLostError("connect"), "KeeperErrorCode = ConnectionLoss"),
        (UnknownCodeError(-999, "get", "/a"), "KeeperErrorCode = Unknown error -999 for /a"),
        (
            ReconfigInProgressError("reconfig"),
            "Another reconfiguration is in progress -- concurrent reconfigs not supported (yet)",
        ),
        (InvalidArgumentError("path: is\nnone"), "path: is none"),
    ],
)
def test_an_error_is_one_line_in_upstreams_words(error: PaddockError, says: str) -> None:
    assert line_about(error) == says


def test_bytes_are_shown_as_upstream_shows_them() -> None:
    # Upstream's own example.
    data = b"Hello,\nZoo\x01Keep!"
    assert "\n".join(hex_lines(data + b"\xff")) == (
        "         +-------------------------------------------------+\n"
        "         |  0  1  2  3  4  5  6  7  8  9  a  b  c  d  e  f |\n"
        "+--------+-------------------------------------------------+----------------+\n"
        "|00000000| 48 65 6c 6c 6f 2c 0a 5a 6f 6f 01 4b 65 65 70 21 |Hello,.Zoo.Keep!|\n"
        "|00000010| ff                                              |.               |\n"
        "+--------+-------------------------------------------------+----------------+"
    )
    assert list(hex_lines(b"")) == []


def test_a_stat_has_upstreams_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    assert list(stat_lines(Stat(1, 2, 0, 1_000, 3, 4, 5, -1, 6, 7, 8))) == [
        "cZxid = 0x1",
        "ctime = Thu Jan 01 00:00:00 UTC 1970",
        "mZxid = 0x2",
        "mtime = Thu Jan 01 00:00:01 UTC 1970",
        "pZxid = 0x8",
        "cversion = 4",
        "dataVersion = 3",
        "aclVersion = 5",
        "ephemeralOwner = 0xffffffffffffffff",
        "dataLength = 6",
        "numChildren = 7",
    ]


def test_an_acl_is_shown_with_what_would_break_it_escaped() -> None:
    acl = [ACL(31, Identity("x509", "CN=a,O=b"))]
    assert list(acl_lines(acl)) == ["'x509,'CN=a%2CO=b", ": cdrwa"]
    assert permissions_of("rrxw") == (3, ["x"])


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (b"", "count=-1,bytes=-1"),
        (b"count=3,bytes=5", "count=3,bytes=5"),
        (b"count=3,bytes=5=;byteHardLimit=7", "count=3,bytes=5=;byteHardLimit=7"),
        (b"bytes=5,count=", "count=-1,bytes=5"),
    ],
)
def test_limits_are_read_and_written_as_upstream_does(data: bytes, text: str) -> None:
    assert str(Track.read(data)) == text


def test_limits_that_are_no_numbers_are_one_line() -> None:
    with pytest.raises(CommandError, match=r'^For input string: "x"$'):
        Track.read(b"count=x")


def test_clients_are_told_where_the_servers_are_by_their_numbers() -> None:
    text = (
        "server.10=c:1:2:participant;[::1]:2183\n"
        "server.2=b:1:2:observer;0.0.0.0:2182\n"
        "server.1=a:1:2;2181\n"
        "server.3=d:1:2:participant\n"
        "version=100000000"
    )
    assert for_clients(text) == "100000000 0.0.0.0:2181,0.0.0.0:2182,,::1:2183"
    assert for_clients("") == " "
