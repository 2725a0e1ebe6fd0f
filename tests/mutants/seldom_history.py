"""Seldom mutations of the history: ends of files, gaps, what was made or attached twice."""

from __future__ import annotations

from typing import Final

from tests.mutants.mutation import Mutation, mutation

MUTATIONS: Final[tuple[Mutation, ...]] = (
    # Shows when a snapshot of Apache's has all but the last transaction of a file of the log.
    mutation(
        "last-of-a-file-passed-over",
        "The log of Apache ZooKeeper is read from the file on that has the next transaction.",
        "history/apache.py",
        "            if end is None or end > after + 1:\n",
        "            if end is None or end > after + 2:\n",
    ),
    # Shows when a record is damaged after which a snapshot was written at once.
    mutation(
        "snapshot-of-the-lost-record",
        "Behind a gap the first snapshot is gone on with that has the lost record.",
        "history/own.py",
        "            if one.index >= index:\n",
        "            if one.index > index:\n",
    ),
    # Shows for the first change of a node behind a gap in which it was changed as well.
    mutation(
        "before-is-before-the-gap",
        "A change behind a gap is told with what the node was behind the gap.",
        "history/telling.py",
        "                yield NodeChange(step, path, before, now)\n            known = after\n",
        "                yield NodeChange(step, path, before, now)\n",
    ),
    # Shows for a node that was deleted and created again by somebody else.
    mutation(
        "made-by-the-first",
        "The story of a node says who made the one that there was last.",
        "history/stories/node.py",
        '        if one.kind == "created":\n',
        '        if one.kind == "created" and story.created is None:\n',
    ),
    # Shows when a session has moved twice, and the third server is killed.
    mutation(
        "home-of-the-first-move",
        "The end of a session is put down to the server that had its client last.",
        "history/stories/session.py",
        "        last = self.attached[-1] if self.attached else self.opened\n",
        "        last = self.attached[0] if self.attached else self.opened\n",
    ),
)
