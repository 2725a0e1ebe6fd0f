"""What `paddock find` takes for found: each criterion by itself, then all together."""

import re
from typing import Any

import pytest

from paddock.cli.commands.find import Criteria
from paddock.protocol.records import Stat

STAT = Stat(1, 1, 0, 1000, 0, 0, 0, 0, 10, 0, 1)


def stat(**fields: int) -> Stat:
    return STAT._replace(**fields)


@pytest.mark.parametrize(
    ("asked", "path", "of", "fits"),
    [
        ({}, "/", {}, True),
        ({"names": ("worker-*",)}, "/app/worker-1", {}, True),
        ({"names": ("worker-*",)}, "/worker-1/x", {}, False),
        ({"names": ("[ab]",)}, "/B", {}, False),
        ({"names": ("a", "b")}, "/x/b", {}, True),
        ({"paths": ("/app/*",)}, "/app/x/y", {}, True),
        ({"paths": ("/app/*",)}, "/app", {}, False),
        ({"regex": re.compile(r"\d$")}, "/a/1", {}, True),
        ({"regex": re.compile(r"\d$")}, "/1/a", {}, False),
        ({"ephemeral": True}, "/a", {"ephemeral_owner": 7}, True),
        ({"ephemeral": True}, "/a", {}, False),
        ({"owner": 7}, "/a", {"ephemeral_owner": 7}, True),
        ({"owner": 7}, "/a", {"ephemeral_owner": 8}, False),
        ({"owner": 7}, "/a", {}, False),
        ({"childless": True}, "/a", {"num_children": 1}, False),
        ({"childless": True}, "/a", {}, True),
        ({"larger": 9}, "/a", {}, True),
        ({"larger": 10}, "/a", {}, False),
        ({"smaller": 11}, "/a", {}, True),
        ({"smaller": 10}, "/a", {}, False),
        ({"written_before_ms": 1001.0}, "/a", {}, True),
        ({"written_before_ms": 1000.0}, "/a", {}, False),
        ({"written_after_ms": 999.0}, "/a", {}, True),
        ({"written_after_ms": 1000.0}, "/a", {}, False),
        ({"names": ("a",), "larger": 10}, "/a", {}, False),
        ({"names": ("b",), "larger": 9}, "/a", {}, False),
        ({"names": ("a",), "larger": 9}, "/a", {}, True),
    ],
)
def test_a_node_fits_or_does_not(
    asked: dict[str, Any], path: str, of: dict[str, int], fits: bool
) -> None:
    assert Criteria(**asked).fits(path, stat(**of)) is fits


@pytest.mark.parametrize(
    ("asked", "data", "fits"),
    [
        ({"data": b"lu"}, b"blue", True),
        ({"data": b"\xff"}, b"\x00\xff\x00", True),
        ({"data": b"red"}, b"blue", False),
        ({"data_regex": re.compile(rb"^b.*e$")}, b"blue", True),
        ({"data_regex": re.compile(rb"^l")}, b"blue", False),
        ({"data": b"b", "data_regex": re.compile(rb"^l")}, b"blue", False),
    ],
)
def test_data_fit_or_do_not(asked: dict[str, Any], data: bytes, fits: bool) -> None:
    criteria = Criteria(**asked)
    assert criteria.needs_data
    assert criteria.fits_data(data) is fits


def test_data_that_nobody_asks_for_are_not_needed() -> None:
    assert not Criteria(names=("a",)).needs_data
