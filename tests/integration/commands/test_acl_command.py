"""`paddock acl`: ACLs shown and replaced, of a node or of a tree."""

from __future__ import annotations

import json

import pytest

from paddock.protocol.acl import ACL, ALL, ANYONE, OPEN, READ, Identity, digest_id
from paddock.sync import Client
from tests.support.command import ended, refusal, success
from tests.support.server import Service

ALICE = "digest:alice:secret"


@pytest.mark.everywhere
def test_what_was_set_is_what_is_got(service: Service, client: Client, path: str) -> None:
    where = ["--server", service.hosts]
    assert success("acl", "get", path, *where) == "world:anyone:cdrwa\n"
    assert success("acl", "set", path, "world:anyone:ra", "ip:127.0.0.1:cdrwa", *where) == ""
    shown = success("acl", "get", path, *where).splitlines()
    assert sorted(shown) == ["ip:127.0.0.1:cdrwa", "world:anyone:ra"]
    document = json.loads(success("acl", "get", path, "--json", *where))
    assert (document["path"], document["acl"]) == (path, shown)
    assert document["stat"]["aversion"] == 1


def test_a_version_is_checked(service: Service, path: str) -> None:
    where = ["--server", service.hosts]
    said = refusal("acl", "set", path, "world:anyone:cdrwa", "--version", "7", *where, status=1)
    assert said == f"{path}: the version does not match"
    success("acl", "set", path, "world:anyone:cdrwa", "--version", "0", *where)


def test_a_tree_is_set_as_a_whole(service: Service, client: Client, path: str) -> None:
    client.create(f"{path}/a/b", make_parents=True)
    where = ["--server", service.hosts]
    lines = success("acl", "set", "-R", path, "world:anyone:rcda", "--json", *where).splitlines()
    assert [json.loads(line)["path"] for line in lines] == [f"{path}/a/b", f"{path}/a", path]
    assert all(json.loads(line)["stat"]["aversion"] == 1 for line in lines)
    assert client.get_acl(f"{path}/a/b")[0] == [ACL(ALL & ~2, ANYONE)]


def test_a_node_that_may_not_be_changed_is_named_and_the_others_are(
    service: Service, client: Client, path: str
) -> None:
    client.create(f"{path}/a", acl=[ACL(READ, ANYONE)])
    result = ended("acl", "set", "-R", path, "world:anyone:cdrwa", "--server", service.hosts)
    assert result.status == 1
    assert result.errors == f"paddock: {path}/a: the ACL does not permit it\n"
    client.delete(f"{path}/a")


@pytest.mark.parametrize("command", [("acl", "set"), ("create",)])
def test_a_password_is_stored_as_its_hash_and_that_is_said(
    service: Service, client: Client, path: str, command: tuple[str, ...]
) -> None:
    node = f"{path}/hers"
    entries = [f"{ALICE}:cdrwa"]
    if command == ("create",):
        entries = ["--acl", *entries]
    else:
        client.create(node)
    result = ended(*command, node, *entries, "--server", service.hosts)
    assert result.status == 0
    digest = digest_id("alice:secret")
    assert result.errors == f"paddock: digest:alice: the password is stored as its hash, {digest}\n"
    client.add_auth("digest", b"alice:secret")
    assert client.get_acl(node)[0] == [ACL(ALL, Identity("digest", digest))]


def test_a_hash_is_taken_as_it_is(service: Service, client: Client, path: str) -> None:
    digest = digest_id("alice:secret")
    success(
        "acl", "set", path, f"digest:{digest}:r", "world:anyone:cdrwa", "--server", service.hosts
    )
    assert OPEN[0] in client.get_acl(path)[0]


def test_a_scheme_that_the_server_has_not_is_named(service: Service, path: str) -> None:
    line = refusal("acl", "set", path, "foo:bar:r", "--server", service.hosts, status=1)
    assert line.endswith("is not valid; this server may not have the scheme of foo:bar:r")


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("/a", "anyone"), "'anyone' is not scheme:id:permissions, such as world:anyone:r"),
        (("/a", "world:anyone:x"), "'world:anyone:x': permissions are of c, d, r, w, a"),
        (("/a", "world:anyone:"), "'world:anyone:': it has no permissions"),
        (("/a",), "ACL..."),
        (("a", "world:anyone:r"), "path: 'a' does not begin with a slash"),
        (("/a", "world:anyone:r", "-R", "--version", "1"), "--version is of one node"),
    ],
)
def test_what_is_no_acl_is_one_line(arguments: tuple[str, ...], says: str) -> None:
    # Nobody is asked: there is no such server.
    assert says in refusal("acl", "set", *arguments, "--server", "127.0.0.1:1", status=2)
