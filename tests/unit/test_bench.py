"""The benchmark's reading of zkload, and the tables it makes of it."""

from pathlib import Path

import pytest

from bench.report import Pair, Results
from bench.run import SPREAD_KEYS, matrix, options
from bench.servers import BenchError, file_system_of
from bench.zkload import Cell, Load, read_load

LINE = (
    "get     c=10  w=100      24311 ops/s  p50    42992 us  p99    59769 us  err 0(0)  "
    "srv_cpu   95%   39.08 us/op  rss 159 MiB  cli_cpu  14%\n"
)


def test_a_line_of_zkload_is_read() -> None:
    assert read_load(LINE) == Load(24311, 42992, 59769, 39.08)


def test_a_run_with_failed_requests_does_not_count() -> None:
    with pytest.raises(BenchError, match="7 requests failed with code -101"):
        read_load(LINE.replace("err 0(0)", "err 7(-101)"))


def test_a_line_that_is_not_understood_is_shown() -> None:
    with pytest.raises(BenchError, match="'nonsense'"):
        read_load("nonsense\n")


def test_the_matrix_has_every_cell_and_the_spread_ones() -> None:
    cells = matrix(options([]).ops)
    assert len(cells) == len(set(cells)) == 7 * 3 * 2 + 3 * 2
    assert Cell("eph", 50, 1) in cells
    assert Cell("mix", 10, 100, SPREAD_KEYS) in cells


def test_a_ratio_is_made_of_medians() -> None:
    cell = Cell("get", 1, 1)
    loads = {
        "paddock": [Load(ops, 1, 1, 1) for ops in (90, 30, 20)],
        "apache": [Load(ops, 1, 1, 1) for ops in (10, 11, 5)],
    }
    results = Results(about={}, loads={cell: loads})
    assert results.pair(cell, lambda run: run.ops_per_s) == Pair(30, 10)
    assert "| get | 3.00× |" in results.as_markdown()


def test_without_the_peer_there_is_no_ratio() -> None:
    results = Results(about={}, loads={Cell("get", 1, 1): {"paddock": [Load(1, 1, 1, 1)]}})
    assert "| get | – |" in results.as_markdown()


def test_the_file_system_of_a_folder_is_the_innermost_mount() -> None:
    assert file_system_of(Path("/proc/self")) == "proc"
