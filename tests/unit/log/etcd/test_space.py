"""When the database of etcd counts as tight."""

from paddock.log.etcd.space import QUOTA_BYTES_DEFAULT, Space
from paddock.log.etcd.store import Status

QUOTA = 1000


def status(database: int, used: int, quota: int = QUOTA, *, is_full: bool = False) -> Status:
    return Status("3.4.23", 1, database, used, quota, is_full)


def test_it_is_tight_when_the_file_is_large_and_in_use() -> None:
    assert not Space().update(status(800, 700))
    assert not Space().update(status(900, 600))
    assert Space().update(status(801, 601))


def test_it_stays_tight_until_there_is_clearly_room() -> None:
    space = Space()
    space.update(status(900, 700))
    assert space.update(status(900, 550))
    assert space.update(status(750, 700))
    assert not space.update(status(900, 549))
    space.update(status(900, 700))
    assert not space.update(status(749, 700))


def test_a_full_etcd_is_tight_and_is_not_any_more_when_it_has_room() -> None:
    space = Space()
    assert space.update(status(100, 100, is_full=True))
    assert not space.update(status(100, 100))


def test_the_quota_is_what_etcd_says_or_what_is_configured_or_etcds_default() -> None:
    default = status(QUOTA_BYTES_DEFAULT - 1, QUOTA_BYTES_DEFAULT - 1, 0)
    assert Space().update(default)
    assert not Space(4 * QUOTA_BYTES_DEFAULT).update(default)
    space = Space(4 * QUOTA_BYTES_DEFAULT)
    assert space.update(status(900, 900))
    assert space.quota_bytes == QUOTA
