"""Seldom seen mutations of the state: the second time, crowds, what is undone, what is restored."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    # Shows when data of 4 KiB or more is set a second time, and a snapshot of it is loaded.
    mutation(
        "large-data-keeps-its-term",
        "The digest has the term of the data that a large node has now.",
        "state/tree.py",
        "        if known is None or known[0] is not data:\n",
        "        if known is None:\n",
    ),
    # Shows when a node is written after its version has come to 2147483647.
    mutation(
        "version-stands-still",
        "Behind the highest version comes the lowest one: no two writes in a row have the same.",
        "state/tree.py",
        "        node.version = _next(node.version)\n",
        "        node.version = max(node.version, _next(node.version))\n",
    ),
    # Shows when a transaction below a quota creates or writes something, and its next step fails.
    mutation(
        "quota-counts-what-was-undone",
        "A quota does not count what a transaction has done that failed.",
        "state/tree.py",
        "        self._touch(path, node)\n"
        "        self._grow(path, len(data) - data_length(node.data))\n",
        "        self._settle_later(path, node)\n"
        "        self.answers.forget_data(node)\n"
        "        self._grow(path, len(data) - data_length(node.data))\n",
    ),
    # Shows when a transaction deletes a node with a rare ACL and fails: no later delete succeeds.
    mutation(
        "undone-delete-loses-its-acl",
        "A node that a failed transaction has deleted counts again for its ACL.",
        "state/tree.py",
        "                    self.acls.retain(node.acl)\n"
        "                    self._attach(path, node, children)\n",
        "                    self._attach(path, node, children)\n",
    ),
    # Shows when /a and /a/b have quotas, and nothing else below /a has, and that of /a/b goes.
    mutation(
        "quota-above-goes-too",
        "A quota that is removed leaves that of the node above.",
        "state/limits.py",
        "            if point.quota is not None or point.children:\n",
        "            if point.children:\n",
    ),
    # Shows when a client writes the counts of a quota in its own way, and a server starts then.
    mutation(
        "counts-of-a-client-stay",
        "Counts that a client has written are written anew with the next change, on every server.",
        "state/limits.py",
        "            self._statistics_read = data\n"
        "            self.is_written_here = False\n"
        "            self.has_statistics = False\n",
        "            self._statistics_read = data\n            self.has_statistics = False\n",
    ),
    # Shows when a client has more identities than an ACL has entries, and two of these are its own.
    mutation(
        "last-entry-grants-alone",
        "A client has what all entries grant that name one of its identities.",
        "state/access.py",
        "                if key in theirs:\n                    granted |= permissions\n",
        "                if key in theirs:\n                    granted = permissions\n",
    ),
    # Shows when an ACL names an IPv6 address with an even number: the next one counts as well.
    mutation(
        "neighbour-of-an-address",
        "An ACL for one address of IPv6 grants nothing to another.",
        "state/access.py",
        "    return ((value >> (width - prefix)) << 8 | prefix) << 1 | (width > 32)\n",
        "    return ((value >> (width - prefix)) << 7 | prefix) << 1 | (width > 32)\n",
    ),
    # Shows when a session ends with 17 ephemerals, and two clients watch one of them each.
    mutation(
        "crowd-told-to-another",
        "Each event of a long entry goes to those who watch its path.",
        "state/watches.py",
        "        if self._size > _GATHERED_BYTES or concerned.keys() != self._watchers.keys():\n",
        "        if self._size > _GATHERED_BYTES or len(concerned) != len(self._watchers):\n",
    ),
    # Shows when a session ends with 17 ephemerals, and one of them is not open to its watcher.
    mutation(
        "crowd-told-without-read",
        "An event of a long entry is withheld without READ, as any other.",
        "state/watches.py",
        "        if not acl.anyone & READ:\n            concerned = {\n"
        "                one: modes for one, modes in concerned.items()"
        " if acl.permits(READ, one.identities)\n            }\n",
        "",
    ),
    # Shows when a session ends with 17 ephemerals, of which one has data and child watches.
    mutation(
        "crowd-told-twice",
        "A deletion is told once, also if it is one of many of an entry.",
        "state/watches.py",
        "        if told:\n            concerned = {one: modes for one, modes in concerned.items()"
        " if one not in told}\n",
        "",
    ),
    # Shows when a client takes away all of its watches at a path where it has all three modes.
    mutation(
        "three-modes-count-as-two",
        "What a watch counts for is given back when it goes.",
        "state/watches.py",
        "_MODE_COUNTS: Final[tuple[int, ...]] = (0, 1, 1, 2, 1, 2, 2, 3)\n",
        "_MODE_COUNTS: Final[tuple[int, ...]] = (0, 1, 1, 2, 1, 2, 2, 2)\n",
    ),
    # Shows when the ring is full, to a feed that is up to date: one change in many thousands.
    mutation(
        "feed-loses-one-of-thousands",
        "A feed shows every change, however many the ring has dropped before.",
        "state/feeds.py",
        "            self.items = items[head:]\n",
        "            self.items = items[head:-1]\n",
    ),
    # Shows when the ring was full, feeds come again a minute after the last one, and one is late.
    mutation(
        "second-ring-is-full",
        "A ring that begins again has all of its room.",
        "state/feeds.py",
        "        self.is_on = False\n        self._line = Line()\n        self.size = 0\n",
        "        self.is_on = False\n        self._line = Line()\n",
    ),
    # Shows when an exact session passes 256 KiB of replies, and that of an elder delete was lost.
    mutation(
        "bare-reply-is-no-reply",
        "A reply without a body is told whole, whatever had to make room.",
        "state/kept_replies.py",
        "        if size:\n            write_i32_be(writer, NOT_KEPT)\n",
        "        if size >= 0:\n            write_i32_be(writer, NOT_KEPT)\n",
    ),
    # Shows when a snapshot with 250 KiB of replies is loaded: the next large one is never applied.
    mutation(
        "restored-replies-have-no-size",
        "The replies that a snapshot holds make room as others do.",
        "state/kept_replies.py",
        "Chunk(ended, self._last_count, self._last_size, self._last_xid, 0)",
        "Chunk(ended, self._last_count, 0, self._last_xid, 0)",
    ),
    # Shows when a member is deposed of which a batch is held: no snapshot is taken from then on.
    mutation(
        "held-by-nobody",
        "What a member holds goes with it.",
        "state/roster.py",
        "        self.held_count -= len(member.held)\n",
        "",
    ),
    # Shows when the second of three operations fails, and the reply to an exact session is lost.
    mutation(
        "last-operation-is-to-blame",
        "What is kept of a refused transaction says which of its operations failed.",
        "state/multi.py",
        "refusal.code), number, refusal.code\n",
        "refusal.code), len(steps) - 1, refusal.code\n",
    ),
    # Shows when a server answers a get of 16 KiB, and then lists a thousand children.
    mutation(
        "long-list-behind-large-data",
        "An answer that is large is put together by its own measure, not by that of the last one.",
        "state/queries.py",
        "        self.large = wire\n        self.large_at = 0\n",
        "        self.large = wire\n",
    ),
)
