"""The old files that the benchmark has purged, by Paddock and by Apache ZooKeeper."""

import os
from pathlib import Path

import pytest

from bench.servers import Server
from bench.tails import _add_old_snapshots, _all_gone


@pytest.mark.parametrize(
    ("folder", "names", "oldest"),
    [
        ("snapshots", [f"{index:020d}.snapshot" for index in (900, 950)], f"{1:020d}.snapshot"),
        ("version-2", ["snapshot.384", "snapshot.3b6"], "snapshot.1"),
    ],
)
def test_old_snapshots_are_copies_of_the_newest_with_names_before_it(
    tmp_path: Path, folder: str, names: list[str], oldest: str
) -> None:
    where = tmp_path / "data" / folder
    where.mkdir(parents=True)
    for time, name in enumerate(names):
        (where / name).write_text(name)
        os.utime(where / name, (time, time))
    server = Server("it", [], 0, tmp_path)
    purged = _add_old_snapshots(server)
    assert purged[0].name == oldest
    # Of the newest and five copies, a purge keeps three.
    assert len(purged) == 3
    assert len(server.snapshots) == 6
    assert {path.read_text() for path in server.snapshots} == {names[-1]}
    assert all(path.name < names[-1] for path in purged)
    is_over = _all_gone(purged)
    for path in purged:
        assert not is_over()
        path.unlink()
    assert is_over()


def test_a_file_that_is_being_removed_is_not_gone(tmp_path: Path) -> None:
    old = tmp_path / "1.snapshot"
    is_over = _all_gone([old])
    assert is_over()
    (tmp_path / "1.tmp").touch()
    assert not is_over()
