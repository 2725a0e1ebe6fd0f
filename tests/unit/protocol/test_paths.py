"""Which paths are valid: each rule by example, and all of them against plain rules."""

from __future__ import annotations

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from paddock.protocol import paths
from paddock.testing.model import is_valid_path

VALID = [
    "/",
    "/a",
    "/a/b",
    "/zookeeper/quota",
    "/with space",
    "/~",
    "/...",
    "/.a",
    "/..a",
    "/a.",
    "/a..",
    "/a./b..",
    "/.../a",
    "/ä/ö",
    "/\u00a0",
    "/\ud7ff",
    "/\uf900",
    "/\uffef",
    "/日本",
]
INVALID = [
    "",
    "a",
    "a/b",
    "//",
    "/a/",
    "//a",
    "/a//b",
    "/.",
    "/..",
    "/./a",
    "/../a",
    "/a/.",
    "/a/..",
    "/a/./b",
    "/a/../b",
    "/ä/..",
    "/ä//b",
    "/ä/",
    "ä",
    "/\0",
    "/a\0b",
    "/\x01",
    "/\x1f",
    "/\x7f",
    "/\x80",
    "/\x9f",
    "/a\nb",
    "/a\n",
    "/ä\n",
    "/\ue000",
    "/\uf8ff",
    "/\ufff0",
    "/\ufffd",
    "/\uffff",
    "/\U00010000",
    "/\U0001f600",
    "/\U0010ffff",
]


@pytest.mark.parametrize("path", VALID)
def test_a_valid_path_is_accepted(path: str) -> None:
    assert paths.is_valid(path.encode())


@pytest.mark.parametrize("path", INVALID, ids=ascii)
def test_an_invalid_path_is_refused(path: str) -> None:
    assert not paths.is_valid(path.encode())


@pytest.mark.parametrize(
    "path",
    [b"/\xff", b"/a\xc3", b"/\xed\xa0\x80", b"/\xc0\xaf", b"/\xed\xa0\xbd\xed\xb8\x80"],
    ids=ascii,
)
def test_malformed_utf8_and_encoded_surrogates_are_refused(path: bytes) -> None:
    assert not paths.is_valid(path)


PIECES = st.one_of(
    st.sampled_from(["/", ".", "..", "a", "b.", "\0", "\x1f", " ", "\x7e", "\x7f", "\x9f", "\xa0"]),
    st.sampled_from(["\ud7ff", "\ue000", "\uf8ff", "\uf900", "\uffef", "\ufff0", "\uffff", "😀"]),
    st.characters(exclude_categories=["Cs"]),
)


@settings(max_examples=500)
@given(st.lists(PIECES, max_size=10).map(lambda pieces: "/" + "".join(pieces)))
@example("/a/")
def test_text_is_judged_as_by_the_rules(path: str) -> None:
    assert paths.is_valid(path.encode()) == is_valid_path(path.encode())


@given(st.binary(max_size=8).map(lambda tail: b"/" + tail) | st.binary(max_size=8))
def test_bytes_are_judged_as_by_the_rules(path: bytes) -> None:
    assert paths.is_valid(path) == is_valid_path(path)


def test_every_character_is_judged_as_by_the_rules() -> None:
    for number in [*range(0xD800), *range(0xE000, 0x10100), *range(0x10000, 0x110000, 0x101)]:
        path = f"/a{chr(number)}b".encode()
        assert paths.is_valid(path) == is_valid_path(path), hex(number)


NAMES = st.lists(PIECES.filter(lambda piece: "/" not in piece), max_size=5)


@settings(max_examples=500)
@given(st.sampled_from([b"", b"/", b"/a", b"/.b/c"]), NAMES.map("".join))
@example(b"", "")
@example(b"/", "a")
@example(b"/a", "..")
@example(b"/a", "n" * 64)
@example(b"/a", "n" * 63 + "\x7f")
@example(b"/a", "\x1f" + "n" * 63)
@example(b"/a", "n" * 65)
@example(b"/a", "\x1f" + "n" * 64)
@example("/\u00e4".encode(), "n\u00e4")
@example("/\u00e4".encode(), "\x80")
def test_a_child_is_judged_as_its_whole_path(above: bytes, name: str) -> None:
    path = above + b"/" + name.encode()
    assert paths.is_valid_child(path, above, name.encode()) == is_valid_path(path)


def test_parent_cuts_the_last_component() -> None:
    assert paths.parent(b"/a/b/c") == b"/a/b"
    assert paths.parent(b"/a") == b"/"
    with pytest.raises(AssertionError):
        paths.parent(b"/")


def test_paths_as_text_go_up_and_down() -> None:
    assert paths.parent_path("/a/b/c") == "/a/b"
    assert paths.parent_path("/a") == "/"
    assert paths.parent_path("/") == "/"
    assert paths.child_path("/", "a") == "/a"
    assert paths.child_path("/a", "b") == "/a/b"
