"""Which etcd still holds the log that was followed."""

from __future__ import annotations

import pytest

from paddock.log.etcd.history import History
from paddock.log.etcd.manifest import Cut, Manifest
from paddock.log.etcd.store import Range, Store
from paddock.log.interface import (
    LogCorruptError,
    LogError,
    OtherHistoryError,
    Position,
    TrimmedError,
)
from paddock.testing.simulation.store_model import EtcdModel
from tests.unit.log.etcd.helpers import virtually

BOOT = b"12345678"


def manifest(index: int, revision: int, trimmed: Cut | None = None) -> bytes:
    return Manifest(Cut(index, revision, BOOT, index), 1, "it", 1, 1, bytes(32), trimmed).encode()


class Scene:
    """A log of five records: the batches 0 to 4, with the revisions 2 to 6."""

    def __init__(self) -> None:
        self.model = EtcdModel()
        self.space, self.keys = self.model.space, self.model.keys
        for number in range(5):
            self.model.append(BOOT, number, b"batch")
        self.store: Store = self.model.store("one")

    def trim(self, *numbers: int) -> None:
        self.space.delete([Range(self.keys.batch(BOOT, one)) for one in numbers], None, 0)

    def write_manifest(self, value: bytes) -> None:
        assert self.space.swap(self.keys.manifest, value, 0, None)

    def verify(self, after: Position) -> tuple[int, int] | type[LogError]:
        """Return the revision and the last index, or what was raised."""

        async def run() -> tuple[int, int]:
            state = await History(self.store, self.keys).verify(after)
            return state.revision, state.last_index

        try:
            return virtually(run())
        except LogError as error:
            return type(error)


def at(number: int) -> Position:
    return Position(number + 1, number + 2, BOOT, number)


def test_the_last_record_is_there_with_its_revision() -> None:
    scene = Scene()
    assert [scene.verify(at(number)) for number in range(5)] == [(6, 5)] * 5
    assert scene.verify(Position()) == (6, 5)


def test_an_empty_log_has_a_beginning() -> None:
    scene = Scene()
    scene.store = EtcdModel().store("other")
    assert scene.verify(Position()) == (1, 0)
    assert scene.verify(at(0)) is OtherHistoryError


@pytest.mark.parametrize(
    "after",
    [
        pytest.param(Position(3, 5, BOOT, 2), id="another revision"),
        pytest.param(Position(3, 4, b"somebody", 2), id="another server"),
        pytest.param(Position(3, 4, BOOT, 7), id="another number"),
        pytest.param(Position(5, 7, BOOT, 4), id="a future revision"),
        pytest.param(Position(6, 6, BOOT, 4), id="a future index"),
    ],
)
def test_anything_else_is_another_history(after: Position) -> None:
    assert Scene().verify(after) is OtherHistoryError


def test_a_revision_that_went_back_is_named() -> None:
    scene = Scene()

    async def verify() -> None:
        await History(scene.store, scene.keys).verify(Position(5, 9, BOOT, 4))

    with pytest.raises(OtherHistoryError, match=r"revision is 6, and was 9.*cluster epoch"):
        virtually(verify())


def test_a_record_that_is_gone_was_trimmed_only_if_a_snapshot_has_it() -> None:
    scene = Scene()
    scene.trim(0, 1, 2)
    assert scene.verify(at(1)) is OtherHistoryError
    scene.write_manifest(manifest(4, 5))
    assert scene.verify(at(1)) is TrimmedError
    assert scene.verify(at(3)) == (8, 5)


@pytest.mark.parametrize("revision", [3, 7])
def test_a_snapshot_before_the_record_does_not_explain_that_it_is_gone(revision: int) -> None:
    scene = Scene()
    scene.write_manifest(manifest(2, revision))
    scene.trim(3)
    assert scene.verify(at(3)) is OtherHistoryError


def test_a_snapshot_of_an_older_revision_is_of_another_history() -> None:
    scene = Scene()
    scene.write_manifest(manifest(4, 3))
    scene.trim(3)
    assert scene.verify(at(3)) is OtherHistoryError


def test_a_record_that_was_written_again_after_trimming_is_gone() -> None:
    scene = Scene()
    scene.trim(1)
    scene.model.append(BOOT, 1, b"batch")
    scene.write_manifest(manifest(4, 5))
    assert scene.verify(at(1)) is TrimmedError


def test_the_place_where_trimming_ends_is_good_enough() -> None:
    scene = Scene()
    scene.trim(0, 1)
    scene.write_manifest(manifest(4, 5, Cut(2, 3, BOOT, 1)))
    assert scene.verify(at(1)) == (8, 5)
    assert scene.verify(at(0)) is TrimmedError


def test_the_head_proves_as_much_as_the_last_batch() -> None:
    scene = Scene()
    scene.trim(4)
    assert scene.verify(at(4)) == (7, 5)


def test_a_damaged_manifest_matters_only_where_it_decides() -> None:
    scene = Scene()
    scene.trim(1)
    scene.write_manifest(b"damaged")
    assert scene.verify(at(2)) == (8, 5)
    assert scene.verify(at(1)) is LogCorruptError
