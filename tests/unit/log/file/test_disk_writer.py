"""The thread that writes and syncs without the GIL."""

from __future__ import annotations

import errno
import os
import resource
import select
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.disk_writers import new_disk_writer

if TYPE_CHECKING:
    from paddock.log.file.disk_writer import DiskWriter


@pytest.fixture
def writer() -> Iterator[DiskWriter]:
    writer = new_disk_writer()
    yield writer
    writer.close()


@pytest.fixture
def file(tmp_path: Path) -> Iterator[int]:
    file = os.open(tmp_path / "file", os.O_RDWR | os.O_CREAT)
    yield file
    os.close(file)


def is_readable(writer: DiskWriter, timeout_ms: int = 0) -> bool:
    poller = select.poll()
    poller.register(writer.fileno(), select.POLLIN)
    return bool(poller.poll(timeout_ms))


def test_pieces_are_written_behind_each_other(writer: DiskWriter, file: int) -> None:
    begun = time.monotonic()
    writer.write(file, 3, [b"one", b"", b"two" * 5000, b"\x00three", b""])
    writer.wait()
    late = writer.take()
    assert late is not None
    assert 0 <= late <= time.monotonic() - begun
    assert os.pread(file, 20_000, 0) == b"\0\0\0one" + b"two" * 5000 + b"\x00three"


def test_nothing_but_empty_pieces_is_written_too(writer: DiskWriter, file: int) -> None:
    writer.write(file, 0, [b"", b""])
    writer.wait()
    assert writer.take() is not None
    assert os.fstat(file).st_size == 0


def test_the_end_of_each_write_can_be_waited_for(writer: DiskWriter, file: int) -> None:
    for number in range(100):
        assert not is_readable(writer)
        assert writer.take() is None
        writer.write(file, number, [b"x"])
        assert is_readable(writer, 60_000)
        assert writer.take() is not None
    assert os.pread(file, 200, 0) == b"x" * 100


def test_waiting_for_no_write_ends_at_once(writer: DiskWriter) -> None:
    writer.wait()
    assert writer.take() is None


def test_only_one_write_is_under_way(writer: DiskWriter, file: int) -> None:
    writer.write(file, 0, [b"first"])
    with pytest.raises(RuntimeError, match="a write is under way"):
        writer.write(file, 0, [b"other"])
    writer.wait()
    # It was not taken yet.
    with pytest.raises(RuntimeError, match="a write is under way"):
        writer.write(file, 0, [b"other"])
    assert writer.take() is not None
    assert os.pread(file, 10, 0) == b"first"


@pytest.mark.parametrize(
    ("pieces", "error"),
    [
        ([], ValueError),
        ([b"x"] * 9, ValueError),
        ([b"x", "text"], TypeError),
        ([b"x", bytearray(b"x")], TypeError),
        ((b"x",), TypeError),
        (None, TypeError),
    ],
)
def test_what_is_no_list_of_pieces_is_refused(
    writer: DiskWriter, file: int, pieces: list[bytes], error: type[Exception]
) -> None:
    with pytest.raises(error):
        writer.write(file, 0, pieces)
    assert writer.take() is None
    writer.write(file, 0, [b"right"])
    writer.wait()
    assert writer.take() is not None


def test_pieces_are_kept_until_the_write_is_taken(writer: DiskWriter, file: int) -> None:
    piece = bytes(range(256)) * 3
    held = sys.getrefcount(piece)
    writer.write(file, 0, [piece, piece])
    assert sys.getrefcount(piece) == held + 2
    writer.wait()
    assert sys.getrefcount(piece) == held + 2
    writer.take()
    assert sys.getrefcount(piece) == held


def test_refused_pieces_are_not_kept(writer: DiskWriter, file: int) -> None:
    piece = bytes(range(256)) * 3
    held = sys.getrefcount(piece)
    refused: list[bytes] = [piece, None]  # type: ignore[list-item]
    with pytest.raises(TypeError):
        writer.write(file, 0, refused)
    assert sys.getrefcount(piece) == held + 1
    del refused
    assert sys.getrefcount(piece) == held


@pytest.mark.parametrize(
    ("path", "number"),
    # A full disk, and what can be written to and not be synced.
    [("/dev/full", errno.ENOSPC), ("/dev/null", errno.EINVAL)],
)
def test_a_failed_write_is_told_with_its_reason(
    writer: DiskWriter, file: int, path: str, number: int
) -> None:
    bad = os.open(path, os.O_WRONLY)
    try:
        writer.write(bad, 0, [b"x"])
        assert is_readable(writer, 60_000)
        with pytest.raises(OSError, match=os.strerror(number)) as caught:
            writer.take()
        assert caught.value.errno == number
        assert not is_readable(writer)
        assert writer.take() is None
    finally:
        os.close(bad)
    writer.write(file, 0, [b"next"])
    writer.wait()
    assert writer.take() is not None


def test_what_the_system_takes_in_parts_goes_on_where_it_stopped(
    writer: DiskWriter, file: int
) -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    before = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    # It takes ten bytes, and none of the rest.
    resource.setrlimit(resource.RLIMIT_FSIZE, (10, hard))
    try:
        writer.write(file, 0, [b"abcd", b"efgh", b"ijkl"])
        writer.wait()
        with pytest.raises(OSError, match="too large") as caught:
            writer.take()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
        signal.signal(signal.SIGXFSZ, before)
    assert caught.value.errno == errno.EFBIG
    assert os.pread(file, 20, 0) == b"abcdefghij"


def test_what_the_system_takes_in_parts_is_written_to_its_end(file: int) -> None:
    """Each call takes a few bytes of the first piece that has any."""
    writer = new_disk_writer(
        """
        static ssize_t take_few(int file, const struct iovec *parts, int count, off_t offset) {
          struct iovec few = parts[0];
          if (few.iov_len > 7) few.iov_len = 7;
          return pwritev(file, &few, count > 0, offset);
        }
        #define pwritev take_few
        """
    )
    writer.write(file, 2, [b"", b"a" * 20, b"b", b"", b"c" * 7, b"d" * 15])
    writer.wait()
    assert writer.take() is not None
    writer.close()
    assert os.pread(file, 100, 0) == b"\0\0" + b"a" * 20 + b"b" + b"c" * 7 + b"d" * 15


def test_calls_that_signals_interrupt_are_made_again(file: int) -> None:
    writer = new_disk_writer(
        """
        static int is_second(void) { static int calls; return calls++ % 2; }
        #define pwritev(...) (is_second() ? pwritev(__VA_ARGS__) : (errno = EINTR, -1))
        #define fdatasync(file) (is_second() ? fdatasync(file) : (errno = EINTR, -1))
        """
    )
    writer.write(file, 0, [b"abc"])
    writer.wait()
    assert writer.take() is not None
    writer.close()
    assert os.pread(file, 100, 0) == b"abc"


def test_closing_waits_for_the_write_under_way(file: int) -> None:
    writer = new_disk_writer()
    writer.write(file, 0, [b"x" * 5_000_000])
    writer.close()
    assert os.fstat(file).st_size == 5_000_000
    writer.close()
    for method in (writer.fileno, writer.wait, writer.take):
        with pytest.raises(ValueError, match="closed"):
            method()
    with pytest.raises(ValueError, match="closed"):
        writer.write(file, 0, [b"x"])


def test_one_that_is_dropped_leaves_nothing_behind(file: int) -> None:
    threads, files = len(os.listdir("/proc/self/task")), len(os.listdir("/proc/self/fd"))
    writers = [new_disk_writer() for _ in range(3)]
    for writer in writers:
        writer.write(file, 0, [b"x" * 100_000])
    assert len(os.listdir("/proc/self/task")) == threads + 3
    del writer, writers
    # The system may take a moment to forget a thread that was joined.
    deadline = time.monotonic() + 30
    while len(os.listdir("/proc/self/task")) > threads and time.monotonic() < deadline:
        time.sleep(0.001)
    assert len(os.listdir("/proc/self/task")) == threads
    assert len(os.listdir("/proc/self/fd")) == files


def test_its_thread_takes_no_signals(writer: DiskWriter) -> None:
    tasks = {int(name) for name in os.listdir("/proc/self/task")}
    ours = {thread.native_id for thread in threading.enumerate()}
    blocked = []
    for task in tasks - ours:
        status = Path(f"/proc/self/task/{task}/status").read_text()
        if "paddock-disk" in status:
            blocked += [line for line in status.splitlines() if line.startswith("SigBlk:")]
    assert blocked
    assert all(int(line.split()[1], 16) >> (signal.SIGTERM - 1) & 1 for line in blocked)


def test_a_forked_child_cannot_use_it(writer: DiskWriter, file: int) -> None:
    writer.write(file, 0, [b"x"])
    child = os.fork()
    if not child:
        status = 1
        try:
            writer.take()
        except ValueError:
            status = 0
        finally:
            writer.close()
            os._exit(status)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
    writer.wait()
    assert writer.take() is not None
