"""Path validation: a table of odd paths for every operation that takes one."""

from __future__ import annotations

import pytest

from tests.conformance.differences import LONE_CHECK_IS_KNOWN, TEXT_BEYOND_THE_BASIC_PLANE
from tests.support import requests as rq
from tests.support.records import OPEN, Code, Request
from tests.support.server import Server
from tests.support.wire import Client

OK, BAD, NONE, EXISTS = Code.OK, Code.BAD_ARGUMENTS, Code.NO_NODE, Code.NODE_EXISTS

#: What is appended to the base node, and the codes for: create, sequential create, delete,
#: setData/setACL/check, reads, exists.
BELOW_BASE: dict[str, tuple[int, int, int, int, int, int]] = {
    "/": (BAD, OK, NONE, BAD, NONE, NONE),
    "//": (NONE, NONE, NONE, BAD, NONE, NONE),
    "//a": (NONE, NONE, NONE, BAD, NONE, NONE),
    "/.": (BAD, OK, NONE, BAD, NONE, NONE),
    "/..": (BAD, OK, NONE, BAD, NONE, NONE),
    "/.a": (OK, OK, NONE, NONE, NONE, NONE),
    "/a.": (OK, OK, NONE, NONE, NONE, NONE),
    "/...": (OK, OK, NONE, NONE, NONE, NONE),
    "/./a": (NONE, NONE, NONE, BAD, NONE, NONE),
    "/../a": (NONE, NONE, NONE, BAD, NONE, NONE),
    "/a/": (NONE, NONE, NONE, BAD, NONE, NONE),
    "/\x00": (BAD, BAD, BAD, BAD, NONE, BAD),
    "/a\x00b": (BAD, BAD, BAD, BAD, NONE, BAD),
    "/\x01": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/a\x1f": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/ ": (OK, OK, NONE, NONE, NONE, NONE),
    "/a\x20b": (OK, OK, NONE, NONE, NONE, NONE),
    "/\x7e": (OK, OK, NONE, NONE, NONE, NONE),
    "/\x7f": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/\x9f": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/\xa0": (OK, OK, NONE, NONE, NONE, NONE),
    "/é": (OK, OK, NONE, NONE, NONE, NONE),
    "/中": (OK, OK, NONE, NONE, NONE, NONE),
    "/\ud7ff": (OK, OK, NONE, NONE, NONE, NONE),
    "/\ue000": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/\uf8ff": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/\uf900": (OK, OK, NONE, NONE, NONE, NONE),
    "/\uffef": (OK, OK, NONE, NONE, NONE, NONE),
    "/\ufff0": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/\ufffd": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/\uffff": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/\U00010000": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/\U0001f600": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/none/\x01": (NONE, NONE, NONE, BAD, NONE, NONE),
    "/none/.": (NONE, NONE, NONE, BAD, NONE, NONE),
}

#: Whole paths with the same columns.
WHOLE: dict[str, tuple[int, int, int, int, int, int]] = {
    "": (BAD, BAD, BAD, BAD, OK, OK),
    "a": (BAD, BAD, BAD, BAD, NONE, NONE),
    "a/b": (NONE, NONE, NONE, BAD, NONE, NONE),
    ".": (BAD, BAD, BAD, BAD, NONE, NONE),
    "//": (BAD, BAD, NONE, BAD, NONE, NONE),
    "//a": (BAD, BAD, NONE, BAD, NONE, NONE),
    "/.": (BAD, OK, NONE, BAD, NONE, NONE),
    "/..": (BAD, OK, NONE, BAD, NONE, NONE),
    " /a": (NONE, NONE, NONE, BAD, NONE, NONE),
    "\\": (BAD, BAD, BAD, BAD, NONE, NONE),
    "/\x00": (BAD, BAD, BAD, BAD, NONE, BAD),
    "\x00": (BAD, BAD, BAD, BAD, NONE, BAD),
}


def cases() -> list[tuple[str, tuple[int, int, int, int, int, int]]]:
    below = [("{base}" + suffix, codes) for suffix, codes in BELOW_BASE.items()]
    return below + list(WHOLE.items())


def creates(path: str, flags: int) -> list[Request]:
    ttl_flags = 6 if flags else 5
    return [
        rq.create(path, flags=flags),
        rq.create2(path, flags=flags),
        rq.create_container(path, flags=flags),
        rq.create_ttl(path, 3_600_000, flags=ttl_flags),
    ]


@pytest.mark.parametrize(("path", "codes"), cases(), ids=[ascii(path) for path, _ in cases()])
def test_odd_paths(
    server: Server, client: Client, base: str, path: str, codes: tuple[int, int, int, int, int, int]
) -> None:
    create, sequential, delete, write, read, exists = codes
    path = path.replace("{base}", base)
    if "\x00" not in path and create == OK:
        # Before it is there.
        assert client.call(rq.delete(path)).err == delete
    for request, code in (
        *[(request, write) for request in writes(server, path)],
        *[(request, read) for request in reads(path)],
        (rq.exists(path), exists),
        (rq.delete(path), delete),
    ):
        assert client.call(request).err == code, request
    for flags, code in ((0, create), (2, sequential)):
        for request in creates(path, flags):
            reply = client.call(request)
            assert reply.err == code, request
            if code == OK:
                made = reply.path
                assert made.startswith(path)
                assert client.call(rq.exists(made)).err == OK
                assert client.call(rq.delete(made)).err == OK


@pytest.mark.parametrize(("path", "codes"), cases(), ids=[ascii(path) for path, _ in cases()])
def test_odd_paths_in_a_multi(
    client: Client, base: str, path: str, codes: tuple[int, int, int, int, int, int]
) -> None:
    create, sequential, delete, write, _, _ = codes
    path = path.replace("{base}", base)
    for request, code in (
        (rq.delete(path), delete),
        (rq.set_data(path, b""), write),
        (rq.check(path), write),
        (rq.create(path, flags=2), sequential),
        (rq.create(path), create),
    ):
        (result,) = client.call(rq.multi(request)).results
        assert result.err == code, request
        if result.path is not None:
            assert client.call(rq.delete(result.path)).err == OK


def writes(server: Server, path: str) -> list[Request]:
    check = [rq.check(path, 0)] if LONE_CHECK_IS_KNOWN.on(server) else []
    return [rq.set_data(path, b""), rq.set_acl(path, OPEN), *check]


def reads(path: str) -> list[Request]:
    return [
        rq.get_data(path),
        rq.get_children(path),
        rq.get_children2(path),
        rq.get_acl(path),
        rq.get_all_children_number(path),
    ]


@pytest.mark.parametrize("path", ["/", "//", "", "a", "/\x00", "/none", "no//thing/"])
def test_sync_echoes_any_path(client: Client, path: str) -> None:
    assert client.call(rq.sync(path)).path == path


def test_sync_echoes_a_character_beyond_the_basic_plane(server: Server, client: Client) -> None:
    echoed = TEXT_BEYOND_THE_BASIC_PLANE.on(server)
    assert client.call(rq.sync("/\U0001f600")).body == rq.buffer(b"/" + echoed)


@pytest.mark.parametrize("path", ["", "a", "//", "/a/", "/\x00", "/\x01"])
def test_watches_can_be_added_to_and_removed_from_any_path(client: Client, path: str) -> None:
    for mode in (0, 1):
        assert client.call(rq.add_watch(path, mode)).number == 0
        assert client.call(rq.remove_watches(path, 3)).err == OK
        assert client.call(rq.remove_watches(path, 3)).err == Code.NO_WATCHER


@pytest.mark.parametrize("raw", [b"/\xff", b"/\xc3", b"/a\xed\xa0\x80", b"/\xc0\xaf"])
def test_text_that_is_not_utf8_is_a_bad_path_and_not_a_bad_body(client: Client, raw: bytes) -> None:
    """Each bad byte is read as U+FFFD, which no path may contain."""
    assert client.call(rq.create(raw)).err == BAD
    assert client.call(rq.set_data(raw, b"")).err == BAD
    assert client.call(rq.delete(raw)).err == NONE
    assert client.call(rq.exists(raw)).err == NONE
    assert client.call(rq.get_data(raw)).err == NONE


def test_a_name_may_be_long(client: Client, base: str) -> None:
    path = f"{base}/" + "n" * 5000
    assert client.call(rq.create(path)).path == path
    assert client.call(rq.get_children(base)).names == {"n" * 5000}


def test_names_compare_by_code_point_not_by_look(client: Client, base: str) -> None:
    client.call(rq.create(f"{base}/\u00e9"))
    client.call(rq.create(f"{base}/e\u0301"))
    assert client.call(rq.get_children(base)).names == {"\u00e9", "e\u0301"}
