"""The keys of a service in etcd."""

import pytest

from paddock.log.etcd.keys import Keys

BOOT = bytes(range(8))


def test_a_batch_is_found_in_its_key_again() -> None:
    keys = Keys("shop")
    key = keys.batch(BOOT, 258)
    assert key == b"/paddock/shop/log/0001020304050607/0000000000000102"
    assert keys.parse_batch(key) == (BOOT, 258)
    assert key.startswith(keys.of_boot(BOOT))


def test_batches_lie_in_their_range_and_behind_the_head() -> None:
    keys = Keys("shop")
    assert keys.head < keys.batches <= keys.batch(bytes(8), 0)
    assert keys.batch(b"\xff" * 8, (1 << 64) - 1) < keys.batches_end
    assert not keys.batches <= keys.manifest < keys.batches_end


@pytest.mark.parametrize(
    "key",
    [
        b"/paddock/shop/log",
        b"/paddock/shop/log/",
        b"/paddock/shop/log/0001020304050607",
        b"/paddock/shop/log/0001020304050607/1",
        b"/paddock/shop/log/000102030405060x/0000000000000001",
        b"/paddock/other/log/0001020304050607/0000000000000001",
    ],
)
def test_any_other_key_is_no_batch(key: bytes) -> None:
    assert Keys("shop").parse_batch(key) is None
