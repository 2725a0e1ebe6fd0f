"""Random trees carried into a service and out again: they are the same, byte for byte."""

from __future__ import annotations

import io

from hypothesis import example, given
from hypothesis import strategies as st

import paddock
from paddock.cli.transfer.node import Existing, ImportOptions, Node, order_of
from paddock.cli.transfer.reading import Export
from paddock.cli.transfer.writing import LineWriter
from paddock.protocol.acl import ACL, ADMIN, ALL, CREATE, OPEN, Identity, digest_id
from paddock.testing import EmbeddedServer, run_virtually
from tests.property.bounds import examples
from tests.support.trees import imported, walked

NAMES = st.one_of(
    st.sampled_from(["a", "b", "a-b", "a b", "a!", "aa", "zookeeper"]),
    st.text(
        st.characters(
            max_codepoint=0xD7FF, exclude_categories=["Cc", "Cs"], exclude_characters="/"
        ),
        min_size=1,
        max_size=4,
    ).filter(lambda name: name not in (".", "..")),
)
IDENTITIES = [
    Identity("world", "anyone"),
    Identity("ip", "127.0.0.1"),
    Identity("ip", "10.0.0.0/8"),
    Identity("digest", digest_id("alice:secret")),
    Identity("digest", digest_id("bob:se:cret")),
]
# The export is read back by alice, who may do all.
ACLS = st.one_of(
    st.just(OPEN),
    st.dictionaries(st.sampled_from(IDENTITIES), st.integers(0, ALL), max_size=3).map(
        lambda granted: (
            *(ACL(bits, one) for one, bits in granted.items() if one != IDENTITIES[3]),
            ACL(ALL, IDENTITIES[3]),
        )
    ),
)
DATA = st.one_of(st.just(b""), st.binary(max_size=40), st.text(max_size=20).map(str.encode))


@st.composite
def trees(draw: st.DrawFn) -> list[Node]:
    """Draw the nodes of a tree, in order."""
    paths = {"/"}
    for parts in draw(st.lists(st.lists(NAMES, min_size=1, max_size=4), max_size=12)):
        for depth in range(len(parts)):
            paths.add("/" + "/".join(parts[: depth + 1]))
    return [Node(path, draw(DATA), draw(ACLS)) for path in sorted(paths, key=order_of)]


def written(nodes: list[Node]) -> bytes:
    stream = io.BytesIO()
    writer = LineWriter(stream, acls=True)
    for node in nodes:
        writer.write(node)
    writer.finish()
    return stream.getvalue()


def seen(nodes: list[Node]) -> list[tuple[str, bytes, frozenset[ACL]]]:
    return [(node.path, node.data, frozenset(node.acl or ())) for node in nodes]


@examples(100)
@given(trees())
def test_a_tree_comes_back_from_a_file(tree: list[Node]) -> None:
    found = list(Export(io.BytesIO(written(tree)), "export").nodes())
    assert seen(found) == seen(tree)
    assert written(found) == written(tree)


MEANWHILE = (ACL(CREATE | ADMIN, Identity("world", "anyone")), ACL(ALL, IDENTITIES[3]))


@examples(40)
# What looks like the ACL of an interrupted import, on a node whose data differ, too.
@example(
    tree=[Node("/", b"new", (ACL(ALL, IDENTITIES[3]),)), Node("/a", b"", OPEN)],
    before=[Node("/", b"old", MEANWHILE)],
)
@given(trees(), trees())
def test_a_tree_comes_back_from_a_service_whatever_was_there(
    tree: list[Node], before: list[Node]
) -> None:
    async def main() -> None:
        ours = [("digest", "alice:secret")]
        mirror = ImportOptions(existing=Existing.OVERWRITE, deletes=True)
        async with EmbeddedServer() as server, paddock.connect(server.hosts) as client:
            await client.add_auth("digest", b"alice:secret")
            await imported(client, "/app", before, credentials=ours)
            await imported(client, "/app", tree, mirror, credentials=ours)
            found = await walked(client, "/app")
            assert seen(found) == seen(tree)
            assert written(found) == written(tree)
            _, differences = await imported(
                client, "/app", tree, ImportOptions(is_dry=True, looks_for_more=True)
            )
            assert differences == []

    run_virtually(main())
