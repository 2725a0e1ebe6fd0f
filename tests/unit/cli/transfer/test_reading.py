"""Exports that are read: whatever is wrong is found, and told with the place where it is."""

from __future__ import annotations

import gzip
import io
import os
import threading
from pathlib import Path

import pytest

from paddock.cli.transfer import file_format, reading
from paddock.cli.transfer.node import DamagedExportError, Node
from paddock.cli.transfer.reading import Export, opened
from paddock.protocol.acl import OPEN
from tests.unit.cli.transfer.helpers import NODES, lines_of, read, with_end

LINES = lines_of()
TEXT = b"".join(LINES)


def refusal(text: bytes) -> str:
    """Return the error text, which is one line."""
    with pytest.raises(DamagedExportError) as caught:
        read(text)
    assert "\n" not in str(caught.value)
    return str(caught.value)


def test_nodes_come_in_order() -> None:
    assert read(TEXT) == NODES


def test_a_compressed_export_is_known_by_its_bytes() -> None:
    assert read(gzip.compress(TEXT)) == NODES


def test_an_export_can_be_read_again() -> None:
    export = Export(io.BytesIO(TEXT), "export")
    assert export.check() == len(NODES)
    assert list(export.nodes()) == NODES


def test_wherever_a_file_is_cut_off_it_is_refused() -> None:
    for length in range(len(TEXT)):
        said = refusal(TEXT[:length])
        whole = TEXT[:length].count(b"\n")
        offset = TEXT[:length].rfind(b"\n") + 1
        assert said.startswith(f"export: line {whole + 1}, byte {offset}: "), length


def test_wherever_a_compressed_file_is_cut_off_it_is_refused() -> None:
    compressed = gzip.compress(TEXT)
    for length in range(2, len(compressed)):
        assert "cut off" in refusal(compressed[:length])


def test_a_damaged_byte_is_told_with_its_line() -> None:
    for place in range(len(TEXT)):
        spoiled = TEXT[:place] + bytes([TEXT[place] ^ 1]) + TEXT[place + 1 :]
        line = TEXT[:place].count(b"\n") + 1
        said = refusal(spoiled)
        assert said.startswith(f"export: line {line}, byte {len(b''.join(LINES[: line - 1]))}: ")


def test_a_damaged_compressed_file_is_refused() -> None:
    compressed = bytearray(gzip.compress(TEXT))
    compressed[len(compressed) // 2] ^= 0xFF
    assert refusal(bytes(compressed)).startswith("export: line ")


@pytest.mark.parametrize(
    ("lines", "why"),
    [
        (LINES[:2] + LINES[3:], "line 3.*/a/b has no parent before it"),
        (LINES[:4] + LINES[5:], "line 6.*lines before this one are missing"),
        ([*LINES[:3], LINES[2], *LINES[3:]], "line 4.*/a cannot come after /a"),
        ([*LINES[:4], LINES[5], LINES[4], LINES[6]], "line 6.*/a-b cannot come after /b"),
        (LINES[:1] + LINES[2:], "line 2.*the first node is /a, and not the root"),
        (LINES[1:], "line 1.*no export of Paddock"),
        ([*LINES, LINES[1]], "line 8.*comes after the end"),
        (LINES[:-1], "line 7.*the export was not finished"),
        ([], "line 1.*the file is empty"),
        ([b"something else\n"], "line 1.*no export of Paddock"),
        ([b"a host's name"], "line 1.*no export of Paddock"),
        ([LINES[0][:-9]], "line 1.*cut off in the middle"),
        ([*LINES[:-1], file_format.end_line(99, "")], "line 7.*missing, or were changed"),
        (
            [*LINES[:5], file_format.node_line(Node("/b", b"green", OPEN)), LINES[6]],
            "line 7.*missing, or were changed",
        ),
    ],
)
def test_whole_lines_that_do_not_belong_together_are_refused(lines: list[bytes], why: str) -> None:
    with pytest.raises(DamagedExportError, match=f"^export: {why}"):
        read(b"".join(lines))


def test_names_are_ordered_below_their_parents_and_not_as_text() -> None:
    # As text /a-b would come before /a/b.
    paths = ["/", "/a", "/a/b", "/a/b/c", "/a-b", "/b"]
    nodes = [Node(path, b"", OPEN) for path in paths]
    assert read(b"".join(lines_of(nodes))) == nodes


def test_a_line_without_an_end_is_not_held(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(reading, "LINE_BYTES_MAX", 1000)
    assert "line 1, byte 0: it does not end" in refusal(file_format.BEGINNING + b"x" * 10_000)


def test_what_cannot_be_read_twice_is_kept_meanwhile(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=pipe.write_bytes, args=(TEXT,))
    writer.start()
    with opened(pipe) as export:
        writer.join()
        assert export.check() == len(NODES)
        assert list(export.nodes()) == NODES


def test_an_export_without_nodes_is_refused() -> None:
    # A tree has a root, so an export has at least one node.
    assert "there is no node" in refusal(b"".join(with_end(LINES[:1])))
