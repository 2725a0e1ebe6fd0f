"""What quota nodes hold, and which quota governs a node."""

from __future__ import annotations

import pytest

from paddock.state.limits import (
    LIMITS,
    STATISTICS,
    Quota,
    Quotas,
    governed_by,
    read_numbers,
)

WHOLE = {"count": 3, "bytes": 100, "byteHardLimit": -1, "countHardLimit": 10}


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        (b"count=3,bytes=100=;byteHardLimit=-1;countHardLimit=10", WHOLE),
        (b"countHardLimit=10;;,count=3,bytes=100;byteHardLimit=-1,;", WHOLE),
        (b"count=3,bytes=100", {"count": 3, "bytes": 100}),
        (b"", {}),
        (b",;", {}),
        (b"count=1,count=2", {"count": 2}),
        (b"count==9", {"count": -1}),
        (b"count=1=9=nonsense", {"count": 1}),
        (b"=5", {"": 5}),
        (b"count=+5", {"count": 5}),
        (b"count=-0", {"count": 0}),
        (b"count=" + b"0" * 900 + b"7", {"count": 7}),
        (b"\xff=1", {"\ufffd": 1}),
        (b"count=9223372036854775807", {"count": 2**63 - 1}),
        (b"count=-9223372036854775808", {"count": -(2**63)}),
    ],
)
def test_numbers_are_read_as_upstream_reads_them(text: bytes, numbers: dict[str, int]) -> None:
    assert read_numbers(text) == numbers


@pytest.mark.parametrize(
    "text",
    [
        *(None, b"nonsense", b"count", b"count=", b"=", b",count=1", b"count= 1", b"count=1\n"),
        *(
            b"count=0x1",
            b"count=1.5",
            b"count=\xff",
            "count=\u0663".encode(),
            b"count=9223372036854775808",
        ),
        *(b"count=1,bytes", b"count=" + b"0" * 2000),
    ],
)
def test_what_is_anything_else_is_not_read(text: bytes | None) -> None:
    assert read_numbers(text) is None


def test_former_rules_knew_the_digits_of_all_scripts() -> None:
    text = "count=\u0663,bytes=-\uff11\uff12".encode()
    assert read_numbers(text, is_loose=True) == {"count": 3, "bytes": -12}
    quotas = Quotas()
    quotas.add(b"/a")
    for is_loose in (True, False, True):
        quota = quotas.governor(b"/a", is_loose)
        assert quota is not None
        assert quota.read_limits(text) == is_loose
        assert quota.read_statistics(text) == is_loose


def test_a_limit_below_none_is_none() -> None:
    quota = Quota(b"/a")
    assert quota.read_limits(b"count=-7,bytes=5;countHardLimit=-9")
    assert (quota.count_soft, quota.bytes_soft) == (-1, 5)
    assert (quota.count_hard, quota.bytes_hard) == (-1, -1)


def test_other_limits_are_read_again() -> None:
    quota = Quota(b"/a")
    for text, expected in ((b"count=1", 1), (b"count=2", 2), (b"bytes=1", -1)):
        assert quota.read_limits(text)
        assert quota.count_soft == expected
    assert not quota.read_limits(b"nonsense")
    assert not quota.read_limits(None)
    assert not Quota(b"/a").read_limits(None)


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (b"count=3,bytes=10", b"count=4,bytes=15"),
        (b"bytes=10,count=3", b"count=4,bytes=15"),
        (b"", b"count=0,bytes=4"),
        (b"count=1,bytes=2;z=3;a=+4", b"count=2,bytes=7=;a=4;z=3"),
        (b"count=9223372036854775807,bytes=0", b"count=-9223372036854775808,bytes=5"),
    ],
)
def test_statistics_are_written_as_upstream_writes_them(before: bytes, after: bytes) -> None:
    quota = Quota(b"/a")
    assert quota.read_statistics(before)
    assert quota.add(1, 5) == after
    assert quota.read_statistics(after)
    assert quota.add(0, 0) == after


# Behind `=;`, what a client has written beside the counts may take 945 bytes.
@pytest.mark.parametrize(
    ("text", "is_used"),
    [
        (b"x" * 943 + b"=1", True),
        (b"x" * 944 + b"=1", False),
        (b"x" * 998 + b"=1", False),
        # What is no UTF-8 takes three bytes for each when it is written again.
        (b"\xff" * 315 + b"=1", False),
        (b"a=1," * 3 + b"b=-9223372036854775808," * 3, True),
        (b",".join(b"%d=1" % number for number in range(160)), True),
        (b",".join(b"%d=1" % number for number in range(180)), False),
    ],
)
def test_statistics_are_used_only_if_what_is_written_next_can_be_read(
    text: bytes, is_used: bool
) -> None:
    quota = Quota(b"/a")
    assert read_numbers(text) is not None
    assert quota.read_statistics(text) == is_used
    if is_used:
        quota.add(0, 0)
        longest = quota.add(1 - 2**63, 1 - 2**63)
        assert Quota(b"/a").read_statistics(longest)


def test_under_former_rules_counts_went_on_that_nobody_else_could_read() -> None:
    quotas = Quotas()
    quotas.add(b"/a")
    text = b"x" * 985 + b"=1"
    for _ in range(2):
        quota = quotas.governor(b"/a", is_loose=True)
        assert quota is not None
        assert quota.read_statistics(text)
        text = quota.add(1, 0)
    assert text.startswith(b"count=1,bytes=-1=;xx")
    quota = quotas.governor(b"/a")
    assert quota is not None
    assert not quota.read_statistics(text)
    assert not Quota(b"/a").read_statistics(text)


def test_the_nearest_quota_governs() -> None:
    quotas = Quotas()
    for governed in (b"/a", b"/a/b/c", b"/ab"):
        quotas.add(governed)
    expected: dict[bytes, bytes | None] = {
        b"/": None,
        b"/b": None,
        b"/a": b"/a",
        b"/a/b": b"/a",
        b"/a/bc/c": b"/a",
        b"/a/b/c": b"/a/b/c",
        b"/a/b/c/d/e": b"/a/b/c",
        b"/ab/x": b"/ab",
        b"/abc": None,
    }
    for path, nearest in expected.items():
        governor = quotas.governor(path)
        assert (None if governor is None else governor.governed) == nearest, path


def test_a_quota_that_is_removed_leaves_the_others() -> None:
    quotas = Quotas()
    for governed in (b"/a", b"/a/b/c", b"/a/b/d"):
        quotas.add(governed)
        quotas.add(governed)
    assert quotas.size == 3
    quotas.remove(b"/a/b/c")
    assert sorted(quota.governed for quota in quotas) == [b"/a", b"/a/b/d"]
    quotas.remove(b"/a")
    assert quotas.governor(b"/a/b/c") is None
    assert quotas.governor(b"/a/b/d/e") is not None
    quotas.remove(b"/a/b/d")
    assert (quotas.size, list(quotas)) == (0, [])
    assert not quotas._root.children


def test_the_root_cannot_have_one() -> None:
    quotas = Quotas()
    quotas.add(b"")
    assert quotas.size == 0
    quotas.remove(b"")


@pytest.mark.parametrize(
    ("path", "governed"),
    [
        (b"/zookeeper/quota/a/b/", b"/a/b"),
        (b"/zookeeper/quota/", b""),
        (b"/zookeeper/quotas/", None),
        (b"/zookeeper/quota2/a/", None),
        (b"/a/", None),
        (b"/zookeeper/", None),
        (b"/zookeeper/quota/a/x", None),
    ],
)
def test_only_nodes_below_the_quota_node_stand_for_a_quota(
    path: bytes, governed: bytes | None
) -> None:
    assert governed_by(LIMITS, path + b"zookeeper_limits") == governed
    assert governed_by(STATISTICS, path + b"zookeeper_stats") == governed
    assert governed_by(LIMITS, path + b"zookeeper_stats") is None
