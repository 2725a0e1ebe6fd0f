"""The old files that the benchmark has purged, by Paddock and by Apache ZooKeeper."""

from pathlib import Path

import pytest

from bench.servers import Server
from bench.tails import _add, _all_gone, _make_old_snapshots


@pytest.mark.parametrize(
    ("folder", "names", "oldest"),
    [
        ("snapshots", [f"{index:020d}.snapshot" for index in (900, 950)], f"{1:020d}.snapshot"),
        ("version-2", ["snapshot.384", "snapshot.3b6"], "snapshot.1"),
    ],
)
def test_old_snapshots_are_copies_of_a_whole_one_with_names_before_all_others(
    tmp_path: Path, folder: str, names: list[str], oldest: str
) -> None:
    where = tmp_path / "data" / folder
    where.mkdir(parents=True)
    contents = ["whole", "cut"]
    for name, content in zip(names, contents, strict=True):
        (where / name).write_text(content)
    server = Server("it", [], 0, tmp_path)
    old = _make_old_snapshots(server)
    assert {path.name for path in server.snapshots} == {*names}
    purged = _add(old)
    assert purged[0].name == oldest
    # Of five copies and the one that is whole, a purge keeps three.
    assert len(purged) == 3
    added = server.snapshots - {where / name for name in names}
    assert len(added) == 5
    assert {path.read_text() for path in added} == {"whole"}
    # By their numbers: one with more digits is newer.
    assert all((len(path.name), path.name) < (len(names[0]), names[0]) for path in added)
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
