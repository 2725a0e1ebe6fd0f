"""What a service manager is sent: real datagrams, to a socket that stands in for systemd's."""

import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from paddock.cli.lifetime import Notifier


@contextmanager
def manager(address: str) -> Iterator[socket.socket]:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as listener:
        listener.settimeout(20)
        listener.bind(address)
        yield listener


def test_each_piece_of_news_is_one_datagram_of_lines(tmp_path: Path) -> None:
    with manager(f"{tmp_path}/socket") as listener:
        notifier = Notifier({"NOTIFY_SOCKET": f"{tmp_path}/socket"})
        notifier.send("STATUS=Loading")
        notifier.send("READY=1", "STATUS=Serving")
        notifier.send("WATCHDOG=1")
        notifier.send("STOPPING=1", "STATUS=Stopping")
        received = [listener.recv(1000) for _ in range(4)]
    assert received == [
        b"STATUS=Loading",
        b"READY=1\nSTATUS=Serving",
        b"WATCHDOG=1",
        b"STOPPING=1\nSTATUS=Stopping",
    ]


def test_a_socket_without_a_file_is_found() -> None:
    name = f"paddock-test-{os.getpid()}"
    with manager(f"\0{name}") as listener:
        Notifier({"NOTIFY_SOCKET": f"@{name}"}).send("WATCHDOG=1")
        assert listener.recv(1000) == b"WATCHDOG=1"


@pytest.mark.parametrize("address", ["", "/nowhere/socket", "relative", "vsock:2:1234", "@gone"])
def test_without_a_manager_nothing_happens(address: str) -> None:
    Notifier({"NOTIFY_SOCKET": address}).send("READY=1", "STATUS=Serving")
    Notifier({}).send("READY=1", "STATUS=Serving")


def test_a_manager_that_does_not_read_does_not_hold_us_up(tmp_path: Path) -> None:
    with manager(f"{tmp_path}/socket"):
        notifier = Notifier({"NOTIFY_SOCKET": f"{tmp_path}/socket"})
        for _ in range(2000):
            notifier.send("WATCHDOG=1")


@pytest.mark.parametrize(
    ("environment", "interval"),
    [
        ({"WATCHDOG_USEC": "30000000"}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": str(os.getpid())}, 15.0),
        ({"WATCHDOG_USEC": "30000000", "WATCHDOG_PID": "1"}, None),
        ({"WATCHDOG_USEC": "0"}, None),
        ({"WATCHDOG_USEC": "soon"}, None),
        ({}, None),
    ],
)
def test_signs_of_life_are_wanted_twice_in_the_time_given(
    environment: dict[str, str], interval: float | None
) -> None:
    assert Notifier(environment).watchdog_interval == interval
