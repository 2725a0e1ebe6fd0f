"""Recipes in listings: what Curator leaves, and what has no signature."""

from __future__ import annotations

import base64
import itertools
import json

import pytest

from paddock.dashboard.coordination.nodes import Node
from paddock.dashboard.coordination.recipe import Kind, Recipe, address_of
from paddock.dashboard.coordination.recognition import recognise
from paddock.layouts import Request, with_request
from tests.unit.dashboard.coordination.listing import CURATORS, recorded, summary

MARK = "0123456789abcdef0123456789abcde"
CONTAINER = -(2**63)
_zxids = itertools.count(1)


def node(path: str, data: bytes = b"", owner: int = 0, czxid: int = 0, children: int = 0) -> Node:
    number = czxid or next(_zxids)
    return Node(path, data, owner, number, 1000 + number, children)


def place(above: str, kind: str, number: int, owner: int, data: bytes = b"") -> Node:
    return node(f"{above}/_c_{MARK}{number % 10}-{kind}{number:010}", data, owner)


def only(nodes: list[Node]) -> Recipe:
    [recipe] = recognise(nodes)
    return recipe


def test_recipes_of_curator() -> None:
    assert summary(recognise(recorded())) == CURATORS


def test_the_order_of_a_listing_is_of_no_account() -> None:
    assert recognise(reversed(recorded())) == recognise(recorded())


def test_contenders_of_curator_say_where_they_are() -> None:
    mutex = next(one for one in recognise(recorded()) if one.path == "/mutex")
    first, second = (one for one in recorded() if one.path.startswith("/mutex/"))
    assert [one.path for one in (*mutex.holders, *mutex.waiters)] == [second.path, first.path]
    assert mutex.holders[0].session == second.owner
    assert mutex.holders[0].since_ms == second.ctime_ms
    assert mutex.holders[0].address == "127.0.0.1"


def test_services_of_curator() -> None:
    """By the source of its discovery: the JSON of a ServiceInstance."""
    said = {
        "name": "search",
        "id": "s-1",
        "address": "10.0.0.1",
        "port": 8080,
        "sslPort": None,
        "payload": None,
        "registrationTimeUTC": 1700000000000,
        "serviceType": "DYNAMIC",
        "uriSpec": None,
        "enabled": True,
    }
    off = {**said, "id": "s-2", "enabled": False, "address": "::1"}
    recipe = only(
        [
            node("/services/search/s-1", json.dumps(said).encode(), 7),
            node("/services/search/s-2", json.dumps(off).encode(), 8),
        ]
    )
    assert (recipe.kind, recipe.layout, recipe.path) == (
        "service",
        "Curator",
        "/services/search",
    )
    assert [(one.address, one.how) for one in recipe.holders] == [
        ("10.0.0.1:8080", "serves"),
        ("[::1]:8080", "disabled"),
    ]


def test_a_line_without_a_signature_is_ordered_and_nothing_more() -> None:
    # As Apache's own lock recipe names them.
    nodes = [
        node("/line/x-72057594037927938-0000000002", b"b", 2),
        node("/line/x-72057594037927937-0000000001", b"a", 1),
    ]
    recipe = only(nodes)
    assert (recipe.kind, recipe.layout, recipe.holders) == (Kind.CONTENDERS, "unknown", ())
    assert [one.session for one in recipe.waiters] == [1, 2]
    assert recipe.needs is None


def test_an_ordinary_tree_is_nothing() -> None:
    nodes = [
        node("/", children=3),
        node("/app", b"3"),
        node("/app/locks"),
        node("/app/locks/report-0000000001", b"{}"),
        node("/app/leases"),
        node("/app/ready"),
        node("/app/members", b"{}"),
        node("/app/config", b'{"name": "config", "serviceType": "no"}'),
        node(f"/app/{MARK}0"),
        node("/app/container", owner=CONTAINER),
        node("/app/ttl", owner=-(2**56) + 1),
        # An ephemeral node beside others, known by its name.
        node("/controller", b"1", 7),
    ]
    assert recognise(nodes) == []


def test_ephemeral_nodes_are_members_in_the_order_in_which_they_came() -> None:
    recipe = only([node("/ids/b", b"", 2, czxid=9), node("/ids/a", b"", 1, czxid=10)])
    assert (recipe.kind, recipe.layout, recipe.size) == ("members", "unknown", 2)
    assert [one.session for one in recipe.holders] == [2, 1]


def test_lines_that_do_not_see_each_other_are_two_recipes() -> None:
    mark = MARK + "0"
    nodes = [place("/lock", "lock-", 1, 1), node(f"/lock/{mark}__lock__0000000002", b"", 2)]
    assert [(one.layout, one.holders[0].session) for one in recognise(nodes)] == [
        ("Paddock", 1),
        ("kazoo", 2),
    ]


def test_contenders_of_paddock_and_curator_stand_in_one_line() -> None:
    uuid = "f311e146-b032-4918-a013-25462fe11a43"
    recipe = only([place("/lock", "lock-", 2, 2), node(f"/lock/_c_{uuid}-lock-0000000001", b"", 1)])
    assert (recipe.layout, recipe.holders[0].session) == ("Curator", 1)
    assert [one.session for one in recipe.waiters] == [2]


def test_the_last_lease_is_waited_for_only_by_the_first_in_the_line() -> None:
    leases = [place("/s/leases", "lease-", 1, 1), place("/s/leases", "lease-", 2, 2)]
    # The one in the line is not the one with the last lease: it has none yet.
    recipe = only([*leases, place("/s/locks", "lock-", 3, 3)])
    assert ([one.session for one in recipe.holders], recipe.needs) == ([1, 2], None)
    # It has the last lease, but took it before it stood in the line.
    recipe = only([*leases, place("/s/locks", "lock-", 3, 2)])
    assert [one.session for one in recipe.holders] == [1, 2]


def test_leases_of_seconds_are_a_lock_also_at_a_path_named_leases() -> None:
    recipe = only([node("/app/locks"), place("/app/leases", "lease-", 1, 1, b"30.0")])
    assert (recipe.kind, recipe.path, recipe.needs) == ("lock", "/app/leases", None)
    assert recipe.holders[0].how == "leases for 30.0 s"


def test_a_free_lease_of_kazoo_is_waited_for_by_nobody() -> None:
    mark = MARK + "0"
    nodes = [
        node("/s", b"2", children=1),
        node(f"/s/{mark}", b"a", 1),
        node(f"/s-__lock__/{mark}__lock__0000000000", b"", 2),
    ]
    recipe = only(nodes)
    assert (recipe.kind, recipe.limit, recipe.needs) == ("semaphore", 2, None)
    assert [one.session for one in recipe.waiters] == [2]
    full = only([*nodes, node(f"/s/{MARK}1", b"b", 3)])
    assert full.needs is not None


def test_a_claim_needs_both_nodes_of_one_transaction() -> None:
    mark = MARK + "0"
    claim = node("/m/report", mark.encode(), 1, czxid=5)
    recipe = only([claim, node(f"/m/report-{mark}", b"", 1, czxid=5)])
    assert (recipe.kind, recipe.path, recipe.holders[0].data) == ("lock", "/m/report", b"")
    other = recognise([claim, node(f"/m/report-{mark}", b"", 1, czxid=6)])
    assert [one.kind for one in other] == ["members"]


def test_hostile_nodes_are_not_recognised_as_something_else() -> None:
    deep = b"[" * 100_000
    assert only([node("/g/a", b"{" + deep, 1), node("/g/b", b"\xff\x00", 2)]).kind == "members"
    assert only([node("/s/ready", b"\xff\n\xfe"), place("/s", "member-", 1, 1)]).waiters


@pytest.mark.parametrize(
    ("data", "address"),
    [
        (b"10.0.0.1", "10.0.0.1"),
        (b"10.0.0.1:2181", "10.0.0.1:2181"),
        (b"db.example.org:80", "db.example.org:80"),
        (b"::1", "::1"),
        (b"host:0", None),
        (b"worker 7", None),
        (b"1", None),
        (b"", None),
        (b"\xff", None),
    ],
)
def test_addresses(data: bytes, address: str | None) -> None:
    assert address_of(data) == address


def test_plain_data() -> None:
    data = b"x" * 2000
    fields = only(
        [place("/lock", "lock-", 1, -(2**62), data), place("/lock", "lock-", 2, 5)]
    ).fields()
    assert json.loads(json.dumps(fields)) == fields
    [holder] = fields["holders"]
    assert (holder["session"], holder["size"], holder["is_cut"]) == (
        "0xc000000000000000",
        2000,
        True,
    )
    assert (fields["kind"], fields["layout"], fields["limit"]) == ("lock", "Paddock", 1)
    assert (fields["holder_count"], fields["waiter_count"]) == (1, 1)


def test_a_holder_that_is_asked_to_let_go_says_what_it_said_before() -> None:
    asked = with_request(b"worker 7", Request("a" * 32, b"worker 9", 5))
    [holder] = only([place("/lock", "lock-", 1, 5, asked)]).fields()["holders"]
    assert base64.b64decode(holder["data"]) == b"worker 7"
