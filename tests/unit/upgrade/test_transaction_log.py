"""Files of the transaction log: whole, cut short, and damaged."""

import struct
from pathlib import Path

import pytest

from paddock.upgrade.stream import DamagedFileError, UpgradeError
from paddock.upgrade.transaction_log import TransactionLog
from tests.unit.upgrade import files

PAYLOADS = [
    files.transaction(1, files.create_session()),
    files.transaction(2, files.create("/a", 1, b"B" * 50 + bytes(50))),
    files.transaction(3, files.set_data("/a", bytes(200), 1)),
]
HEADER_BYTES = 16


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "log.1"


def read(path: Path, data: bytes) -> tuple[list[bytes], int | None]:
    path.write_bytes(data)
    file = TransactionLog(path)
    return [record.payload for record in file.records()], file.torn_offset


@pytest.mark.parametrize("zeros", [0, 1, 11, 12, 13, 1 << 17])
def test_records_are_read_up_to_the_zeros(path: Path, zeros: int) -> None:
    assert read(path, files.log(*PAYLOADS, zeros=zeros)) == (PAYLOADS, None)


def test_a_record_knows_where_it_stands(path: Path) -> None:
    path.write_bytes(files.log(*PAYLOADS))
    offsets = [record.offset for record in TransactionLog(path).records()]
    first = len(files.record(PAYLOADS[0]))
    assert offsets[:2] == [HEADER_BYTES, HEADER_BYTES + first]


@pytest.mark.parametrize("data", [b"", bytes(3), bytes(100), files.log(zeros=0), files.log()])
def test_a_file_that_was_just_made_has_no_records(path: Path, data: bytes) -> None:
    assert read(path, data) == ([], None)


@pytest.mark.parametrize("zeros", [0, 5, 1 << 17])
def test_a_write_that_was_cut_anywhere_is_passed_over(path: Path, zeros: int) -> None:
    before = files.log(*PAYLOADS[:2], zeros=0)
    last = files.record(PAYLOADS[2])
    for cut in range(1, len(last)):
        records, torn_offset = read(path, before + last[:cut] + bytes(zeros))
        assert records == PAYLOADS[:2]
        # What is left may be zeros, and then it does not show.
        assert torn_offset == (len(before) if last[:cut].strip(b"\0") else None)


def test_a_record_that_is_damaged_at_the_very_end_counts_as_cut_short(path: Path) -> None:
    data = bytearray(files.log(*PAYLOADS))
    data[-100] ^= 1
    assert read(path, bytes(data)) == (
        PAYLOADS[:2],
        len(files.log(*PAYLOADS[:2], zeros=0)),
    )


@pytest.mark.parametrize("flip", [1, 0x80, 0xFF])
def test_a_record_that_is_damaged_anywhere_with_a_good_one_behind_stops_the_reading(
    path: Path, flip: int
) -> None:
    start = HEADER_BYTES + len(files.record(PAYLOADS[0]))
    for offset in range(start, start + len(files.record(PAYLOADS[1]))):
        data = bytearray(files.log(*PAYLOADS))
        data[offset] ^= flip
        with pytest.raises(DamagedFileError, match=f"offset {start}: ") as caught:
            read(path, bytes(data))
        assert caught.value.path == path


def test_zeros_where_a_record_was_are_damage_too(path: Path) -> None:
    start = HEADER_BYTES + len(files.record(PAYLOADS[0]))
    data = bytearray(files.log(*PAYLOADS))
    length = len(files.record(PAYLOADS[1]))
    data[start : start + length] = bytes(length)
    with pytest.raises(DamagedFileError, match=f"offset {start}: "):
        read(path, bytes(data))


@pytest.mark.parametrize("length", [-1, -(2**31), 2**31 - 1, 0])
def test_a_length_that_lies_costs_nothing(path: Path, length: int) -> None:
    lie = struct.pack(">qi", 5, length) + b"abc"
    before = files.log(*PAYLOADS, zeros=0)
    assert read(path, before + lie) == (PAYLOADS, len(before))


@pytest.mark.parametrize("data", [b"hello", b"ZKSN" + bytes(100), b"ZKL" + bytes(100), b"\1"])
def test_something_else_is_not_taken_for_a_log(path: Path, data: bytes) -> None:
    with pytest.raises(
        DamagedFileError, match="offset 0: this is not how a transaction log begins"
    ):
        read(path, data)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    with pytest.raises(UpgradeError, match=r"log\.7: cannot be read: No such file"):
        list(TransactionLog(tmp_path / "log.7").records())
