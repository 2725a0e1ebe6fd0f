"""Whatever is on the disk, reading it gives what was written or a typed error."""

from __future__ import annotations

import io
import tempfile
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from paddock.log.file.file_log import FileLog
from paddock.log.file.segment import HeaderError, SegmentHeader, SegmentReader, encode_record
from paddock.log.interface import LogError
from paddock.server.config.config import ConfigError
from paddock.server.config.properties import read_properties
from paddock.server.config.settings import SETTINGS
from paddock.server.config.sources import Settings
from paddock.state.entry import LEAVE, Entry
from paddock.state.snapshot import Snapshot, SnapshotError, restore
from paddock.storage.snapshots import (
    SnapshotDamagedError,
    SnapshotStore,
    read_chunks,
    snapshot_name,
)
from tests.property.actions import Action, changes
from tests.property.bounds import examples
from tests.property.dump import dump
from tests.property.pair import log_of, replay
from tests.property.spoiled import spoiled
from tests.unit.state.shared_state import A, B, SharedState

MARKER = b"\xa5padlock"


def _segment(payloads: list[bytes]) -> bytes:
    records = [encode_record(MARKER, 5 + place, each) for place, each in enumerate(payloads)]
    return SegmentHeader(5, MARKER).encode() + b"".join(records) + bytes(64)


_payloads = st.lists(st.binary(max_size=50), max_size=5)
_segments = _payloads.map(_segment)


@examples(300)
@given(st.one_of(st.binary(max_size=200), _segments, spoiled(_segments)))
def test_any_segment_is_read_to_its_first_bad_record(data: bytes) -> None:
    try:
        reader = SegmentReader(data)
    except HeaderError:
        return
    records = list(reader)
    assert [record.index for record in records] == list(
        range(reader.header.first_index, reader.next_index)
    )
    reader.tail()
    assert reader.end_offset <= len(data)


@examples(60)
@given(st.lists(_segments | spoiled(_segments) | st.binary(max_size=50), max_size=2))
def test_a_log_of_any_segments_opens_or_says_where_it_cannot_be_read(
    segments: list[bytes],
) -> None:
    with tempfile.TemporaryDirectory() as name:
        for number, data in enumerate(segments):
            (Path(name) / f"{5 + 3 * number:020d}.log").write_bytes(data)
        try:
            log = FileLog(Path(name))
            try:
                records = list(log.records(4))
            finally:
                log.close()
        except LogError as error:
            complaint = str(error)
        else:
            complaint = name
            assert [record.index for record in records] == list(range(5, 5 + len(records)))
        assert name in complaint


@examples(60)
@given(changes, st.data())
def test_any_bytes_restore_a_state_or_are_no_snapshot(
    history: list[Action], data: st.DataObject
) -> None:
    machine = replay(log_of(history))
    whole = b"".join(Snapshot(machine).chunks())
    taken = data.draw(spoiled(st.just(whole)) | st.binary(max_size=100))
    cut = data.draw(st.integers(0, len(taken)))
    try:
        restored = restore([taken[:cut], taken[cut:]])
    except SnapshotError:
        return
    # Whatever was changed is in no node: their digest is written with them.
    assert restored.digest() == machine.digest()
    dump(restored)


@examples(60)
@given(st.data())
def test_any_bytes_restore_a_shared_state_or_are_no_snapshot(data: st.DataObject) -> None:
    state = SharedState()
    state.join(A, "a:2181")
    state.join(B, "b:2181")
    state.open(B)
    state.commit(A, Entry(LEAVE, b""))
    taken = data.draw(spoiled(st.just(b"".join(Snapshot(state.machine).chunks()))))
    try:
        restored = restore([taken])
    except SnapshotError:
        return
    dump(restored)


@examples(100)
@given(st.lists(st.binary(max_size=60), max_size=4), st.data())
def test_any_snapshot_file_gives_its_chunks_or_is_damaged(
    chunks: list[bytes], data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as name:
        store = SnapshotStore(Path(name))
        writer = store.begin(3)
        for chunk in chunks:
            writer.append(chunk)
        writer.commit()
        path = Path(name) / snapshot_name(3)
        written = path.read_bytes()
        taken = data.draw(spoiled(st.just(written)) | st.binary(max_size=100))
        try:
            assert list(read_chunks(io.BytesIO(taken), len(taken), 3)) == chunks
            assert taken == written
        except SnapshotDamagedError:
            assert taken != written
        path.write_bytes(taken)
        newest = SnapshotStore(Path(name)).newest(lambda path, chunks: list(chunks))
        assert (newest.snapshot is None) == (taken != written)
        assert len(newest.damaged) == (taken != written)


_values = st.one_of(
    st.text(max_size=20),
    st.sampled_from(["", "0", "-1", "1", "0x10", "true", "*", "2000", "99999999999999999999"]),
)
_keys = st.sampled_from([setting.key for setting in SETTINGS]) | st.text(max_size=10)
_lines = st.lists(st.tuples(_keys, st.sampled_from(["=", ":", " ", " = "]), _values), max_size=8)
_files = st.one_of(
    _lines.map(lambda lines: "\n".join("".join(line) for line in lines).encode("utf-8", "replace")),
    st.binary(max_size=200),
)


@examples(300)
@given(st.one_of(_files, spoiled(_files)))
def test_any_settings_file_gives_settings_or_one_line_that_says_why_not(content: bytes) -> None:
    with tempfile.TemporaryDirectory() as name:
        path = Path(name) / "zoo.cfg"
        path.write_bytes(content)
        settings = Settings()
        said = settings.warnings
        try:
            settings.read_file(path)
            settings.config()
        except ConfigError as error:
            said = [*said, str(error)]
        assert all(len(line.splitlines()) == 1 for line in said), said


@examples(200)
@given(st.text(max_size=100))
def test_any_text_is_a_properties_file(text: str) -> None:
    lines = [entry.line for entry in read_properties(text)]
    assert lines == sorted(set(lines))
