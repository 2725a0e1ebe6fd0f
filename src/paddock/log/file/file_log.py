"""The log on a disk: checksummed, preallocated, append-only segments, not written by the loop.

A thread takes a proposal, writes a record, syncs it and tells the listener, with one system call
for the write and one for the sync. With a `DiskWriter`, which is compiled, a record that there is
space for does not go to that thread: it is written without the GIL, and the event loop hears of the
end as of a socket.

A record does not hold the name of its proposal: this process knows its own. If the disk is full
while space is made, nothing of the record is written yet, so the proposal is refused, and the next
one tries again. After any other failed write or sync the outcome is unknown, and nothing is
accepted until `recover` has succeeded.

What was measured (ext4 on a virtual disk, two cores):

* Records a second, written and synced, of 200 / 5,000 / 50,000 bytes: appended 12.6k / 9.2k / 4.9k;
  into space reserved by posix_fallocate 18k / 10.3k / 7.8k; into written zeros 17k / 16.5k / 13.9k.
* Handing a batch to a waiting thread and back to an event loop: queue.SimpleQueue and a bare lock
  25 µs, threading.Condition 38 µs.
* Ten connections with one set in flight each: by a `DiskWriter` 1.13 to 1.34 times as many sets as
  by the Python thread, for 9 to 26 % less CPU.
* Records of 50,000 bytes a second, with the making of segments: 2.9k with segments of 1 MiB, 3.8k
  with 4, 4.4k with 8, 4.8k with 16, 4.7k with 64. The longest pause, while all of a segment was
  made at once, was 3, 8, 14, 27 and 103 ms. So it is 8 MiB, made in steps of 1 MiB: the slowest
  thousandth of the records then takes 4 ms, not 14. Steps of 512 KiB cost 3 % of small records.
* Making the next segment ahead, in another thread, does not pay: the syncs of the records then wait
  for its zeros. 4.46k against 4.54k a second, with pauses of 11 against 14 ms.
"""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from paddock.log.file.disk import Disk
from paddock.log.file.segment import PAYLOAD_BYTES_MAX
from paddock.log.file.segments import ActiveSegment, Growth, SegmentFolder
from paddock.log.interface import Listener, LogError, Record

if TYPE_CHECKING:
    from paddock.log.file.disk_writer import DiskWriter

SEGMENT_BYTES: Final = 8 << 20
STEP_BYTES: Final = 1 << 20

_NO_MEMORY: Final = "there is no memory for the log"
_NO_SPACE: Final = frozenset({errno.ENOSPC, errno.EDQUOT})


class FileLog:
    """A log in a folder that exists and that nobody else writes to.

    Opening it finds the last durable record and changes nothing; `start` cuts a torn tail. Raises
    LogCorruptError if the last segment is damaged (`records` judges those before it), and LogError
    if the disk refuses.
    """

    server: Final = b""
    in_flight_max: Final = 1
    is_shared: Final = False

    def __init__(
        self,
        folder: Path,
        *,
        segment_bytes: int = SEGMENT_BYTES,
        step_bytes: int = STEP_BYTES,
        disk: Disk | None = None,
        new_disk_writer: Callable[[], DiskWriter | None] | None = None,
    ) -> None:
        """Open a log. One with disk writers starts one, if it gets one, on an event loop."""
        self._path = folder
        growth = Growth(segment_bytes, step_bytes)
        self._folder = SegmentFolder(folder, growth, Disk() if disk is None else disk)
        # Invariant: holds at most one proposal, because `propose` asserts that none is under way.
        self._proposals: SimpleQueue[Record | None] = SimpleQueue()
        self._under_way = False
        # The proposal whose outcome is unknown.
        self._doubtful: Record | None = None
        self._listener: Listener | None = None
        self._writer: Thread | None = None
        self._new_disk_writer = new_disk_writer
        self._disk_writer: DiskWriter | None = None
        # What the disk writer has, and the loop that hears when it is done.
        self._written_apart: Record | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._closed = False
        # None when the next record needs a new segment in any case.
        self._active: ActiveSegment | None = None
        try:
            # The index of the last durable record, and what was found behind it.
            self.last_index = self._folder.open()
            self.torn = self._folder.torn
        except OSError as error:
            raise LogError(f"{folder}: the log cannot be opened: {error}") from error

    def start(self, listener: Listener, after: int = 0) -> None:
        """Tell the listener every record above `after`, then begin to accept proposals.

        What was read so far is durable when this returns. Raises what `records` raises, and
        LogError if the disk refuses. If the log ends before `after`, it goes on behind that
        snapshot, and `records` will not pass over the hole before it.
        """
        assert self._writer is None, "a log starts once"
        assert not self._closed
        for record in self.records(after):
            listener.committed(record)
        try:
            self._active = self._folder.settle()
        except OSError as error:
            raise LogError(f"{self._path}: the log cannot be opened: {error}") from error
        if after > self.last_index:
            self._leave_segment()
            self.last_index = after
        self._listener = listener
        if self._new_disk_writer is not None:
            self._disk_writer = self._new_disk_writer()
        if self._disk_writer is not None:
            self._loop = asyncio.get_running_loop()
            self._loop.add_reader(self._disk_writer.fileno(), self._take_written)
        self._writer = Thread(
            target=self._write_proposals, args=(listener,), name="paddock-log", daemon=True
        )
        self._writer.start()

    def propose(self, number: int, payload: bytes) -> None:
        """Hand a batch to the disk writer if there is space for it, or else to the thread."""
        assert self._writer is not None, "the log is not started"
        assert not self._closed
        assert not self._under_way, "a proposal is under way already"
        assert self._doubtful is None, "the last outcome is unknown: recover first"
        assert len(payload) <= PAYLOAD_BYTES_MAX
        self._under_way = True
        record = Record(self.last_index + 1, payload, self.server, number)
        active = self._active
        if self._disk_writer is not None and active is not None and active.has_space(payload):
            active.begin_append(self._disk_writer, record.index, payload)
            self._written_apart = record
        else:
            self._proposals.put(record)

    def records(self, after: int) -> Iterator[Record]:
        """Read the durable records with an index above `after`, in order.

        Raises LogCorruptError at the place of the first one that is damaged or missing.
        """
        return self._folder.records(after, self.last_index)

    def recover(self) -> None:
        """Find out, after an unknown outcome, what was written, and accept proposals again. Blocks.

        The kernel may show what it failed to write. So a record that can be read is written again,
        to a new segment; one that cannot is superseded by an empty segment, lest it come back.
        """
        assert self._doubtful is not None, "no outcome is unknown"
        assert self._listener is not None
        assert not self._under_way
        index = self.last_index + 1
        try:
            record = None if self._active is None else self._active.read_back(index)
            active = self._folder.create(index, record)
        except OSError as error:
            raise LogError(f"{self._path}: the log cannot be written: {error}") from error
        self._leave_segment()
        self._active = active
        doubtful, self._doubtful = self._doubtful, None
        if record is not None:
            self.last_index = index
            self._listener.committed(
                Record(index, record.payload, doubtful.server, doubtful.number)
            )

    def purge(self, below: int) -> None:
        """Remove the segments that only hold records with an index of at most `below`."""
        try:
            self._folder.purge(below)
        except OSError as error:
            raise LogError(f"{self._path}: old files cannot be removed: {error}") from error

    def leave_loop(self) -> None:
        """Have the loop hear nothing more; `close` may then be called in another thread."""
        # Of any type, since uvloop's `remove_reader` does not return what asyncio's does.
        loop: Any = self._loop
        self._loop = None
        if loop is not None and self._disk_writer is not None and not loop.is_closed():
            loop.remove_reader(self._disk_writer.fileno())

    def close(self) -> None:
        """Wait until the proposal in flight has been told of, then close the files."""
        if self._closed:
            return
        self._closed = True
        self.leave_loop()
        try:
            if self._disk_writer is not None:
                self._disk_writer.wait()
                self._take_written()
        finally:
            if self._disk_writer is not None:
                self._disk_writer.close()
            if self._writer is not None:
                self._proposals.put(None)
                self._writer.join()
            self._leave_segment()

    def _leave_segment(self) -> None:
        if self._active is not None:
            self._active.close()
            self._active = None

    def _take_written(self) -> None:
        """Tell what became of the record that the disk writer has, if it is done."""
        record, active, disk_writer = self._written_apart, self._active, self._disk_writer
        if record is None:
            return
        assert active is not None
        assert disk_writer is not None
        assert self._listener is not None
        failure = ""
        try:
            late = disk_writer.take()
            if late is None:
                return
            active.end_append(record.payload)
            record.late = late
        except OSError as error:
            failure = _not_written(error)
        except MemoryError:
            # The listener must hear of this proposal, and whether it was written is not known now.
            failure = _NO_MEMORY
        self._written_apart = None
        self._tell(self._listener, record, failure, is_doubtful=True)

    def _tell(self, listener: Listener, record: Record, failure: str, *, is_doubtful: bool) -> None:
        """Tell what became of the proposal under way; from then on there may be another one."""
        if not failure:
            self.last_index = record.index
        elif is_doubtful:
            self._doubtful = record
        self._under_way = False
        if not failure:
            listener.committed(record)
        elif is_doubtful:
            listener.unknown(failure)
        else:
            listener.refused(record.number, failure)

    # The writer's thread.

    def _write_proposals(self, listener: Listener) -> None:
        while (record := self._proposals.get()) is not None:
            try:
                failure, is_doubtful = self._append(record.index, record.payload)
            except MemoryError:
                # This thread must not end: the listener would never hear of this proposal.
                failure, is_doubtful = _NO_MEMORY, True
            self._tell(listener, record, failure, is_doubtful=is_doubtful)

    def _append(self, index: int, payload: bytes) -> tuple[str, bool]:
        """Make one record durable; return why it is not, if so, and whether that is in doubt."""
        try:
            if self._active is None or not self._active.has_room(payload):
                # From here on the old segment takes nothing, not even a smaller record that fits.
                # If making the new one fails half-way, it may be there after a crash all the same,
                # and would supersede what the old one got meanwhile.
                self._leave_segment()
                self._active = self._folder.create(index)
            self._active.make_space(payload)
        except OSError as error:
            if error.errno in _NO_SPACE:
                return f"no room for the log: {error.strerror}", False
            return f"space for the log cannot be made: {error}", True
        try:
            self._active.append(index, payload)
        except OSError as error:
            return _not_written(error), True
        return "", False


def _not_written(error: OSError) -> str:
    return f"the log cannot be written: {error}"
