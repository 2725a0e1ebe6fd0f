"""`paddock export` and `import` as their users meet them: processes, files, pipes, two services."""

from __future__ import annotations

import gzip
import json
import os
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

import paddock
from paddock.protocol.acl import ACL, ALL, READ_ONLY, Identity, digest_id
from paddock.sync import Client, connect
from paddock.testing import FaultProxy
from tests.support.command import (
    COMMAND,
    DEADLINE_S,
    ended_here,
    refusal,
    refusal_here,
    success,
    success_here,
)
from tests.support.command import paddock as run
from tests.support.server import Server, Service
from tests.support.terminal import terminal

ALICE = "digest:alice:secret"
BOB = "digest:bob:secret"


def make_tree(client: Client, path: str) -> None:
    """Make something of everything below a node that is there."""
    client.add_auth("digest", b"alice:secret")
    client.set(path, b"the root")
    client.create(f"{path}/text", "Grün\nund mehr".encode())
    client.create(f"{path}/binary", bytes(range(256)))
    client.create(f"{path}/a b/c!/ä/zookeeper", b"deep", make_parents=True)
    client.create(f"{path}/a-b", acl=READ_ONLY)
    client.create(f"{path}/secret", acl=paddock.CREATOR_ALL_ACL)
    client.create(f"{path}/secret/below", b"x", acl=[ACL(ALL, Identity("ip", "127.0.0.1"))])
    # An import without the credentials of bob would be locked out of it.
    bob = ACL(ALL, Identity("digest", digest_id("bob:secret")))
    client.create(f"{path}/bob")
    client.create(f"{path}/bob/below")
    client.set_acl(f"{path}/bob", [bob, *READ_ONLY])
    client.create(f"{path}/worker", ephemeral=True)


NODES = 12


def export(service: Service, path: str, file: Path | str, *options: str) -> str:
    """Export as alice and bob, who may read all; return what it says."""
    whose = ("--auth", ALICE, "--auth", BOB)
    return success_here("export", "--server", service.hosts, *whose, *options, path, file)


def remove(client: Client, path: str) -> None:
    """Remove what a test has imported."""
    client.add_auth("digest", b"alice:secret")
    client.add_auth("digest", b"bob:secret")
    client.delete_tree(path)


@pytest.fixture
def tree(client: Client, path: str) -> str:
    """The path of a tree with something of everything."""
    make_tree(client, path)
    client.add_auth("digest", b"bob:secret")
    return path


@pytest.mark.everywhere
def test_export_import_export_gives_the_same_bytes(
    service: Service, client: Client, tree: str, tmp_path: Path
) -> None:
    first, second = tmp_path / "first.jsonl", tmp_path / "second.jsonl"
    said = export(service, tree, first)
    assert said == f"{first}: {NODES} nodes, 1 ephemeral node left out\n"
    said = success(
        "import", "--server", service.hosts, "--auth", ALICE, first, f"{tree}/copy/of/it"
    )
    assert said == f"{tree}/copy/of/it: {NODES} created\n"
    export(service, f"{tree}/copy/of/it", second)
    assert first.read_bytes() == second.read_bytes()
    # Run again, it finds nothing to do.
    said = success(
        *("import", "--server", service.hosts, "--auth", ALICE, "--auth", BOB),
        *("--json", first, f"{tree}/copy/of/it"),
    )
    assert json.loads(said) == {
        "path": f"{tree}/copy/of/it",
        "dry_run": False,
        **dict.fromkeys(("created", "changed", "kept", "deleted"), 0),
        "same": NODES,
    }


@pytest.mark.judge
@pytest.mark.parametrize("way", ["to Apache", "from Apache"])
@pytest.mark.parametrize("is_straight", [False, True], ids=["by file", "straight"])
def test_a_tree_goes_to_another_service_and_back_unchanged(
    way: str, is_straight: bool, shared_paddock: Server, shared_apache: Server, tmp_path: Path
) -> None:
    here, there = shared_paddock, shared_apache
    if way == "from Apache":
        here, there = there, here
    path = f"/transfer-{way.replace(' ', '-')}-{is_straight}"
    files = [tmp_path / f"{number}.jsonl" for number in range(3)]
    with connect(here.hosts) as client, connect(there.hosts) as other:
        client.create(path)
        make_tree(client, path)
        try:
            export(here, path, files[0])
            whose = ("--auth", ALICE, "--auth", BOB)
            source, back = [str(files[0])], [str(files[1])]
            if is_straight:
                from_whose = ("--from-auth", ALICE, "--from-auth", BOB)
                source = ["--from", here.hosts, *from_whose, path]
                back = ["--from", there.hosts, *from_whose, path]
            success("import", "--server", there.hosts, *whose, *source, path)
            export(there, path, files[1])
            success("import", "--server", here.hosts, *whose, *back, f"{path}-back")
            export(here, f"{path}-back", files[2])
            contents = [file.read_bytes() for file in files]
            assert contents[0] == contents[1] == contents[2]
        finally:
            remove(client, path)
            remove(client, f"{path}-back")
            remove(other, path)


def test_files_may_be_compressed_and_pipes_are_files(
    service: Service, client: Client, tree: str, tmp_path: Path
) -> None:
    plain, compressed = tmp_path / "tree.jsonl", tmp_path / "tree.jsonl.gz"
    export(service, tree, plain)
    export(service, tree, compressed)
    assert gzip.decompress(compressed.read_bytes()) == plain.read_bytes()
    success("import", "--server", service.hosts, compressed, f"{tree}/compressed")
    # What stdout has is the export and nothing else; what is said goes to stderr.
    python, server = shlex.quote(sys.executable), shlex.quote(service.hosts)
    source, target = shlex.quote(tree), shlex.quote(f"{tree}/piped")
    pipe = (
        f"{python} -m paddock export --server {server} {source}/text -"
        f" | {python} -m paddock import --server {server} - {target}"
    )
    result = subprocess.run(
        ["bash", "-o", "pipefail", "-c", pipe], capture_output=True, timeout=DEADLINE_S
    )
    assert result.returncode == 0, result
    assert result.stdout.decode() == f"{tree}/piped: 1 created\n"
    assert result.stderr.decode() == "stdout: 1 node\n"
    assert client.get(f"{tree}/piped").data == client.get(f"{tree}/text").data


@pytest.mark.everywhere
def test_nothing_that_differs_is_touched_unless_that_was_said(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    for name in ("a", "b", "c"):
        client.create(f"{path}/from/{name}", name.encode(), make_parents=True)
    file = tmp_path / "from.jsonl"
    export(service, f"{path}/from", file)
    client.create(f"{path}/to/b", b"other", make_parents=True)
    client.create(f"{path}/to/more/below", make_parents=True)
    arguments = ("--server", service.hosts, str(file), f"{path}/to")
    said = refusal_here("import", *arguments, status=1)
    assert said.startswith(f"{path}/to/b: exists, and its data differ; nothing was changed:")
    assert client.children(f"{path}/to/more") == ["below"]
    assert sorted(client.children(f"{path}/to")) == ["b", "more"]
    # What is different is told, a line each.
    result = ended_here("import", "--diff", *arguments)
    assert (result.status, result.errors) == (3, "")
    assert result.output.splitlines() == [
        f"+ {path}/to/a",
        f"~ {path}/to/b (data)",
        f"+ {path}/to/c",
        f"- {path}/to/more (and 1 node below it)",
    ]
    result = ended_here("import", "--diff", "--json", *arguments)
    shown = {"change": "change", "path": f"{path}/to/b", "what": ["data"], "below": 0}
    assert json.loads(result.output.splitlines()[1]) == shown
    # A dry run is refused as the import would be; then it says what would be done.
    assert "nothing was changed" in refusal_here("import", "--dry-run", *arguments, status=1)
    said = success_here("import", "--dry-run", "--overwrite", "--delete", *arguments)
    assert said == f"{path}/to: would be 1 same, 2 created, 1 changed, 2 deleted\n"
    assert client.get(f"{path}/to/b").data == b"other"
    assert sorted(client.children(f"{path}/to")) == ["b", "more"]
    said = success_here("import", "--keep", *arguments)
    assert said == f"{path}/to: 1 same, 2 created, 1 kept\n"
    assert client.get(f"{path}/to/b").data == b"other"
    said = success_here("import", "--overwrite", "--delete", *arguments)
    assert said == f"{path}/to: 3 same, 1 changed, 2 deleted\n"
    result = ended_here("import", "--diff", *arguments)
    assert (result.status, result.output, result.errors) == (0, "", "")


def test_a_chroot_is_where_paths_begin(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    client.create(f"{path}/app/a", b"1", make_parents=True)
    file = tmp_path / "app.jsonl"
    success_here("export", "--server", f"{service.hosts}{path}/app", "/", file)
    # The chroot is made if it is not there.
    success_here("import", "--server", f"{service.hosts}{path}/new/root", file, "/")
    success_here(
        "import",
        "--server",
        f"{service.hosts}{path}",
        "--from",
        f"{service.hosts}{path}/app",
        "/a",
        "/b",
    )
    assert client.get(f"{path}/new/root/a").data == b"1"
    assert client.get(f"{path}/b").data == b"1"


def test_a_file_that_is_there_is_not_replaced(service: Service, path: str, tmp_path: Path) -> None:
    file = tmp_path / "app.jsonl"
    file.write_text("mine")
    arguments = ("export", "--server", service.hosts, path, file)
    assert refusal_here(*arguments, status=1) == f"{file}: exists already; --overwrite replaces it"
    assert file.read_text() == "mine"
    link = tmp_path / "link"
    link.symlink_to(file)
    success_here("export", "--server", service.hosts, "--overwrite", path, link)
    assert link.is_symlink()
    assert file.read_text().count("\n") == 3
    assert sorted(tmp_path.iterdir()) == [file, link]


def test_what_cannot_be_done_is_one_line(service: Service, path: str, tmp_path: Path) -> None:
    where = ("--server", service.hosts)
    file, nothing = tmp_path / "app.jsonl", tmp_path / "nothing" / "app.jsonl"
    assert refusal_here("export", *where, f"{path}/no", file, status=1) == (
        f"{path}/no: no such node"
    )
    assert refusal_here("export", *where, path, nothing, status=1).endswith(
        f"there is no folder {tmp_path}/nothing"
    )
    assert refusal_here("export", *where, path, os.devnull, status=1) == "/dev/null: is not a file"
    assert "does not begin with a slash" in refusal_here("export", *where, "app", file, status=2)
    assert "cannot be resumed" in refusal_here("export", *where, "--resume", path, "-", status=2)
    assert (
        refusal_here("import", *where, file, path, status=1) == f"{file}: No such file or directory"
    )
    assert "cannot both be meant" in refusal_here(
        "import", *where, "--overwrite", "--keep", file, path, status=2
    )
    assert "needs --from" in refusal_here(
        "import", *where, "--from-auth", ALICE, file, path, status=2
    )
    assert "is no host:port" in refusal_here("import", *where, "--from", ":", path, path, status=2)
    same = ("--from", service.hosts)
    for here, there in ((path, f"{path}/copy"), (f"{path}/copy", path)):
        said = refusal_here("import", *where, *same, here, there, status=2)
        assert said == f"{here} and {there}: one of the trees is in the other"
    # None of these has left anything.
    assert [*tmp_path.iterdir()] == []


def test_an_export_of_no_tree_writes_nothing_to_stdout(service: Service, path: str) -> None:
    said = refusal_here("export", "--server", service.hosts, f"{path}/no", "-", status=1)
    assert said == f"{path}/no: no such node"


def test_a_node_that_is_larger_than_servers_take_is_named(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    client.create(f"{path}/from/large", bytes(2000), make_parents=True)
    file = tmp_path / "from.jsonl"
    export(service, f"{path}/from", file)
    arguments = (
        "import",
        "--server",
        service.hosts,
        "--max-request-bytes",
        "1000",
        file,
        f"{path}/to",
    )
    said = refusal_here(*arguments, status=1)
    assert said.startswith(f"{path}/to/large: create: the request has 2")


def test_a_terminal_shows_how_far_it_is(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    client.create(f"{path}/from")
    for number in range(20):
        client.create(f"{path}/from/{number}")
    file = tmp_path / "from.jsonl"
    host, _, port = service.hosts.rpartition(":")
    with FaultProxy((host, int(port))) as proxy:
        at = ("--server", proxy.hosts)
        held = proxy.when(operation="get_acl", path=f"{path}/from/7").blackhole()
        with terminal([*COMMAND, "export", *at, f"{path}/from", file], columns=200) as seen:
            seen.wait_for(f"export {path}/from")
            seen.wait_for("1/21")
            held.wait(DEADLINE_S)
            proxy.heal()
            seen.wait_for(f"{file}: 21 nodes")
            assert seen.wait_for_end() == 0
        held = proxy.when(operation="create", nth=5).blackhole()
        with terminal([*COMMAND, "import", *at, file, f"{path}/to"], columns=200) as seen:
            # The nodes of a window are counted together.
            seen.wait_for(f"import {path}/to")
            seen.wait_for("0/21")
            held.wait(DEADLINE_S)
            proxy.heal()
            seen.wait_for(f"{path}/to: 21 created")
            assert seen.wait_for_end() == 0
            # The bar is gone, the line about the result is left.
            assert "0/21" not in seen.text


def test_a_damaged_file_changes_nothing(
    service: Service, client: Client, path: str, tmp_path: Path
) -> None:
    client.create(f"{path}/from/a", b"blue", make_parents=True)
    file = tmp_path / "from.jsonl"
    export(service, f"{path}/from", file)
    whole = file.read_bytes()
    for spoiled, why in (
        (whole[:-1], "the file is cut off in the middle of it"),
        (b"".join(whole.splitlines(keepends=True)[:-1]), "the export was not finished"),
        (whole.replace(b"blue", b"glue"), "its checksum does not fit"),
    ):
        file.write_bytes(spoiled)
        said = refusal_here("import", "--server", service.hosts, file, f"{path}/to", status=1)
        assert said.startswith(f"{file}: line ")
        assert said.endswith(why)
    said = refusal(
        "import", "--server", service.hosts, "-", f"{path}/to", status=1, input=whole[:-5]
    )
    assert said.startswith("stdin: line 4, byte ")
    assert client.exists(f"{path}/to") is None


def test_what_we_may_not_read_is_an_error_or_left_out(
    service: Service, client: Client, tree: str, tmp_path: Path
) -> None:
    file = tmp_path / "tree.jsonl"
    # Without the credentials of bob his digest is hidden; other nodes were read before.
    said = refusal_here("export", "--server", service.hosts, tree, file, status=1)
    assert said.startswith(f"{tree}/bob: the digests of its ACL are hidden from us; --auth says")
    assert said.endswith("what was read is kept, and --resume goes on")
    said = success_here(
        "export", "--server", service.hosts, "--resume", "--skip-unreadable", tree, file
    )
    assert ", 2 unreadable nodes left out since it was resumed\n" in said
    paths = [json.loads(line).get("path") for line in file.read_bytes().splitlines()]
    assert paths[1:-1] == [
        *("/", "/a b", "/a b/c!", "/a b/c!/ä", "/a b/c!/ä/zookeeper", "/a-b", "/binary", "/text"),
    ]


def test_ephemeral_nodes_may_be_kept_and_acls_left_out(
    service: Service, client: Client, path: str
) -> None:
    client.create(f"{path}/worker", b"alive", ephemeral=True)
    client.set_acl(path, [*READ_ONLY, ACL(ALL, Identity("ip", "127.0.0.1"))])
    result = run(
        *(
            "export",
            "--server",
            service.hosts,
            "--keep-ephemerals",
            "--no-acls",
            "--json",
            path,
            "-",
        )
    )
    header, root, worker, _ = (json.loads(line) for line in result.stdout.splitlines())
    assert header["acls"] is False
    assert root.keys() == {"path", "crc"}
    assert (worker["path"], worker["data"]) == ("/worker", "alive")
    assert json.loads(result.stderr) == {
        "file": "stdout",
        "nodes": 2,
        "resumed": False,
        "warning": None,
        "left_out": {"ephemeral": 0, "unreadable": 0, "vanished": 0},
    }
